/* The CPU gridder: threads take pieces of bricks from a queue, the largest first, and
 * add chunk after chunk into tile buffers that stay in cache. No atomics: a brick cut
 * into several pieces has a buffer for each, added in order at the end. */
#include <string.h>

#include "tess_log.h"
#include "tess_mem.h"
#include "tess_omp.h"
#include "tess_projection_pieces.h"
#include "tile_tables.h"

static size_t value_bytes(const tess_grid_plan *plan)
{
    return plan->is_double ? 2 * sizeof(double) : 2 * sizeof(float);
}

/* Of what a brick touches, what is wanted. */
static void planes_stored(const tess_brick_sums *sums, tess_brick_sum *sum)
{
    int32_t first = sum->touched_first, end = first + sum->touched_planes;
    if (sums->window_planes > 0) {
        const int32_t window_end = sums->window_first + sums->window_planes;
        if (first < sums->window_first) first = sums->window_first;
        if (end > window_end) end = window_end;
    }
    sum->plane_first = first;
    sum->num_planes = end > first ? end - first : 0;
}

/* An arena for the sums: the spare one, or a new one in its place. */
static void *take_arena(const tess_grid_plan *plan, tess_brick_sums *sums)
{
    tess_brick_arena none = {0}, *spare = sums->spare ? sums->spare : &none;
    void *data = spare->data;
    sums->capacity = spare->num_values;
    if (!data || spare->num_values < sums->num_values) {
        tess_free(data);
        data = tess_alloc_fast(sums->num_values, value_bytes(plan));
        sums->capacity = sums->num_values;
    }
    *spare = none;
    return data;
}

static tess_status cpu_begin(const tess_grid_plan *plan, const tess_samples *samples,
                             const tess_brick_list *bricks, int64_t first, int64_t end,
                             tess_brick_sums *sums)
{
    tess_status status = TESS_OK;
    sums->num_bricks = end - first;
    sums->brick = tess_alloc_zero(sums->num_bricks, sizeof *sums->brick);
    if (!sums->brick)
        TESS_FAIL(TESS_ERR_ALLOC, "list of %lld bricks", (long long)sums->num_bricks);
    /* of many blocks, each has few runs: then looking at all rows would take longer */
    const bool in_order =
        !bricks->planes &&
        samples->num_rows <= bricks->first_run[end] - bricks->first_run[first] &&
        tess_samples_in_order(samples);
#pragma omp parallel for num_threads(plan->opts.threads) schedule(dynamic, 16)
    for (int64_t b = first; b < end; ++b) {
        sums->brick[b - first].key = bricks->key[b];
        const tess_plane_span touched =
            bricks->planes ? bricks->planes[b]
                           : tess_brick_list_planes(plan, samples, in_order, bricks, b);
        sums->brick[b - first].touched_first = touched.first;
        sums->brick[b - first].touched_planes = touched.end - touched.first;
        planes_stored(sums, &sums->brick[b - first]);
    }
    sums->num_values = 0;
    for (int64_t b = 0; b < sums->num_bricks; ++b) {
        sums->brick[b].offset = sums->num_values;
        sums->num_values += tile_values(plan, &sums->brick[b], sums->num_pol);
    }
    sums->data = take_arena(plan, sums);
    if (!sums->data)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for the sums of %lld bricks (%s)",
                  (long long)sums->num_bricks,
                  tess_mem_text((double)sums->num_values * (double)value_bytes(plan)));
cleanup:
    return status;
}

static void add_values(const tess_grid_plan *plan, void *to, const void *from,
                       int64_t values)
{
    if (plan->is_double) {
        double *t = to;
        const double *f = from;
        for (int64_t k = 0; k < 2 * values; ++k)
            t[k] += f[k];
    } else {
        float *t = to;
        const float *f = from;
        for (int64_t k = 0; k < 2 * values; ++k)
            t[k] += f[k];
    }
}

/* Grid a piece into `target`, chunk by chunk. A chunk's sum is formed alone and then
 * added, so that rounding errors grow with the square root of the chunk, not of the
 * brick (blocked summation), and do not depend on who adds which chunk. */
static void grid_piece(const tess_grid_plan *plan, const tess_brick_list *bricks,
                       const tile_piece *piece, tile_function *grid, tile_job *job,
                       void *target, void *spare, int64_t values)
{
    const size_t bytes = (size_t)values * value_bytes(plan);
    int64_t run = piece->run, skip = piece->skip, left = piece->count;
    memset(target, 0, bytes);
    for (bool is_first = true; left > 0; is_first = false) {
        job->run = &bricks->run[run];
        job->skip = skip;
        job->count = left < plan->chunk ? left : plan->chunk;
        job->data = is_first ? target : spare;
        if (!is_first) memset(spare, 0, bytes);
        grid(job);
        if (!is_first) add_values(plan, target, spare, values);
        left -= job->count;
        tile_advance(bricks, job->count, &run, &skip);
        job->next = NULL; /* the first chunk has fetched it */
    }
}

/* Where a piece is gridded: its brick's buffer, or one of its own. */
static char *target_of(const tess_brick_sums *sums, const tess_brick_sum *sum,
                       const tile_piece *piece, char *extras, int64_t largest,
                       int64_t bytes)
{
    if (piece->extra > 0) return extras + (piece->extra - 1) * largest * bytes;
    return (char *)sums->data + sum->offset * bytes;
}

static int64_t largest_buffer(const tess_grid_plan *plan, const tess_brick_sums *sums)
{
    int64_t largest = 0;
    for (int64_t b = 0; b < sums->num_bricks; ++b) {
        const int64_t values = tile_values(plan, &sums->brick[b], sums->num_pol);
        if (values > largest) largest = values;
    }
    return largest;
}

/* Add the buffers of further pieces to their bricks, in the order of the pieces. */
static void add_extras(const tess_grid_plan *plan, const tile_piece *piece,
                       const int64_t *place_of_extra, int64_t num_extra, int64_t first,
                       const char *extras, int64_t largest, tess_brick_sums *sums)
{
    const int64_t bytes = (int64_t)value_bytes(plan);
#pragma omp parallel for num_threads(plan->opts.threads) schedule(dynamic, 1)
    for (int64_t k = 0; k < num_extra; ++k) {
        const tile_piece *from = &piece[place_of_extra[k]];
        const bool starts_brick =
            k == 0 || piece[place_of_extra[k - 1]].brick != from->brick;
        if (!starts_brick) continue;
        const tess_brick_sum *sum = &sums->brick[from->brick - first];
        const int64_t values = tile_values(plan, sum, sums->num_pol);
        for (int64_t j = k; j < num_extra; ++j) {
            if (piece[place_of_extra[j]].brick != from->brick) break;
            add_values(plan, (char *)sums->data + sum->offset * bytes,
                       extras + j * largest * bytes, values);
        }
    }
}

static tess_status cpu_grid(const tess_grid_plan *plan, const tess_samples *samples,
                            const tess_brick_list *bricks, int64_t first, bool psf,
                            tess_brick_sums *sums, tess_grid_report *report)
{
    tess_status status = TESS_OK;
    const int threads = projection_outer_threads(plan);
    const int64_t bytes = (int64_t)value_bytes(plan);
    const int64_t largest = largest_buffer(plan, sums);
    tile_function *grid =
        tile_table_best()->grid[plan->is_double][plan->kernel.support];
    tess_status failed = TESS_OK;
    tile_piece *piece = NULL;
    int64_t num_pieces = 0, num_extra = 0, *place_of_extra = NULL;
    const int64_t work_bytes = tile_work_bytes(plan);
    char *extras = NULL, *spares = NULL, *work = NULL;
    double busy = 0, start = tess_time_now();
    int64_t merged = 0;
    tile_taps *taps = tess_alloc(1, sizeof *taps);
    if (!taps) TESS_FAIL(TESS_ERR_ALLOC, "kernel tables");
    tile_taps_fill(&plan->kernel, taps);
    TESS_TRY(tile_pieces_make(plan, bricks, first, first + sums->num_bricks, &piece,
                              &num_pieces, &num_extra));
    spares = tess_alloc(threads * largest, (size_t)bytes);
    work = tess_alloc(threads, (size_t)work_bytes);
    extras = tess_alloc(num_extra * largest, (size_t)bytes);
    place_of_extra = tess_alloc(num_extra, sizeof *place_of_extra);
    if (!spares || !work || !extras || !place_of_extra)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for %lld tile buffers",
                  (long long)(num_extra + threads));
    for (int64_t k = 0; k < num_pieces; ++k)
        if (piece[k].extra > 0) place_of_extra[piece[k].extra - 1] = k;
    tile_queue queue = {piece, num_pieces, 0, threads};
#pragma omp parallel num_threads(threads) reduction(+ : busy, merged)
    {
        const int64_t thread = tess_omp_thread();
        char *spare = spares + thread * largest * bytes;
        const double begin = tess_time_now();
        for (int64_t k = tile_queue_take(&queue), next; k < num_pieces;
             k = next < 0 ? tile_queue_take(&queue) : next) {
            const tess_brick_sum *sum = &sums->brick[piece[k].brick - first];
            tile_job job;
            next = plan->projection ? -1 : tile_queue_take_ahead(&queue, k);
            if (sum->num_planes == 0) continue;
            char *target = target_of(sums, sum, &piece[k], extras, largest, bytes);
            tile_job_for(plan, samples, taps, sum, sums->num_pol, NULL, &job);
            if (next >= 0) {
                const tess_brick_sum *ahead = &sums->brick[piece[next].brick - first];
                tile_job_fetch(
                    plan, ahead, &piece[next],
                    target_of(sums, ahead, &piece[next], extras, largest, bytes), &job);
            }
            job.psf = psf;
            job.merged = &merged;
            job.work = work + thread * work_bytes;
            if (plan->projection) {
                job.data = target;
                memset(target, 0,
                       (size_t)(tile_values(plan, sum, sums->num_pol) * bytes));
                projection_grid(&job, bricks, &piece[k], &failed);
            } else
                grid_piece(plan, bricks, &piece[k], grid, &job, target, spare,
                           tile_values(plan, sum, sums->num_pol));
            if (report->progress)
                tess_progress_add(report->progress, (double)piece[k].count);
        }
        const double end = tess_time_now();
        busy += end - begin;
        tess_trace_add(report->trace, TESS_LANE_GRID + thread, "grid", begin, end);
    }
    TESS_TRY(failed);
    add_extras(plan, piece, place_of_extra, num_extra, first, extras, largest, sums);
    const double wall = tess_time_now() - start;
    report->busy_share = wall > 0 ? busy / (wall * threads) : 1;
    report->merged = merged;
cleanup:
    tess_free(taps);
    tess_free(piece);
    tess_free(spares);
    tess_free(work);
    tess_free(extras);
    tess_free(place_of_extra);
    return status;
}

const tess_grid_ops tess_grid_ops_cpu = {.begin = cpu_begin, .grid = cpu_grid};
