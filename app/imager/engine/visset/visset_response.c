/* The responses of targets that take views of correlations: what their images make of a
 * source whose correlations the same view has made. An image over its response is in
 * true flux. */
#include <math.h>

#include "imager_targets.h"
#include "tess_exact.h"
#include "tess_mem.h"
#include "visset_private.h"

/* The sums of one thread, of one target. */
typedef struct response_sums {
    imager_response sum;
    tess_exact *exact; /* [2][num_pol], or NULL */
} response_sums;

tess_status visset_response_create(visset *set)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    imager_sums *sums = &set->sums;
    const int num = imager_job_num_targets(job);
    if (!job->view.response) return TESS_OK;
    sums->response = tess_alloc_zero(num, sizeof *sums->response);
    if (job->layout->reproducible)
        sums->exact_response = tess_alloc_zero((int64_t)num * 2 * job->view.num_pol,
                                               sizeof *sums->exact_response);
    if (!sums->response || (job->layout->reproducible && !sums->exact_response))
        TESS_FAIL(TESS_ERR_ALLOC, "responses of %d images", num);
cleanup:
    return status;
}

/* Adds a sample, of these powers and weights. */
static void add_sample(int num_pol, const double *power, const double *weight,
                       response_sums *to)
{
    for (int p = 0; p < num_pol; ++p) {
        if (isnan(power[p]) || !(weight[p] > 0)) continue;
        to->sum.counted[p] += weight[p];
        to->sum.power[p] += weight[p] * power[p];
        if (!to->exact) continue;
        tess_exact_add(&to->exact[p], weight[p]);
        tess_exact_add(&to->exact[num_pol + p], weight[p] * power[p]);
    }
}

static void add_row(const imager_job *job, int target, const tess_samples *samples,
                    int64_t row, double *power, response_sums *to)
{
    const imager_view *view = &job->view;
    const int num_weight = samples->num_weight;
    view->response(view->context, target, samples, row, power);
    for (int32_t c = 0; c < samples->num_chan[row]; ++c) {
        double weight[TESS_MAX_POL];
        const int64_t at = (samples->vis_first[row] + c) * num_weight;
        for (int p = 0; p < view->num_pol; ++p)
            weight[p] = tess_samples_weight(samples, at + (num_weight == 1 ? 0 : p));
        add_sample(view->num_pol, power + (int64_t)c * view->num_pol, weight, to);
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
    const int64_t most = tess_samples_longest_row(samples, 0, samples->num_rows);
    bool complete = true;
#pragma omp parallel num_threads(job->layout->threads) reduction(&& : complete)
    {
        double *power = tess_alloc(most * num_pol, sizeof *power);
        response_sums own = {0};
        if (is_exact) own.exact = tess_alloc_zero(2 * num_pol, sizeof *own.exact);
        complete = power && (own.exact || !is_exact);
#pragma omp for schedule(static)
        for (int64_t row = 0; row < samples->num_rows; ++row)
            if (complete) add_row(job, target, samples, row, power, &own);
#pragma omp critical(tess_imager_response)
        add_sums(set, target, &own);
        tess_free(power);
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
