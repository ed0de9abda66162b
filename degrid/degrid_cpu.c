/* The CPU degridder: the gridder's pieces of work, read instead of written. A
 * visibility is the result of one piece alone, so nothing is shared. */
#include "tess_degrid.h"

#include "tess_clean.h"
#include "tess_mem.h"
#include "tess_omp.h"
#include "tess_projection_pieces.h"
#include "tess_samples.h"
#include "tess_tile.h"

static tess_status cpu_begin(const tess_grid_plan *plan, const tess_samples *samples,
                             const tess_brick_list *bricks, int64_t first, int64_t end,
                             tess_brick_sums *sums)
{
    return plan->backend->grid->begin(plan, samples, bricks, first, end, sums);
}

/* A call of cpu_degrid: its arguments, the pieces of its work, and its memory. */
typedef struct degrid_call {
    const tess_grid_plan *plan;
    tess_samples *samples;
    const tess_brick_list *bricks;
    int64_t first; /* the brick in the list whose sum is the first */
    const tess_brick_sums *sums;
    tess_grid_report *report;
    tile_function *degrid;
    tile_taps *taps;
    tile_piece *piece; /* [num_pieces] */
    int64_t num_pieces;
    char *work;         /* [threads] what a tile_job needs */
    tess_status failed; /* what has failed in a piece */
} degrid_call;

static const tess_brick_sum *sum_of(const degrid_call *call, const tile_piece *piece)
{
    return &call->sums->brick[piece->brick - call->first];
}

/* The buffer that the samples of a piece read. */
static void *buffer_of(const degrid_call *call, const tile_piece *piece)
{
    const int64_t bytes = call->plan->is_double ? 16 : 8;
    return (char *)call->sums->data + sum_of(call, piece)->offset * bytes;
}

/* Degrids piece k. `next`: the piece that follows, whose buffer is prefetched, or -1.
 */
static void degrid_piece(degrid_call *call, int64_t k, int64_t next)
{
    const tess_grid_plan *plan = call->plan;
    const tile_piece *piece = &call->piece[k],
                     *ahead = &call->piece[next < 0 ? k : next];
    tile_job job;
    tile_job_for(plan, call->samples, call->taps, sum_of(call, piece),
                 call->sums->num_pol, buffer_of(call, piece), &job);
    if (next >= 0)
        tile_job_fetch(plan, sum_of(call, ahead), ahead, buffer_of(call, ahead), &job);
    job.vis_out = call->samples->vis;
    job.add = call->sums->window_planes > 0;
    job.work = call->work + tess_omp_thread() * tile_work_bytes(plan);
    job.run = &call->bricks->run[piece->run];
    job.skip = piece->skip;
    job.count = piece->count;
    if (plan->projection)
        projection_degrid(&job, call->bricks, piece, &call->failed);
    else
        call->degrid(&job);
    if (call->report->progress)
        tess_progress_add(call->report->progress, (double)piece->count);
}

/* The work of one thread: degrids pieces until all are taken. */
static void degrid_pieces(degrid_call *call, tile_queue *queue, double *busy)
{
    const double begin = tess_time_now();
    for (int64_t k = tile_queue_take(queue), next; k < call->num_pieces;
         k = next < 0 ? tile_queue_take(queue) : next) {
        next = call->plan->projection ? -1 : tile_queue_take_ahead(queue, k);
        /* a brick without planes lies outside of the window */
        if (sum_of(call, &call->piece[k])->num_planes > 0) degrid_piece(call, k, next);
    }
    const double end = tess_time_now();
    *busy += end - begin;
    tess_trace_add(call->report->trace, TESS_LANE_GRID + tess_omp_thread(), "degrid",
                   begin, end);
}

/* Cuts the work of a call into pieces, and allocates its memory. */
static tess_status call_begin(degrid_call *call)
{
    tess_status status = TESS_OK;
    const tess_grid_plan *plan = call->plan;
    const int64_t end = call->first + call->sums->num_bricks;
    int64_t num_extra = 0;
    call->degrid = tile_table_best()->degrid[plan->is_double][plan->kernel.support];
    call->taps = tess_alloc(2, sizeof *call->taps);
    if (!call->taps) TESS_FAIL(TESS_ERR_ALLOC, "kernel tables");
    call->work = tess_alloc(plan->opts.threads, (size_t)tile_work_bytes(plan));
    if (!call->work)
        TESS_FAIL(TESS_ERR_ALLOC, "work memory of %d threads", plan->opts.threads);
    tile_taps_fill(plan, call->taps);
    TESS_TRY(tile_pieces_make(plan, call->bricks, call->first, end, &call->piece,
                              &call->num_pieces, &num_extra));
cleanup:
    return status;
}

static tess_status cpu_degrid(const tess_grid_plan *plan, tess_samples *samples,
                              const tess_brick_list *bricks, int64_t first,
                              const tess_brick_sums *sums, tess_grid_report *report)
{
    tess_status status = TESS_OK;
    const int threads = projection_outer_threads(plan);
    degrid_call call = {.plan = plan,
                        .samples = samples,
                        .bricks = bricks,
                        .first = first,
                        .sums = sums,
                        .report = report};
    double busy = 0, start = tess_time_now();
    TESS_TRY(call_begin(&call));
    tile_queue queue = {call.piece, call.num_pieces, 0, threads};
#pragma omp parallel num_threads(threads) reduction(+ : busy)
    degrid_pieces(&call, &queue, &busy);
    TESS_TRY(call.failed);
    const double wall = tess_time_now() - start;
    report->busy_share = wall > 0 ? busy / (wall * threads) : 1;
cleanup:
    tess_free(call.taps);
    tess_free(call.work);
    tess_free(call.piece);
    return status;
}

const tess_degrid_ops tess_degrid_ops_cpu = {.begin = cpu_begin, .degrid = cpu_degrid};

/* ---- the backend ---- */

/* Always there. Its parts live in grid/, degrid/, fft/ and clean/; this folder sees
 * all. */
extern const tess_grid_ops tess_grid_ops_cpu;
extern const tess_degrid_ops tess_degrid_ops_cpu;
extern const tess_planes_ops tess_planes_ops_cpu;
extern const tess_backend tess_backend_cpu;

static bool always(void)
{
    return true;
}

const tess_backend tess_backend_cpu = {.name = "cpu",
                                       .available = always,
                                       .grid = &tess_grid_ops_cpu,
                                       .degrid = &tess_degrid_ops_cpu,
                                       .planes = &tess_planes_ops_cpu,
                                       .clean = &tess_clean_ops_cpu};
