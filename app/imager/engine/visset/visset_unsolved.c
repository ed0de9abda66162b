/* Counts the samples that targets leave out because a gain has no solution: their
 * power (imager_view.response) is NaN. Rows of one group have the same powers, so that
 * these are found once for all of them. */
#include <math.h>

#include "imager_targets.h"
#include "tess_mem.h"
#include "visset_private.h"

tess_status visset_unsolved_create(visset *set)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    const int num = imager_job_num_targets(job);
    if (!job->view.response || !job->view.lacks) return TESS_OK;
    set->sums.unsolved = tess_alloc_zero(num, sizeof *set->sums.unsolved);
    if (!set->sums.unsolved) TESS_FAIL(TESS_ERR_ALLOC, "counts of %d images", num);
cleanup:
    return status;
}

/* Rows that are looked at: those of samples, or one for each group of them. */
typedef struct counted_rows {
    tess_samples samples;
    int64_t *number; /* [num_rows][num_chan] of samples that a channel of a group stands
                        for; NULL: one, if it has weight */
    int32_t *origin, *chan, *num_chan; /* of groups; owned */
    int64_t *first;
} counted_rows;

static void free_rows(counted_rows *rows)
{
    tess_free(rows->number);
    tess_free(rows->origin);
    tess_free(rows->chan);
    tess_free(rows->num_chan);
    tess_free(rows->first);
}

/* More groups than samples would take longer than rows one by one. */
static bool has_groups(const imager_view *view, const tess_samples *samples)
{
    const double values = (double)view->num_groups * (double)view->num_chan;
    return view->group && view->num_groups > 0 && samples->origin &&
           values <= (double)samples->num_vis;
}

static bool has_weight(const tess_samples *samples, int64_t sample)
{
    return tess_samples_weight(samples, sample * samples->num_weight) > 0;
}

/* Adds the samples of a row to their group. */
static void add_to_group(const imager_view *view, const tess_samples *samples,
                         int64_t row, const counted_rows *to)
{
    const int64_t group = view->group(view->context, samples->origin[row]);
    int64_t *number = to->number + group * view->num_chan + samples->chan_base[row];
#pragma omp atomic write
    to->origin[group] = samples->origin[row];
    for (int32_t c = 0; c < samples->num_chan[row]; ++c) {
        if (!has_weight(samples, samples->vis_first[row] + c)) continue;
#pragma omp atomic
        ++number[c];
    }
}

static tess_status alloc_groups(const imager_view *view, counted_rows *rows)
{
    tess_status status = TESS_OK;
    const int64_t num = view->num_groups;
    rows->number = tess_alloc_zero(num * view->num_chan, sizeof *rows->number);
    rows->origin = tess_alloc(num, sizeof *rows->origin);
    rows->chan = tess_alloc_zero(num, sizeof *rows->chan);
    rows->num_chan = tess_alloc_zero(num, sizeof *rows->num_chan);
    rows->first = tess_alloc_zero(num, sizeof *rows->first);
    if (!rows->number || !rows->origin || !rows->chan || !rows->num_chan ||
        !rows->first)
        TESS_FAIL(TESS_ERR_ALLOC, "groups of rows");
    for (int64_t k = 0; k < num; ++k)
        rows->origin[k] = -1;
cleanup:
    return status;
}

/* Makes a row of each group. */
static tess_status make_groups(const imager_job *job, const tess_samples *samples,
                               counted_rows *rows)
{
    tess_status status = TESS_OK;
    const imager_view *view = &job->view;
    TESS_TRY(alloc_groups(view, rows));
#pragma omp parallel for num_threads(job->layout->threads) schedule(static)
    for (int64_t row = 0; row < samples->num_rows; ++row)
        add_to_group(view, samples, row, rows);
    for (int64_t k = 0; k < view->num_groups; ++k) {
        rows->num_chan[k] = rows->origin[k] < 0 ? 0 : (int32_t)view->num_chan;
        rows->first[k] = k * view->num_chan;
    }
    rows->samples = (tess_samples){.num_rows = view->num_groups,
                                   .num_vis = view->num_groups * view->num_chan,
                                   .chan_base = rows->chan,
                                   .num_chan = rows->num_chan,
                                   .vis_first = rows->first,
                                   .origin = rows->origin,
                                   .inv_lambda = samples->inv_lambda,
                                   .origins = samples->origins};
cleanup:
    return status;
}

/* The samples of a row without a solution, of which power[num_chan][num_pol] is room
 * for their powers. */
static int64_t count_row(const imager_job *job, int target, const counted_rows *rows,
                         int64_t row, double *power)
{
    const imager_view *view = &job->view;
    const tess_samples *samples = &rows->samples;
    int64_t count = 0;
    if (samples->num_chan[row] == 0) return 0;
    view->response(view->context, target, samples, row, power);
    for (int32_t c = 0; c < samples->num_chan[row]; ++c) {
        const int64_t sample = samples->vis_first[row] + c;
        if (!isnan(power[(int64_t)c * view->num_pol])) continue;
        count += rows->number ? rows->number[sample] : has_weight(samples, sample);
    }
    return count;
}

static tess_status count_target(visset *set, int target, const counted_rows *rows)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    const int64_t most =
        tess_samples_longest_row(&rows->samples, 0, rows->samples.num_rows);
    int64_t count = 0;
    bool complete = true;
    if (job->view.prepare) job->view.prepare(job->view.context, target);
#pragma omp parallel num_threads(job->layout->threads) reduction(&& : complete) \
    reduction(+ : count)
    {
        double *power = tess_alloc(most * job->view.num_pol, sizeof *power);
        complete = power != NULL;
#pragma omp for schedule(static)
        for (int64_t row = 0; row < rows->samples.num_rows; ++row)
            if (complete) count += count_row(job, target, rows, row, power);
        tess_free(power);
    }
    if (!complete) TESS_FAIL(TESS_ERR_ALLOC, "samples without a solution");
    set->sums.unsolved[target] += count;
cleanup:
    return status;
}

tess_status visset_unsolved_add(visset *set, const tess_samples *samples)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    counted_rows rows = {.samples = *samples}; /* borrowed */
    if (!set->sums.unsolved) return TESS_OK;
    if (has_groups(&job->view, samples)) TESS_TRY(make_groups(job, samples, &rows));
    for (int k = 0; k < imager_job_num_targets(job); ++k)
        TESS_TRY(count_target(set, k, &rows));
cleanup:
    free_rows(&rows);
    return status;
}

tess_status visset_unsolved_sum(visset *set)
{
    if (!set->sums.unsolved) return TESS_OK;
    return tess_comm_allreduce_i64(set->job->comm, set->sums.unsolved,
                                   imager_job_num_targets(set->job), TESS_SUM);
}
