/* The CPU gridder. Threads take pieces of bricks from a queue, the largest piece first,
 * and add chunk after chunk into tile buffers that stay in cache. There are no atomics:
 * if a brick is cut into several pieces, each piece has a buffer, and the buffers are
 * added in order at the end. */
#include <string.h>

#include "tess_log.h"
#include "tess_mem.h"
#include "tess_omp.h"
#include "tess_projection_pieces.h"
#include "tess_samples.h"
#include "tile_tables.h"

static size_t value_bytes(const tess_grid_plan *plan)
{
    return plan->is_double ? 2 * sizeof(double) : 2 * sizeof(float);
}

/* Finds the planes that are wanted, among those that a brick touches. */
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

/* Finds an arena for the sums: the spare one, or a new one in its place. */
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
    /* if there are many blocks, each has few runs, and looking at all rows would take
     * longer */
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

/* A call of cpu_grid: its arguments, the pieces of its work, and its memory. */
typedef struct grid_call {
    const tess_grid_plan *plan;
    const tess_samples *samples;
    const tess_brick_list *bricks;
    int64_t first; /* the brick in the list whose sum is the first */
    bool psf;
    tess_brick_sums *sums;
    tess_grid_report *report;
    int threads;
    tile_function *grid;
    tile_taps *taps;
    tile_piece *piece; /* [num_pieces] */
    int64_t num_pieces;
    int64_t num_extra;       /* pieces that have buffers of their own */
    int64_t *place_of_extra; /* [num_extra] their places among all pieces */
    char *extras;            /* [num_extra][largest] their buffers */
    char *spares;            /* [threads][largest] sums of a chunk */
    char *work;              /* [threads] what a tile_job needs */
    int64_t largest;         /* values of the largest buffer */
    int64_t bytes;           /* of a value */
    tess_status failed;      /* what has failed in a piece */
} grid_call;

static tess_brick_sum *sum_of(const grid_call *call, const tile_piece *piece)
{
    return &call->sums->brick[piece->brick - call->first];
}

/* Where a piece is gridded: its brick's buffer, or one of its own. */
static char *target_of(const grid_call *call, const tile_piece *piece)
{
    if (piece->extra > 0)
        return call->extras + (piece->extra - 1) * call->largest * call->bytes;
    return (char *)call->sums->data + sum_of(call, piece)->offset * call->bytes;
}

/* Grids a piece into `target`, chunk by chunk. A chunk's sum is formed alone and then
 * added, so that rounding errors grow with the square root of the chunk, not of the
 * brick (blocked summation), and do not depend on who adds which chunk. */
static void grid_chunks(const grid_call *call, const tile_piece *piece, tile_job *job,
                        void *target)
{
    const tess_grid_plan *plan = call->plan;
    const int64_t values = tile_values(plan, sum_of(call, piece), call->sums->num_pol);
    const size_t bytes = (size_t)(values * call->bytes);
    void *spare = call->spares + tess_omp_thread() * call->largest * call->bytes;
    int64_t run = piece->run, skip = piece->skip, left = piece->count;
    memset(target, 0, bytes);
    for (bool is_first = true; left > 0; is_first = false) {
        job->run = &call->bricks->run[run];
        job->skip = skip;
        job->count = left < plan->opts.chunk ? left : plan->opts.chunk;
        job->data = is_first ? target : spare;
        if (!is_first) memset(spare, 0, bytes);
        call->grid(job);
        if (!is_first) add_values(plan, target, spare, values);
        left -= job->count;
        tile_advance(call->bricks, job->count, &run, &skip);
        job->next = NULL; /* the first chunk has fetched it */
    }
}

/* Grids piece k. `next` is the piece that follows, whose buffer is prefetched, or -1.
 */
static void grid_piece(grid_call *call, int64_t k, int64_t next, int64_t *merged)
{
    const tess_grid_plan *plan = call->plan;
    const tile_piece *piece = &call->piece[k],
                     *ahead = &call->piece[next < 0 ? k : next];
    const tess_brick_sum *sum = sum_of(call, piece);
    char *target = target_of(call, piece);
    tile_job job;
    tile_job_for(plan, call->samples, call->taps, sum, call->sums->num_pol, NULL, &job);
    if (next >= 0)
        tile_job_fetch(plan, sum_of(call, ahead), ahead, target_of(call, ahead), &job);
    job.psf = call->psf;
    job.merged = merged;
    job.work = call->work + tess_omp_thread() * tile_work_bytes(plan);
    if (plan->projection) {
        const int64_t values = tile_values(plan, sum, call->sums->num_pol);
        job.data = target;
        memset(target, 0, (size_t)(values * call->bytes));
        projection_grid(&job, call->bricks, piece, &call->failed);
    } else
        grid_chunks(call, piece, &job, target);
    if (call->report->progress)
        tess_progress_add(call->report->progress, (double)piece->count);
}

/* The work of one thread: grids pieces until all are taken. */
static void grid_pieces(grid_call *call, tile_queue *queue, double *busy,
                        int64_t *merged)
{
    const double begin = tess_time_now();
    for (int64_t k = tile_queue_take(queue), next; k < call->num_pieces;
         k = next < 0 ? tile_queue_take(queue) : next) {
        next = call->plan->projection ? -1 : tile_queue_take_ahead(queue, k);
        if (sum_of(call, &call->piece[k])->num_planes > 0)
            grid_piece(call, k, next, merged);
    }
    const double end = tess_time_now();
    *busy += end - begin;
    tess_trace_add(call->report->trace, TESS_LANE_GRID + tess_omp_thread(), "grid",
                   begin, end);
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

/* Adds the buffers of further pieces to their bricks, in the order of the pieces. */
static void add_extras(const grid_call *call)
{
    const tess_grid_plan *plan = call->plan;
    const int64_t *place = call->place_of_extra;
#pragma omp parallel for num_threads(plan->opts.threads) schedule(dynamic, 1)
    for (int64_t k = 0; k < call->num_extra; ++k) {
        const tile_piece *from = &call->piece[place[k]];
        if (k > 0 && call->piece[place[k - 1]].brick == from->brick) continue;
        const tess_brick_sum *sum = sum_of(call, from);
        const int64_t values = tile_values(plan, sum, call->sums->num_pol);
        for (int64_t j = k; j < call->num_extra; ++j) {
            if (call->piece[place[j]].brick != from->brick) break;
            add_values(plan, (char *)call->sums->data + sum->offset * call->bytes,
                       call->extras + j * call->largest * call->bytes, values);
        }
    }
}

/* Cuts the work of a call into pieces, and allocates its memory. */
static tess_status call_begin(grid_call *call)
{
    tess_status status = TESS_OK;
    const tess_grid_plan *plan = call->plan;
    const int64_t end = call->first + call->sums->num_bricks;
    call->grid = tile_table_best()->grid[plan->is_double][plan->kernel.support];
    call->bytes = (int64_t)value_bytes(plan);
    call->largest = largest_buffer(plan, call->sums);
    call->taps = tess_alloc(2, sizeof *call->taps);
    if (!call->taps) TESS_FAIL(TESS_ERR_ALLOC, "kernel tables");
    tile_taps_fill(plan, call->taps);
    TESS_TRY(tile_pieces_make(plan, call->bricks, call->first, end, &call->piece,
                              &call->num_pieces, &call->num_extra));
    call->spares = tess_alloc(call->threads * call->largest, (size_t)call->bytes);
    call->work = tess_alloc(call->threads, (size_t)tile_work_bytes(plan));
    call->extras = tess_alloc(call->num_extra * call->largest, (size_t)call->bytes);
    call->place_of_extra = tess_alloc(call->num_extra, sizeof *call->place_of_extra);
    if (!call->spares || !call->work || !call->extras || !call->place_of_extra)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for %lld tile buffers",
                  (long long)(call->num_extra + call->threads));
    for (int64_t k = 0; k < call->num_pieces; ++k)
        if (call->piece[k].extra > 0)
            call->place_of_extra[call->piece[k].extra - 1] = k;
cleanup:
    return status;
}

static void call_end(grid_call *call)
{
    tess_free(call->taps);
    tess_free(call->piece);
    tess_free(call->spares);
    tess_free(call->work);
    tess_free(call->extras);
    tess_free(call->place_of_extra);
}

static tess_status cpu_grid(const tess_grid_plan *plan, const tess_samples *samples,
                            const tess_brick_list *bricks, int64_t first, bool psf,
                            tess_brick_sums *sums, tess_grid_report *report)
{
    tess_status status = TESS_OK;
    const int threads = projection_outer_threads(plan);
    grid_call call = {.plan = plan,
                      .samples = samples,
                      .bricks = bricks,
                      .first = first,
                      .psf = psf,
                      .sums = sums,
                      .report = report,
                      .threads = threads};
    double busy = 0, start = tess_time_now();
    int64_t merged = 0;
    TESS_TRY(call_begin(&call));
    tile_queue queue = {call.piece, call.num_pieces, 0, threads};
#pragma omp parallel num_threads(threads) reduction(+ : busy, merged)
    grid_pieces(&call, &queue, &busy, &merged);
    TESS_TRY(call.failed);
    add_extras(&call);
    const double wall = tess_time_now() - start;
    report->busy_share = wall > 0 ? busy / (wall * threads) : 1;
    report->merged = merged;
cleanup:
    call_end(&call);
    return status;
}

const tess_grid_ops tess_grid_ops_cpu = {.begin = cpu_begin, .grid = cpu_grid};
