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
    if (!job->view.response && !job->view.counts) return TESS_OK;
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
    if (view->counts && !view->counts(view->context, target, samples, row)) return;
    if (view->response) view->response(view->context, target, samples, row, power);
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
    if (job->view.prepare) job->view.prepare(job->view.context, target);
#pragma omp parallel num_threads(job->layout->threads) reduction(&& : complete)
    {
        double *power = tess_alloc(most * num_pol, sizeof *power);
        response_sums own = {0};
        if (is_exact) own.exact = tess_alloc_zero(2 * num_pol, sizeof *own.exact);
        complete = power && (own.exact || !is_exact);
        for (int64_t k = 0; power && k < most * num_pol; ++k)
            power[k] = 1; /* unless the view has others */
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

/* ---- rows of the same gains, together ---- */

/* Weights of the rows of each group (imager_view.group), by channel. Rows of a group
 * have the same powers, so that these are found once for all of them. */
typedef struct group_weights {
    int64_t num_groups, each; /* values of a group */
    int32_t *origin;          /* [num_groups] of one of its rows; −1: there is none */
    double *weight;           /* [num_groups][num_chan][num_weight] */
} group_weights;

/* More groups, or groups of few rows, would take longer than rows one by one. */
static bool are_worth(const visset *set, const tess_samples *samples)
{
    const imager_view *view = &set->job->view;
    const double values =
        (double)view->num_groups * (double)view->num_chan * samples->num_weight;
    return view->group && view->num_groups > 0 && samples->origin &&
           !set->sums.exact_response && values <= (double)samples->num_vis;
}

static void free_groups(group_weights *groups)
{
    tess_free(groups->origin);
    tess_free(groups->weight);
}

static tess_status create_groups(const imager_view *view, const tess_samples *samples,
                                 group_weights *groups)
{
    tess_status status = TESS_OK;
    *groups = (group_weights){.num_groups = view->num_groups,
                              .each = view->num_chan * samples->num_weight};
    groups->origin = tess_alloc(groups->num_groups, sizeof *groups->origin);
    groups->weight =
        tess_alloc_zero(groups->num_groups * groups->each, sizeof *groups->weight);
    if (!groups->origin || !groups->weight)
        TESS_FAIL(TESS_ERR_ALLOC, "responses of images");
    for (int64_t k = 0; k < groups->num_groups; ++k)
        groups->origin[k] = -1;
cleanup:
    return status;
}

/* Adds the weights of a row to those of its group. */
static void add_to_group(const imager_view *view, const tess_samples *samples,
                         int64_t row, group_weights *groups)
{
    const int num_weight = samples->num_weight;
    const int64_t group = view->group(view->context, samples->origin[row]);
    const int64_t from = samples->vis_first[row] * num_weight;
    double *to = groups->weight + group * groups->each +
                 (int64_t)samples->chan_base[row] * num_weight;
#pragma omp atomic write
    groups->origin[group] = samples->origin[row];
    for (int64_t k = 0; k < (int64_t)samples->num_chan[row] * num_weight; ++k) {
        const double weight = tess_samples_weight(samples, from + k);
        if (!(weight > 0)) continue;
#pragma omp atomic
        to[k] += weight;
    }
}

/* Adds a group to the response of a target. */
static void add_group(const imager_job *job, int target, const tess_samples *samples,
                      const group_weights *groups, int64_t group, double *power,
                      response_sums *to)
{
    int32_t origin = groups->origin[group], chan = 0;
    int32_t num_chan = (int32_t)job->view.num_chan;
    int64_t first = 0;
    const tess_samples row = {.is_double = true,
                              .num_pol = samples->num_pol,
                              .num_weight = samples->num_weight,
                              .num_rows = 1,
                              .num_vis = num_chan,
                              .chan_base = &chan,
                              .num_chan = &num_chan,
                              .vis_first = &first,
                              .origin = &origin,
                              .weight = groups->weight + group * groups->each,
                              .inv_lambda = samples->inv_lambda,
                              .origins = samples->origins};
    if (origin >= 0) add_row(job, target, &row, 0, power, to);
}

static tess_status add_groups(visset *set, int target, const tess_samples *samples,
                              const group_weights *groups)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    const imager_view *view = &job->view;
    bool complete = true;
    if (view->prepare) view->prepare(view->context, target);
#pragma omp parallel num_threads(job->layout->threads) reduction(&& : complete)
    {
        double *power = tess_alloc(view->num_chan * view->num_pol, sizeof *power);
        response_sums own = {0};
        complete = power != NULL;
#pragma omp for schedule(static)
        for (int64_t k = 0; k < groups->num_groups; ++k)
            if (complete) add_group(job, target, samples, groups, k, power, &own);
#pragma omp critical(tess_imager_response)
        add_sums(set, target, &own);
        tess_free(power);
    }
    if (!complete) TESS_FAIL(TESS_ERR_ALLOC, "responses of images");
cleanup:
    return status;
}

static tess_status add_all_groups(visset *set, const tess_samples *samples)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    group_weights groups = {0};
    TESS_TRY(create_groups(&job->view, samples, &groups));
#pragma omp parallel for num_threads(job->layout->threads) schedule(static)
    for (int64_t row = 0; row < samples->num_rows; ++row)
        add_to_group(&job->view, samples, row, &groups);
    for (int k = 0; k < imager_job_num_targets(job); ++k)
        TESS_TRY(add_groups(set, k, samples, &groups));
cleanup:
    free_groups(&groups);
    return status;
}

tess_status visset_response_add(visset *set, const tess_samples *samples)
{
    tess_status status = TESS_OK;
    const int num = imager_job_num_targets(set->job);
    if (!set->sums.response) return TESS_OK;
    if (are_worth(set, samples)) return add_all_groups(set, samples);
    for (int k = 0; k < num; ++k)
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
