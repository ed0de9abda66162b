/* Which brick each visibility belongs to, and the order of work that follows. */
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "locate.h"
#include "tess_mem.h"
#include "tess_samples.h"

/* A row is cut by looking at its two end channels first: each grid coordinate is
 * monotonic in frequency, so equal ends mean one brick, unless the row spans so wide a
 * band that it could leave the brick and wrap back into it. */
static const double MAX_BAND_RATIO = 1.5;

static int64_t key_at(const tess_grid_plan *plan, const tess_row_scale *row,
                      double inv_lambda)
{
    const int support = plan->kernel.support;
    const int64_t u = tess_footprint_start(row->a * inv_lambda, support, plan->nu);
    const int64_t v = tess_footprint_start(row->b * inv_lambda, support, plan->nv);
    const int64_t plane =
        tess_plane_start(plan, tess_plane_coordinate(plan, row->w * inv_lambda));
    return tess_grid_brick_key(plan, plane / plan->block_planes, u / TESS_TILE,
                               v / TESS_TILE);
}

int64_t tess_brick_key_of(const tess_grid_plan *plan, const double uvw_m[3],
                          double inv_lambda)
{
    const tess_row_scale row = tess_row_scale_of(plan, uvw_m);
    return key_at(plan, &row, inv_lambda);
}

static bool ignored(const tess_samples *samples, int64_t k)
{
    for (int j = 0; j < samples->num_weight; ++j) {
        const int64_t at = k * samples->num_weight + j;
        const bool zero = samples->is_double ? ((const double *)samples->weight)[at] == 0
                                             : ((const float *)samples->weight)[at] == 0;
        if (!zero) return false;
    }
    return true;
}

static bool is_monotonic(const double *inv_lambda, int64_t count)
{
    if (count < 2) return true;
    const bool up = inv_lambda[1] >= inv_lambda[0];
    for (int64_t c = 1; c < count; ++c)
        if ((inv_lambda[c] >= inv_lambda[c - 1]) != up) return false;
    const double ratio = inv_lambda[count - 1] / inv_lambda[0];
    return ratio < MAX_BAND_RATIO && ratio > 1 / MAX_BAND_RATIO;
}

/* What is known of a row's channels; the same for all rows of a segment. */
typedef struct band {
    int32_t base, count;
    bool monotonic;
} band;

typedef struct run_buffer {
    tess_run *run;
    int64_t count, capacity;
} run_buffer;

static int emit(run_buffer *out, int64_t brick, const tess_samples *samples, int64_t row,
                int32_t begin, int32_t end)
{
    if (tess_grow((void **)&out->run, &out->capacity, out->count + 1, sizeof *out->run))
        return -1;
    out->run[out->count++] = (tess_run){.brick = brick,
                                        .first = samples->vis_first[row] + begin,
                                        .row = (int32_t)row,
                                        .chan = samples->chan_base[row] + begin,
                                        .count = end - begin};
    return 0;
}

/* Last channel + 1 of the run that begins at `begin` in brick `key`, for a monotonic band:
 * the border is found by bisection. */
static int32_t run_end(const tess_grid_plan *plan, const tess_row_scale *scale,
                       const double *inv_lambda, int32_t begin, int32_t end, int64_t key)
{
    if (key_at(plan, scale, inv_lambda[end - 1]) == key) return end;
    int32_t inside = begin, outside = end - 1;
    while (outside - inside > 1) {
        const int32_t middle = (inside + outside) / 2;
        *(key_at(plan, scale, inv_lambda[middle]) == key ? &inside : &outside) = middle;
    }
    return outside;
}

static int cut_row(const tess_grid_plan *plan, const tess_samples *samples, int64_t row,
                   const band *channels, bool skip_ignored, run_buffer *out)
{
    const tess_row_scale scale = tess_row_scale_of(plan, samples->uvw_m + 3 * row);
    const double *inv_lambda = samples->inv_lambda + channels->base;
    const int64_t first = samples->vis_first[row];
    int32_t begin = 0, end = channels->count;
    /* nor may the band be so long that it wraps around the grid */
    const double span = fabs(inv_lambda[end - 1] - inv_lambda[0]);
    const bool monotonic = channels->monotonic &&
                           fabs(scale.a) * span < 0.25 * (double)plan->nu &&
                           fabs(scale.b) * span < 0.25 * (double)plan->nv;
    if (skip_ignored) {
        while (begin < end && ignored(samples, first + begin)) ++begin;
        while (begin < end && ignored(samples, first + end - 1)) --end;
    }
    while (begin < end) {
        const int64_t key = key_at(plan, &scale, inv_lambda[begin]);
        int32_t stop = begin + 1;
        if (monotonic)
            stop = run_end(plan, &scale, inv_lambda, begin, end, key);
        else
            while (stop < end && key_at(plan, &scale, inv_lambda[stop]) == key) ++stop;
        if (emit(out, key, samples, row, begin, stop)) return -1;
        begin = stop;
        while (skip_ignored && begin < end && ignored(samples, first + begin)) ++begin;
    }
    return 0;
}

static int cut_rows(const tess_grid_plan *plan, const tess_samples *samples,
                    int64_t row_first, int64_t row_end, bool skip_ignored,
                    run_buffer *out)
{
    band current = {.base = -1};
    for (int64_t row = row_first; row < row_end; ++row) {
        if (samples->chan_base[row] != current.base ||
            samples->num_chan[row] != current.count) {
            current.base = samples->chan_base[row];
            current.count = samples->num_chan[row];
            current.monotonic =
                is_monotonic(samples->inv_lambda + current.base, current.count);
        }
        if (cut_row(plan, samples, row, &current, skip_ignored, out)) return -1;
    }
    return 0;
}

static tess_status join(tess_brick_list *list, const run_buffer *part, int num_parts)
{
    tess_status status = TESS_OK;
    int64_t total = list->num_runs;
    for (int t = 0; t < num_parts; ++t) total += part[t].count;
    if (tess_grow((void **)&list->run, &list->capacity_runs, total, sizeof *list->run))
        TESS_FAIL(TESS_ERR_ALLOC, "no memory to sort %lld runs of visibilities",
                  (long long)total);
    for (int t = 0; t < num_parts; ++t) {
        if (part[t].count > 0)
            memcpy(list->run + list->num_runs, part[t].run,
                   (size_t)part[t].count * sizeof *list->run);
        list->num_runs += part[t].count;
    }
cleanup:
    return status;
}

tess_status tess_brick_list_append(const tess_grid_plan *plan, const tess_samples *samples,
                                   int64_t row_first, int64_t row_end, bool skip_ignored,
                                   int num_threads, tess_brick_list *list)
{
    tess_status status = TESS_OK;
    run_buffer *part = tess_alloc_zero(num_threads, sizeof *part);
    bool failed = false;
    if (!part) TESS_FAIL(TESS_ERR_ALLOC, "run buffers");
    #pragma omp parallel for num_threads(num_threads) schedule(static, 1) \
        reduction(|| : failed)
    for (int t = 0; t < num_threads; ++t) {
        const int64_t rows = row_end - row_first;
        const int64_t begin = row_first + rows * t / num_threads;
        const int64_t end = row_first + rows * (t + 1) / num_threads;
        failed = cut_rows(plan, samples, begin, end, skip_ignored, &part[t]) != 0;
    }
    if (failed) TESS_FAIL(TESS_ERR_ALLOC, "no memory for the runs of visibilities");
    TESS_TRY(join(list, part, num_threads));
cleanup:
    for (int t = 0; part && t < num_threads; ++t) tess_free(part[t].run);
    tess_free(part);
    return status;
}

/* ---- stable parallel radix sort ---- */

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

static int digit_of(const tess_run *run, int shift)
{
    return (int)((run->brick >> shift) & (DIGITS - 1));
}

/* One pass: count digits per thread, turn counts into places, move. */
static void radix_pass(const tess_run *from, tess_run *to, int64_t count, int shift,
                       int num_threads, int64_t *place)
{
    memset(place, 0, (size_t)num_threads * DIGITS * sizeof *place);
    #pragma omp parallel for num_threads(num_threads) schedule(static, 1)
    for (int t = 0; t < num_threads; ++t)
        for (int64_t k = count * t / num_threads; k < count * (t + 1) / num_threads; ++k)
            ++place[t * DIGITS + digit_of(&from[k], shift)];
    int64_t at = 0;
    for (int d = 0; d < DIGITS; ++d)
        for (int t = 0; t < num_threads; ++t) {
            const int64_t n = place[t * DIGITS + d];
            place[t * DIGITS + d] = at;
            at += n;
        }
    #pragma omp parallel for num_threads(num_threads) schedule(static, 1)
    for (int t = 0; t < num_threads; ++t)
        for (int64_t k = count * t / num_threads; k < count * (t + 1) / num_threads; ++k)
            to[place[t * DIGITS + digit_of(&from[k], shift)]++] = from[k];
}

static tess_status sort_runs(tess_brick_list *list, int num_threads)
{
    tess_status status = TESS_OK;
    int64_t largest = 0;
    for (int64_t k = 0; k < list->num_runs; ++k)
        if (list->run[k].brick > largest) largest = list->run[k].brick;
    tess_run *spare = tess_alloc(list->capacity_runs, sizeof *spare);
    int64_t *place = tess_alloc((int64_t)num_threads * DIGITS, sizeof *place);
    if (!spare || !place)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory to sort %lld runs of visibilities",
                  (long long)list->num_runs);
    for (int shift = 0; shift < 63 && (largest >> shift) > 0; shift += DIGIT_BITS) {
        radix_pass(list->run, spare, list->num_runs, shift, num_threads, place);
        tess_run *swap = list->run;
        list->run = spare;
        spare = swap;
    }
cleanup:
    tess_free(spare);
    tess_free(place);
    return status;
}

static tess_status index_bricks(tess_brick_list *list)
{
    tess_status status = TESS_OK;
    int64_t count = 0;
    for (int64_t k = 0; k < list->num_runs; ++k)
        count += k == 0 || list->run[k].brick != list->run[k - 1].brick;
    tess_free(list->key);
    tess_free(list->first_run);
    tess_free(list->num_vis);
    list->key = tess_alloc(count, sizeof *list->key);
    list->first_run = tess_alloc(count + 1, sizeof *list->first_run);
    list->num_vis = tess_alloc_zero(count, sizeof *list->num_vis);
    if (!list->key || !list->first_run || !list->num_vis)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for %lld bricks", (long long)count);
    list->num_bricks = 0;
    for (int64_t k = 0; k < list->num_runs; ++k) {
        if (k == 0 || list->run[k].brick != list->run[k - 1].brick) {
            list->key[list->num_bricks] = list->run[k].brick;
            list->first_run[list->num_bricks++] = k;
        }
        list->num_vis[list->num_bricks - 1] += list->run[k].count;
    }
    list->first_run[list->num_bricks] = list->num_runs;
cleanup:
    return status;
}

tess_status tess_brick_list_sort(tess_brick_list *list, int num_threads)
{
    tess_status status = TESS_OK;
    if (list->num_runs > 0) TESS_TRY(sort_runs(list, num_threads));
    TESS_TRY(index_bricks(list));
cleanup:
    return status;
}

void tess_brick_list_free(tess_brick_list *list)
{
    tess_free(list->run);
    tess_free(list->key);
    tess_free(list->first_run);
    tess_free(list->num_vis);
    memset(list, 0, sizeof *list);
}
