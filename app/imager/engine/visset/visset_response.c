/* The responses of targets that take views of correlations: what their images make of a
 * source whose correlations the same view has made. An image over its response is in
 * true flux. Samples whose gains have no solution do not count in a target; their power
 * (imager_view.response) is NaN. */
#include <math.h>

#include "imager_targets.h"
#include "tess_exact.h"
#include "tess_mem.h"
#include "visset_private.h"

/* The sums of one thread, of one target. */
typedef struct response_sums {
    imager_response sum;
    tess_exact *exact; /* [2][num_pol], or NULL */
    int64_t unsolved;  /* samples without a solution */
} response_sums;

tess_status visset_response_create(visset *set)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    imager_responses *made = &set->sums.responses;
    const int num = imager_job_num_targets(job);
    if (!job->view.response && !job->view.counts) return TESS_OK;
    made->sum = tess_alloc_zero(num, sizeof *made->sum);
    if (job->layout->reproducible)
        made->exact =
            tess_alloc_zero((int64_t)num * 2 * job->view.num_pol, sizeof *made->exact);
    made->unsolved = tess_alloc_zero(num, sizeof *made->unsolved);
    if (!made->sum || !made->unsolved || (job->layout->reproducible && !made->exact))
        TESS_FAIL(TESS_ERR_ALLOC, "responses of %d images", num);
cleanup:
    return status;
}

void imager_responses_free(imager_responses *responses)
{
    tess_free(responses->sum);
    tess_free(responses->exact);
    tess_free(responses->unsolved);
    *responses = (imager_responses){0};
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

/* Adds a row of these powers [num_chan][num_pol]. The row stands for number[num_chan]
 * samples of weight; NULL: for itself. */
static void add_row(const imager_job *job, int target, const tess_samples *samples,
                    int64_t row, const double *power, const int64_t *number,
                    response_sums *to)
{
    const imager_view *view = &job->view;
    const int num_weight = samples->num_weight;
    if (view->counts && !view->counts(view->context, target, samples, row)) return;
    for (int32_t c = 0; c < samples->num_chan[row]; ++c) {
        double weight[TESS_MAX_POL];
        const double *own = power + (int64_t)c * view->num_pol;
        const int64_t at = (samples->vis_first[row] + c) * num_weight;
        for (int p = 0; p < view->num_pol; ++p)
            weight[p] = tess_samples_weight(samples, at + (num_weight == 1 ? 0 : p));
        add_sample(view->num_pol, own, weight, to);
        if (isnan(own[0])) to->unsolved += number ? number[c] : weight[0] > 0;
    }
}

/* Adds the sums of a thread to those of the set. */
static void add_sums(visset *set, int target, const response_sums *own)
{
    const int num_pol = set->job->view.num_pol;
    imager_response *all = &set->sums.responses.sum[target];
    tess_exact *exact = set->sums.responses.exact;
    set->sums.responses.unsolved[target] += own->unsolved;
    for (int p = 0; p < num_pol; ++p) {
        all->counted[p] += own->sum.counted[p];
        all->power[p] += own->sum.power[p];
    }
    for (int k = 0; own->exact && k < 2 * num_pol; ++k)
        for (int j = 0; j < TESS_EXACT_WORDS; ++j)
            exact[(int64_t)target * 2 * num_pol + k].word[j] += own->exact[k].word[j];
}

/* ---- rows of the same gains, together ---- */

/* Rows of a group (imager_view.group) have the same powers, so that these are found
 * once for all of them. */
typedef struct row_groups {
    int64_t num;
    int32_t *origin; /* [num] of one of its rows; −1: there is none */
    double *weight; /* [num][num_chan][num_weight] sums of the rows' weights, or NULL */
    int64_t
        *number;   /* [num][num_chan] of samples in `weight`; NULL: none is asked for */
    double *power; /* [num][num_chan][num_pol] of the target at work */
} row_groups;

/* More groups, or groups of few rows, would take longer than rows one by one. */
static bool are_worth(const visset *set, const tess_samples *samples)
{
    const imager_view *view = &set->job->view;
    const double values = (double)view->num_groups * (double)view->num_chan;
    return view->group && view->num_groups > 0 && view->response && samples->origin &&
           values * samples->num_weight <= (double)samples->num_vis;
}

static void free_groups(row_groups *groups)
{
    tess_free(groups->origin);
    tess_free(groups->weight);
    tess_free(groups->number);
    tess_free(groups->power);
}

/* Sums of weights are not exact: without them rows are added one by one. */
static tess_status create_groups(const imager_view *view, const tess_samples *samples,
                                 bool with_weights, row_groups *groups)
{
    tess_status status = TESS_OK;
    const int64_t each = view->num_groups * view->num_chan;
    const bool with_numbers = with_weights && view->lacks;
    groups->num = view->num_groups;
    groups->origin = tess_alloc(groups->num, sizeof *groups->origin);
    groups->power = tess_alloc(each * view->num_pol, sizeof *groups->power);
    if (with_weights)
        groups->weight =
            tess_alloc_zero(each * samples->num_weight, sizeof *groups->weight);
    if (with_numbers) groups->number = tess_alloc_zero(each, sizeof *groups->number);
    if (!groups->origin || !groups->power || (with_weights && !groups->weight) ||
        (with_numbers && !groups->number))
        TESS_FAIL(TESS_ERR_ALLOC, "responses of images");
    for (int64_t k = 0; k < groups->num; ++k)
        groups->origin[k] = -1;
cleanup:
    return status;
}

/* Adds a row to its group. */
static void add_to_group(const imager_view *view, const tess_samples *samples,
                         int64_t row, row_groups *groups)
{
    const int num_weight = samples->num_weight;
    const int64_t group = view->group(view->context, samples->origin[row]);
    const int64_t from = samples->vis_first[row] * num_weight;
    const int64_t chan = group * view->num_chan + samples->chan_base[row];
#pragma omp atomic write
    groups->origin[group] = samples->origin[row];
    if (!groups->weight) return;
    double *to = groups->weight + chan * num_weight;
    for (int64_t k = 0; k < (int64_t)samples->num_chan[row] * num_weight; ++k) {
        const double weight = tess_samples_weight(samples, from + k);
        if (!(weight > 0)) continue;
#pragma omp atomic
        to[k] += weight;
    }
    for (int32_t c = 0; groups->number && c < samples->num_chan[row]; ++c) {
        if (!(tess_samples_weight(samples, from + (int64_t)c * num_weight) > 0))
            continue;
#pragma omp atomic
        ++groups->number[chan + c];
    }
}

/* All channels of a group as a row of samples. */
typedef struct group_row {
    int32_t origin, chan, num_chan;
    int64_t first;
    tess_samples samples;
} group_row;

static void set_group_row(const imager_view *view, const tess_samples *like,
                          const row_groups *groups, int64_t group, group_row *row)
{
    const int64_t weights = group * view->num_chan * like->num_weight;
    row->origin = groups->origin[group];
    row->chan = 0;
    row->num_chan = (int32_t)view->num_chan;
    row->first = 0;
    row->samples =
        (tess_samples){.is_double = true,
                       .num_pol = like->num_pol,
                       .num_weight = like->num_weight,
                       .num_rows = 1,
                       .num_vis = view->num_chan,
                       .chan_base = &row->chan,
                       .num_chan = &row->num_chan,
                       .vis_first = &row->first,
                       .origin = &row->origin,
                       .weight = groups->weight ? groups->weight + weights : NULL,
                       .inv_lambda = like->inv_lambda,
                       .origins = like->origins};
}

/* Finds the powers of all groups for a target. */
static void find_powers(const imager_job *job, int target, const tess_samples *samples,
                        row_groups *groups)
{
    const imager_view *view = &job->view;
    const int64_t each = view->num_chan * view->num_pol;
#pragma omp parallel for num_threads(job->layout->threads) schedule(static)
    for (int64_t k = 0; k < groups->num; ++k) {
        group_row row;
        if (groups->origin[k] < 0) continue;
        set_group_row(view, samples, groups, k, &row);
        view->response(view->context, target, &row.samples, 0,
                       groups->power + k * each);
    }
}

/* ---- targets ---- */

/* The powers of a row: of its group, of itself in `own`, or those that `own` has. */
static const double *powers_of(const imager_view *view, int target,
                               const tess_samples *samples, int64_t row,
                               const row_groups *groups, double *own)
{
    if (groups->power) {
        const int64_t group = view->group(view->context, samples->origin[row]);
        return groups->power +
               (group * view->num_chan + samples->chan_base[row]) * view->num_pol;
    }
    if (view->response) view->response(view->context, target, samples, row, own);
    return own;
}

/* Adds row k of samples, or the sums of group k. */
static void add_item(const imager_job *job, int target, const tess_samples *samples,
                     int64_t k, const row_groups *groups, double *own,
                     response_sums *to)
{
    const imager_view *view = &job->view;
    const int64_t chan = k * view->num_chan;
    group_row row;
    if (!groups->weight) {
        add_row(job, target, samples, k,
                powers_of(view, target, samples, k, groups, own), NULL, to);
        return;
    }
    if (groups->origin[k] < 0) return;
    set_group_row(view, samples, groups, k, &row);
    add_row(job, target, &row.samples, 0, groups->power + chan * view->num_pol,
            groups->number ? groups->number + chan : NULL, to);
}

/* Adds the rows, or the sums of groups, to the response of a target. */
static tess_status add_target(visset *set, int target, const tess_samples *samples,
                              row_groups *groups)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    const bool is_exact = set->sums.responses.exact != NULL;
    const int num_pol = job->view.num_pol;
    const int64_t most = tess_samples_longest_row(samples, 0, samples->num_rows);
    const int64_t num = groups->weight ? groups->num : samples->num_rows;
    bool complete = true;
    if (job->view.prepare) job->view.prepare(job->view.context, target);
    if (groups->power) find_powers(job, target, samples, groups);
#pragma omp parallel num_threads(job->layout->threads) reduction(&& : complete)
    {
        double *own_power = tess_alloc(most * num_pol, sizeof *own_power);
        response_sums own = {0};
        if (is_exact) own.exact = tess_alloc_zero(2 * num_pol, sizeof *own.exact);
        complete = own_power && (own.exact || !is_exact);
        for (int64_t k = 0; own_power && k < most * num_pol; ++k)
            own_power[k] = 1; /* unless the view has others */
#pragma omp for schedule(static)
        for (int64_t k = 0; k < num; ++k)
            if (complete) add_item(job, target, samples, k, groups, own_power, &own);
#pragma omp critical(tess_imager_response)
        add_sums(set, target, &own);
        tess_free(own_power);
        tess_free(own.exact);
    }
    if (!complete) TESS_FAIL(TESS_ERR_ALLOC, "responses of images");
cleanup:
    return status;
}

tess_status visset_response_add(visset *set, const tess_samples *samples)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    row_groups groups = {0};
    if (!set->sums.responses.sum) return TESS_OK;
    if (are_worth(set, samples)) {
        TESS_TRY(
            create_groups(&job->view, samples, !set->sums.responses.exact, &groups));
#pragma omp parallel for num_threads(job->layout->threads) schedule(static)
        for (int64_t row = 0; row < samples->num_rows; ++row)
            add_to_group(&job->view, samples, row, &groups);
    }
    for (int k = 0; k < imager_job_num_targets(job); ++k)
        TESS_TRY(add_target(set, k, samples, &groups));
cleanup:
    free_groups(&groups);
    return status;
}

tess_status visset_response_sum(visset *set)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    const int num = imager_job_num_targets(job), num_pol = job->view.num_pol;
    const int64_t count = (int64_t)num * 2 * TESS_MAX_POL;
    imager_response *response = set->sums.responses.sum;
    tess_exact *exact = set->sums.responses.exact;
    if (!response) return TESS_OK;
    TESS_TRY(tess_comm_allreduce_i64(job->comm, set->sums.responses.unsolved, num,
                                     TESS_SUM));
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
