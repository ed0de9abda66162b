/* Finds the brick to which each visibility belongs, and the order of work that follows.
 */
#include <string.h>

#include "keys.h"
#include "tess_bricks.h"
#include "tess_counting.h"
#include "tess_mem.h"
#include "tess_samples.h"

static int64_t key_at(const tess_grid_plan *plan, const tess_row_scale *row,
                      double inv_lambda)
{
    const int support = plan->footprint;
    const int64_t u = tess_footprint_start(row->a * inv_lambda, support, plan->nu);
    const int64_t v = tess_footprint_start(row->b * inv_lambda, support, plan->nv);
    const int64_t plane =
        tess_plane_start(plan, tess_plane_coordinate(plan, row->w * inv_lambda));
    return tess_grid_brick_key(plan, plane / plan->block_planes, u / plan->tile,
                               v / plan->tile);
}

int64_t tess_brick_key_of(const tess_grid_plan *plan, const double uvw_m[3],
                          double inv_lambda)
{
    const tess_row_scale row = tess_row_scale_of(plan, uvw_m);
    return key_at(plan, &row, inv_lambda);
}

/* The keys of this many channels are computed together. */
enum { KEYS = 256 };

/* The array into which a thread writes its runs. */
typedef struct run_sink {
    tess_run *run;
    int64_t count;
} run_sink;

/* Appends the samples [begin, end) of a row, which lie in one brick, as a run. Ignored
 * samples at its ends are left out. */
static void emit_segment(const tess_samples *samples, int64_t row, int64_t key,
                         int32_t begin, int32_t end, bool skip_ignored, run_sink *out)
{
    const int64_t first = samples->vis_first[row];
    while (skip_ignored && begin < end && tess_samples_ignored(samples, first + begin))
        ++begin;
    while (skip_ignored && begin < end &&
           tess_samples_ignored(samples, first + end - 1))
        --end;
    if (begin == end) return;
    out->run[out->count++] = (tess_run){.brick = key,
                                        .first = first + begin,
                                        .row = (int32_t)row,
                                        .chan = samples->chan_base[row] + begin,
                                        .count = end - begin};
}

static void cut_row(const tess_grid_plan *plan, const tess_samples *samples,
                    int64_t row, bool skip_ignored, const key_table *keys,
                    run_sink *out)
{
    const tess_row_scale scale = tess_row_scale_of(plan, samples->uvw_m + 3 * row);
    const double *inv_lambda = samples->inv_lambda + samples->chan_base[row];
    const int32_t count = samples->num_chan[row];
    double key[KEYS + 1]; /* key[0] is that of the sample before */
    int32_t begin = 0;
    key[0] = -1;
    for (int32_t first = 0; first < count; first += KEYS) {
        const int32_t n = count - first < KEYS ? count - first : KEYS;
        int16_t change[KEYS];
        int changes = 0;
        keys->row(plan, &scale, inv_lambda + first, n, key + 1);
        for (int32_t k = 0; k < n; ++k) { /* no branches, because the processor would
                                             guess them wrongly */
            change[changes] = (int16_t)k;
            changes += key[k + 1] != key[k];
        }
        for (int c = 0; c < changes; ++c) {
            const int32_t end = first + change[c];
            emit_segment(samples, row, (int64_t)key[change[c]], begin, end,
                         skip_ignored, out);
            begin = end;
        }
        key[0] = key[n];
    }
    emit_segment(samples, row, (int64_t)key[0], begin, count, skip_ignored, out);
}

/* Counts the runs of rows [row_first, row_end). There may be fewer runs in the end,
 * because ignored samples count here. */
static int64_t count_runs(const tess_grid_plan *plan, const tess_samples *samples,
                          int64_t row_first, int64_t row_end, const key_table *keys)
{
    double key[KEYS + 1];
    int64_t total = 0;
    for (int64_t row = row_first; row < row_end; ++row) {
        const tess_row_scale scale = tess_row_scale_of(plan, samples->uvw_m + 3 * row);
        const double *inv_lambda = samples->inv_lambda + samples->chan_base[row];
        const int32_t count = samples->num_chan[row];
        if (count == 1) { /* one run, as in channels of cubes: no key is needed */
            ++total;
            continue;
        }
        key[0] = -1;
        for (int32_t first = 0; first < count; first += KEYS) {
            const int32_t n = count - first < KEYS ? count - first : KEYS;
            int changes = 0;
            keys->row(plan, &scale, inv_lambda + first, n, key + 1);
            for (int32_t k = 0; k < n; ++k)
                changes += key[k + 1] != key[k];
            total += changes;
            key[0] = key[n];
        }
    }
    return total;
}

int32_t tess_runs_of_row(const tess_grid_plan *plan, const tess_samples *samples,
                         int64_t row, bool skip_ignored, tess_run *run)
{
    run_sink sink = {.run = run};
    cut_row(plan, samples, row, skip_ignored, plan->keys, &sink);
    return (int32_t)sink.count;
}

/* Counts the runs of each thread's rows, and makes room for them all in the list, where
 * part[t].run is where thread t writes. They are counted first: lists that grow would
 * be copied, and touch twice the memory. TESS_ERR_ALLOC. */
static tess_status make_room(const tess_grid_plan *plan, const tess_samples *samples,
                             int64_t row_first, int64_t rows, int num_threads,
                             run_sink *part, tess_brick_list *list)
{
    tess_status status = TESS_OK;
    int64_t total = list->num_runs;
#pragma omp parallel for num_threads(num_threads) schedule(static, 1)
    for (int t = 0; t < num_threads; ++t)
        part[t].count =
            count_runs(plan, samples, row_first + rows * t / num_threads,
                       row_first + rows * (t + 1) / num_threads, plan->keys);
    for (int t = 0; t < num_threads; ++t)
        total += part[t].count;
    if (tess_grow((void **)&list->run, &list->capacity_runs, total, sizeof *list->run))
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for %lld runs of visibilities",
                  (long long)total);
    total = list->num_runs;
    for (int t = 0; t < num_threads; ++t) {
        part[t].run = list->run + total;
        total += part[t].count;
        part[t].count = 0;
    }
cleanup:
    return status;
}

/* Appends the runs of all threads, which lie in the memory of the list, and closes the
 * gaps that ignored samples have left between them. */
static void close_gaps(const run_sink *part, int num_threads, tess_brick_list *list)
{
    for (int t = 0; t < num_threads; ++t) {
        tess_run *to = list->run + list->num_runs;
        if (to != part[t].run)
            memmove(to, part[t].run, (size_t)part[t].count * sizeof *to);
        list->num_runs += part[t].count;
    }
}

tess_status tess_brick_list_append(const tess_grid_plan *plan,
                                   const tess_samples *samples, int64_t row_first,
                                   int64_t row_end, bool skip_ignored, int num_threads,
                                   tess_brick_list *list)
{
    tess_status status = TESS_OK;
    const int64_t rows = row_end - row_first;
    run_sink *part = tess_alloc_zero(num_threads, sizeof *part);
    if (!part) TESS_FAIL(TESS_ERR_ALLOC, "lists of runs");
    TESS_TRY(make_room(plan, samples, row_first, rows, num_threads, part, list));
#pragma omp parallel for num_threads(num_threads) schedule(static, 1)
    for (int t = 0; t < num_threads; ++t) {
        run_sink mine = part[t]; /* if threads counted side by side, they would share a
                                    cache line */
        for (int64_t k = rows * t / num_threads; k < rows * (t + 1) / num_threads; ++k)
            cut_row(plan, samples, row_first + k, skip_ignored, plan->keys, &mine);
        part[t] = mine;
    }
    close_gaps(part, num_threads, list);
cleanup:
    tess_free(part);
    return status;
}

/* ---- stable parallel radix sort ---- */

/* Bits of a digit. There are few, so that the places stay in cache. All bits form one
 * digit if there are far more runs than places of all threads. */
enum { DIGIT_BITS = 11, MOST_BITS = 18 };

/* Keys are counted from the smallest one. The keys of one of many ranks then need fewer
 * bits. */
typedef struct key_range {
    int64_t smallest;
    int bits;
} key_range;

static int64_t digit_of(const tess_run *run, int64_t smallest, int shift,
                        int64_t digits)
{
    return ((run->brick - smallest) >> shift) & (digits - 1);
}

/* Does one pass of the sort: counts digits for each thread, turns counts into places,
 * and moves the runs. */
static void radix_pass(const tess_brick_list *list, tess_run *to, int64_t smallest,
                       int shift, int64_t digits, int num_threads, int64_t *places)
{
    const tess_run *from = list->run;
    const int64_t count = list->num_runs;
#pragma omp parallel for num_threads(num_threads) schedule(static, 1)
    for (int t = 0; t < num_threads; ++t) {
        int64_t *place = places + t * digits;
        memset(place, 0, (size_t)digits * sizeof *place);
        const int64_t end = tess_share_first(count, t + 1, num_threads);
        for (int64_t k = tess_share_first(count, t, num_threads); k < end; ++k)
            ++place[digit_of(&from[k], smallest, shift, digits)];
    }
    tess_counts_to_places(places, digits, num_threads);
#pragma omp parallel for num_threads(num_threads) schedule(static, 1)
    for (int t = 0; t < num_threads; ++t) {
        int64_t *place = places + t * digits;
        const int64_t end = tess_share_first(count, t + 1, num_threads);
        for (int64_t k = tess_share_first(count, t, num_threads); k < end; ++k)
            to[place[digit_of(&from[k], smallest, shift, digits)]++] = from[k];
    }
}

static key_range range_of_keys(const tess_brick_list *list, int num_threads)
{
    int64_t largest = 0, smallest = INT64_MAX;
    key_range range = {0};
#pragma omp parallel for num_threads(num_threads) schedule(static)                     \
    reduction(max                                                                      \
              : largest) reduction(min                                                 \
                                   : smallest)
    for (int64_t k = 0; k < list->num_runs; ++k) {
        const int64_t key = list->run[k].brick;
        largest = key > largest ? key : largest;
        smallest = key < smallest ? key : smallest;
    }
    range.smallest = smallest;
    while ((largest - smallest) >> range.bits > 0)
        ++range.bits;
    return range;
}

static tess_status sort_runs(tess_brick_list *list, int num_threads)
{
    tess_status status = TESS_OK;
    const key_range range = range_of_keys(list, num_threads);
    const int bits = range.bits;
    const bool at_once = bits <= MOST_BITS && num_threads <= list->num_runs >> bits;
    const int passes = at_once ? bits > 0 : (bits + DIGIT_BITS - 1) / DIGIT_BITS;
    const int digit_bits = passes > 0 ? (bits + passes - 1) / passes : 0;
    const int64_t digits = (int64_t)1 << digit_bits;
    tess_run *spare =
        list->spare ? list->spare : tess_alloc(list->capacity_runs, sizeof *spare);
    list->spare = NULL;
    int64_t *places = tess_alloc(num_threads * digits, sizeof *places);
    if (!spare || !places)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory to sort %lld runs of visibilities",
                  (long long)list->num_runs);
    for (int pass = 0; pass < passes; ++pass) {
        radix_pass(list, spare, range.smallest, pass * digit_bits, digits, num_threads,
                   places);
        tess_run *swap = list->run;
        list->run = spare;
        spare = swap;
    }
cleanup:
    tess_free(spare);
    tess_free(places);
    return status;
}

/* ---- index of bricks ---- */

static bool starts_brick(const tess_brick_list *list, int64_t run)
{
    return run == 0 || list->run[run].brick != list->run[run - 1].brick;
}

static int64_t count_starts(const tess_brick_list *list, int64_t begin, int64_t end)
{
    int64_t count = 0;
    for (int64_t k = begin; k < end; ++k)
        count += starts_brick(list, k);
    return count;
}

/* Notes the bricks that start in [begin, end), of which the first has the number
 * `brick`. */
static void note_bricks(tess_brick_list *list, int64_t begin, int64_t end,
                        int64_t brick)
{
    int64_t k = begin;
    while (k < end && !starts_brick(list, k))
        ++k;
    while (k < end) {
        int64_t num_vis = 0;
        list->key[brick] = list->run[k].brick;
        list->first_run[brick] = k;
        do
            num_vis += list->run[k++].count;
        while (k < list->num_runs && !starts_brick(list, k));
        list->num_vis[brick++] = num_vis;
    }
}

static tess_status index_bricks(tess_brick_list *list, int num_threads)
{
    tess_status status = TESS_OK;
    const int64_t runs = list->num_runs;
    int64_t count = 0;
    int64_t *part = tess_alloc(num_threads, sizeof *part);
    if (!part) TESS_FAIL(TESS_ERR_ALLOC, "bricks of threads");
#pragma omp parallel for num_threads(num_threads) schedule(static, 1)
    for (int t = 0; t < num_threads; ++t)
        part[t] =
            count_starts(list, runs * t / num_threads, runs * (t + 1) / num_threads);
    for (int t = 0; t < num_threads; ++t) {
        const int64_t starts = part[t];
        part[t] = count;
        count += starts;
    }
    tess_free(list->key);
    tess_free(list->first_run);
    tess_free(list->num_vis);
    list->key = tess_alloc(count, sizeof *list->key);
    list->first_run = tess_alloc(count + 1, sizeof *list->first_run);
    list->num_vis = tess_alloc(count, sizeof *list->num_vis);
    if (!list->key || !list->first_run || !list->num_vis)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for %lld bricks", (long long)count);
#pragma omp parallel for num_threads(num_threads) schedule(static, 1)
    for (int t = 0; t < num_threads; ++t)
        note_bricks(list, runs * t / num_threads, runs * (t + 1) / num_threads,
                    part[t]);
    list->num_bricks = count;
    list->first_run[count] = runs;
cleanup:
    tess_free(part);
    return status;
}

tess_status tess_brick_list_sort(tess_brick_list *list, int num_threads)
{
    tess_status status = TESS_OK;
    if (list->num_runs > 0) TESS_TRY(sort_runs(list, num_threads));
    TESS_TRY(index_bricks(list, num_threads));
cleanup:
    return status;
}

/* ---- counting alone ---- */

/* Counters of all keys are faster than sorting if there are at most this many keys for
 * each sample. */
enum { KEYS_PER_SAMPLE = 2 };

/* Numbers of visibilities and runs of a brick. */
typedef struct counter {
    int64_t num_vis, num_runs;
} counter;

/* Makes bricks of the counters of all keys: a counter that is not 0 is a brick. */
static tess_status take_counts(const counter *count, int64_t num_keys,
                               tess_brick_list *list)
{
    tess_status status = TESS_OK;
    int64_t bricks = 0, runs = 0;
    for (int64_t key = 0; key < num_keys; ++key)
        bricks += count[key].num_vis > 0;
    list->key = tess_alloc(bricks, sizeof *list->key);
    list->num_vis = tess_alloc(bricks, sizeof *list->num_vis);
    list->first_run = tess_alloc(bricks + 1, sizeof *list->first_run);
    if (!list->key || !list->num_vis || !list->first_run)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for %lld bricks", (long long)bricks);
    for (int64_t key = 0; key < num_keys; ++key) {
        if (count[key].num_vis == 0) continue;
        list->key[list->num_bricks] = key;
        list->first_run[list->num_bricks] = runs;
        list->num_vis[list->num_bricks++] = count[key].num_vis;
        runs += count[key].num_runs;
    }
    list->first_run[bricks] = list->num_runs = runs;
cleanup:
    return status;
}

/* Adds to a counter. Threads share the counters; a single thread needs no atomic
 * addition. */
static void add_to(int64_t *count, int64_t more, bool shared)
{
    if (!shared) {
        *count += more;
        return;
    }
#pragma omp atomic
    *count += more;
}

static tess_status count_by_key(const tess_grid_plan *plan, const tess_samples *samples,
                                bool skip_ignored, int num_threads, int64_t num_keys,
                                tess_brick_list *list)
{
    tess_status status = TESS_OK;
    const int64_t most = tess_samples_longest_row(samples, 0, samples->num_rows);
    counter *count = tess_alloc_zero(num_keys, sizeof *count);
    tess_run *runs = tess_alloc(num_threads * most, sizeof *runs);
    if (!count || !runs) TESS_FAIL(TESS_ERR_ALLOC, "counters of bricks");
#pragma omp parallel for num_threads(num_threads) schedule(static, 1)
    for (int t = 0; t < num_threads; ++t) {
        tess_run *run = runs + t * most;
        const int64_t end = samples->num_rows * (t + 1) / num_threads;
        for (int64_t row = samples->num_rows * t / num_threads; row < end; ++row) {
            const int32_t found =
                tess_runs_of_row(plan, samples, row, skip_ignored, run);
            for (int32_t k = 0; k < found; ++k) {
                counter *of = &count[run[k].brick];
                add_to(&of->num_vis, run[k].count, num_threads > 1);
                add_to(&of->num_runs, 1, num_threads > 1);
            }
        }
    }
    status = take_counts(count, num_keys, list);
cleanup:
    tess_free(count);
    tess_free(runs);
    return status;
}

/* Counts by sorting, for few samples on many bricks. */
static tess_status count_sorted(const tess_grid_plan *plan, const tess_samples *samples,
                                bool skip_ignored, int num_threads,
                                tess_brick_list *list)
{
    tess_status status = TESS_OK;
    tess_brick_list runs = {0};
    TESS_TRY(tess_brick_list_append(plan, samples, 0, samples->num_rows, skip_ignored,
                                    num_threads, &runs));
    TESS_TRY(tess_brick_list_sort(&runs, num_threads));
    list->key = runs.key;
    list->num_vis = runs.num_vis;
    list->first_run = runs.first_run;
    list->num_bricks = runs.num_bricks;
    list->num_runs = runs.num_runs;
    runs.key = runs.num_vis = runs.first_run = NULL;
cleanup:
    tess_brick_list_free(&runs);
    return status;
}

tess_status tess_brick_list_count(const tess_grid_plan *plan,
                                  const tess_samples *samples, bool skip_ignored,
                                  int num_threads, tess_brick_list *list)
{
    const int64_t num_keys = plan->num_blocks * plan->tiles_u * plan->tiles_v;
    return num_keys <= KEYS_PER_SAMPLE * samples->num_vis
               ? count_by_key(plan, samples, skip_ignored, num_threads, num_keys, list)
               : count_sorted(plan, samples, skip_ignored, num_threads, list);
}

/* ---- planes ---- */

/* The uvw of so many rows are prefetched, because rows lie anywhere in memory. */
enum { RUNS_AHEAD = 16 };

/* Widens [*low, *high] to the range of w of a run. Inside a run, w grows with 1/λ. */
static void widen_to_run(const tess_grid_plan *plan, const tess_samples *samples,
                         bool in_order, const tess_run *run, double *low, double *high)
{
    const double *inv_lambda = samples->inv_lambda + run->chan;
    const double w = tess_row_scale_of(plan, samples->uvw_m + 3 * (int64_t)run->row).w;
    const double last = inv_lambda[run->count - 1];
    double least = inv_lambda[0] < last ? inv_lambda[0] : last;
    double most = inv_lambda[0] < last ? last : inv_lambda[0];
    for (int32_t c = 1; !in_order && c < run->count; ++c) {
        least = inv_lambda[c] < least ? inv_lambda[c] : least;
        most = inv_lambda[c] > most ? inv_lambda[c] : most;
    }
    if (w * least < *low) *low = w * least;
    if (w * most > *high) *high = w * most;
}

tess_plane_span tess_brick_list_planes(const tess_grid_plan *plan,
                                       const tess_samples *samples, bool in_order,
                                       const tess_brick_list *list, int64_t brick)
{
    const int64_t end = list->first_run[brick + 1];
    double low = INFINITY, high = -INFINITY;
    for (int64_t r = list->first_run[brick]; r < end; ++r) {
        if (r + RUNS_AHEAD < end)
            __builtin_prefetch(samples->uvw_m +
                               3 * (int64_t)list->run[r + RUNS_AHEAD].row);
        widen_to_run(plan, samples, in_order, &list->run[r], &low, &high);
    }
    const int64_t first = tess_plane_start(plan, tess_plane_coordinate(plan, low));
    const int64_t last = tess_plane_start(plan, tess_plane_coordinate(plan, high));
    return (tess_plane_span){(int32_t)first, (int32_t)last + plan->w_support};
}

tess_status tess_brick_list_count_planes(const tess_grid_plan *plan,
                                         const tess_samples *samples, bool skip_ignored,
                                         int num_threads, tess_brick_list *list)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_brick_list_append(plan, samples, 0, samples->num_rows, skip_ignored,
                                    num_threads, list));
    TESS_TRY(tess_brick_list_sort(list, num_threads));
    list->planes = tess_alloc(list->num_bricks, sizeof *list->planes);
    if (!list->planes)
        TESS_FAIL(TESS_ERR_ALLOC, "planes of %lld bricks", (long long)list->num_bricks);
    const bool in_order = tess_samples_in_order(samples);
#pragma omp parallel for num_threads(num_threads) schedule(dynamic, 16)
    for (int64_t b = 0; b < list->num_bricks; ++b)
        list->planes[b] = tess_brick_list_planes(plan, samples, in_order, list, b);
    tess_free(list->run);
    list->run = NULL;
    list->capacity_runs = 0;
cleanup:
    return status;
}

/* ---- all of it ---- */

tess_status tess_brick_list_make(const tess_grid_plan *plan,
                                 const tess_samples *samples, bool skip_ignored,
                                 tess_brick_list *list)
{
    tess_status status = TESS_OK;
    if (plan->backend->grid->load)
        return plan->backend->grid->load(plan, samples, skip_ignored, list);
    TESS_TRY(tess_brick_list_append(plan, samples, 0, samples->num_rows, skip_ignored,
                                    plan->opts.threads, list));
    TESS_TRY(tess_brick_list_sort(
        list, tess_costs_threads(&plan->costs, TESS_TRAFFIC_SORT, plan->opts.threads)));
cleanup:
    return status;
}

int64_t tess_brick_list_block_end(const tess_grid_plan *plan,
                                  const tess_brick_list *list, int64_t first)
{
    const int64_t per_block = plan->tiles_u * plan->tiles_v;
    int64_t end = first;
    while (end < list->num_bricks &&
           list->key[end] / per_block == list->key[first] / per_block)
        ++end;
    return end;
}

tess_status tess_brick_list_make_counts(int64_t num_bricks, bool with_planes,
                                        tess_brick_list *list)
{
    tess_status status = TESS_OK;
    list->key = tess_alloc(num_bricks, sizeof *list->key);
    list->num_vis = tess_alloc(num_bricks, sizeof *list->num_vis);
    list->first_run = tess_alloc(num_bricks + 1, sizeof *list->first_run);
    if (with_planes) list->planes = tess_alloc(num_bricks, sizeof *list->planes);
    if (!list->key || !list->num_vis || !list->first_run ||
        (with_planes && !list->planes))
        TESS_FAIL(TESS_ERR_ALLOC, "counts of bricks");
cleanup:
    return status;
}

void tess_brick_list_free(tess_brick_list *list)
{
    if (list->own) list->release(list->own);
    tess_free(list->run);
    tess_free(list->spare);
    tess_free(list->key);
    tess_free(list->first_run);
    tess_free(list->num_vis);
    tess_free(list->planes);
    memset(list, 0, sizeof *list);
}
