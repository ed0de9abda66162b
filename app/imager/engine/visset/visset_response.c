/* The responses of targets that take views of correlations: what their images make of a
 * source whose correlations the same view has made. An image over its response is in
 * true flux. */
#include "imager_targets.h"
#include "tess_exact.h"
#include "tess_mem.h"
#include "visset_private.h"

/* The sums of one thread, of one target. */
typedef struct response_sums {
    imager_response sum;
    tess_exact *exact; /* [2][num_pol], or NULL */
} response_sums;

/* The factors of the rows of a thread. */
typedef struct response_work {
    double complex *taken; /* [channels][num_pol][num_corr] */
    double complex *made;  /* [channels][num_corr][num_pol] */
} response_work;

tess_status visset_response_create(visset *set)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    imager_sums *sums = &set->sums;
    const int num = imager_job_num_targets(job);
    if (job->view.num_pol == 0 || !job->view.from_model) return TESS_OK;
    sums->response = tess_alloc_zero(num, sizeof *sums->response);
    if (job->layout->reproducible)
        sums->exact_response = tess_alloc_zero((int64_t)num * 2 * job->view.num_pol,
                                               sizeof *sums->exact_response);
    if (!sums->response || (job->layout->reproducible && !sums->exact_response))
        TESS_FAIL(TESS_ERR_ALLOC, "responses of %d images", num);
cleanup:
    return status;
}

/* Adds a sample with its factors. */
static void add_sample(int num_pol, int num_corr, const double complex *taken,
                       const double complex *made, const double *weight,
                       response_sums *to)
{
    for (int p = 0; p < num_pol; ++p) {
        double power = 0;
        bool counts = false;
        for (int q = 0; q < num_corr; ++q) {
            const double complex a = taken[p * num_corr + q], b = made[q * num_pol + p];
            power += creal(a) * creal(b) - cimag(a) * cimag(b);
            counts = counts || creal(a) != 0 || cimag(a) != 0;
        }
        if (!counts || !(weight[p] > 0)) continue;
        to->sum.counted[p] += weight[p];
        to->sum.power[p] += weight[p] * power;
        if (!to->exact) continue;
        tess_exact_add(&to->exact[p], weight[p]);
        tess_exact_add(&to->exact[num_pol + p], weight[p] * power);
    }
}

static void add_row(const imager_job *job, int target, const tess_samples *samples,
                    int64_t row, const response_work *work, response_sums *to)
{
    const imager_view *view = &job->view;
    const int pols = view->num_pol, corrs = samples->num_pol;
    view->to_target(view->context, target, samples, row, work->taken);
    view->from_model(view->context, target, samples, row, work->made);
    for (int32_t c = 0; c < samples->num_chan[row]; ++c) {
        double weight[TESS_MAX_POL];
        const int64_t at = (samples->vis_first[row] + c) * samples->num_weight;
        for (int p = 0; p < pols; ++p)
            weight[p] =
                tess_samples_weight(samples, at + (samples->num_weight == 1 ? 0 : p));
        add_sample(pols, corrs, work->taken + (int64_t)c * pols * corrs,
                   work->made + (int64_t)c * pols * corrs, weight, to);
    }
}

/* Adds the sums of a thread to those of the set. */
static void add_sums(visset *set, int target, const response_sums *own)
{
    const int num_pol = set->job->view.num_pol;
    imager_response *all = &set->sums.response[target];
    tess_exact *exact = set->sums.exact_response;
    for (int p = 0; p < num_pol; ++p) {
        all->counted[p] += own->sum.counted[p];
        all->power[p] += own->sum.power[p];
    }
    for (int k = 0; own->exact && k < 2 * num_pol; ++k)
        for (int j = 0; j < TESS_EXACT_WORDS; ++j)
            exact[(int64_t)target * 2 * num_pol + k].word[j] += own->exact[k].word[j];
}

/* Adds the rows to the response of a target. */
static tess_status add_target(visset *set, int target, const tess_samples *samples)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    const bool is_exact = set->sums.exact_response != NULL;
    const int num_pol = job->view.num_pol;
    const int64_t most = tess_samples_longest_row(samples, 0, samples->num_rows) *
                         num_pol * samples->num_pol;
    bool complete = true;
#pragma omp parallel num_threads(job->layout->threads) reduction(&& : complete)
    {
        const response_work work = {tess_alloc(most, sizeof *work.taken),
                                    tess_alloc(most, sizeof *work.made)};
        response_sums own = {0};
        if (is_exact) own.exact = tess_alloc_zero(2 * num_pol, sizeof *own.exact);
        complete = work.taken && work.made && (own.exact || !is_exact);
#pragma omp for schedule(static)
        for (int64_t row = 0; row < samples->num_rows; ++row)
            if (complete) add_row(job, target, samples, row, &work, &own);
#pragma omp critical(tess_imager_response)
        add_sums(set, target, &own);
        tess_free(work.taken);
        tess_free(work.made);
        tess_free(own.exact);
    }
    if (!complete) TESS_FAIL(TESS_ERR_ALLOC, "responses of images");
cleanup:
    return status;
}

tess_status visset_response_add(visset *set, const tess_samples *samples)
{
    tess_status status = TESS_OK;
    const int num = imager_job_num_targets(set->job);
    for (int k = 0; set->sums.response && k < num; ++k)
        TESS_TRY(add_target(set, k, samples));
cleanup:
    return status;
}

tess_status visset_response_sum(visset *set)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    const int num = imager_job_num_targets(job), num_pol = job->view.num_pol;
    const int64_t count = (int64_t)num * 2 * TESS_MAX_POL;
    imager_response *response = set->sums.response;
    tess_exact *exact = set->sums.exact_response;
    if (!response) return TESS_OK;
    if (!exact)
        return tess_comm_allreduce_f64(job->comm, response->counted, count, TESS_SUM);
    TESS_TRY(tess_comm_allreduce_i64(job->comm, exact->word,
                                     (int64_t)num * 2 * num_pol * TESS_EXACT_WORDS,
                                     TESS_SUM));
    for (int k = 0; k < num; ++k, exact += 2 * num_pol)
        for (int p = 0; p < num_pol; ++p) {
            response[k].counted[p] = tess_exact_value(&exact[p]);
            response[k].power[p] = tess_exact_value(&exact[num_pol + p]);
        }
cleanup:
    return status;
}
