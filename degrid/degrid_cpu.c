/* The CPU degridder: the gridder's pieces of work, read instead of written. A
 * visibility is the result of one piece alone, so nothing is shared. */
#include "tess_degrid.h"

#include "tess_mem.h"
#include "tess_omp.h"
#include "tess_projection_pieces.h"
#include "tess_tile.h"

static tess_status cpu_begin(const tess_grid_plan *plan, const tess_samples *samples,
                             const tess_brick_list *bricks, int64_t first, int64_t end,
                             tess_brick_sums *sums)
{
    return plan->backend->grid->begin(plan, samples, bricks, first, end, sums);
}

/* What the samples of a brick read. */
static void *buffer_of(const tess_grid_plan *plan, const tess_brick_sums *sums,
                       const tess_brick_sum *sum)
{
    return (char *)sums->data + sum->offset * (plan->is_double ? 16 : 8);
}

static tess_status cpu_degrid(const tess_grid_plan *plan, tess_samples *samples,
                              const tess_brick_list *bricks, int64_t first,
                              const tess_brick_sums *sums, tess_grid_report *report)
{
    tess_status status = TESS_OK;
    const int threads = projection_outer_threads(plan);
    tile_function *degrid =
        tile_table_best()->degrid[plan->is_double][plan->kernel.support];
    const int64_t work_bytes = tile_work_bytes(plan);
    tile_piece *piece = NULL;
    char *work = NULL;
    int64_t num_pieces = 0, num_extra = 0;
    double busy = 0, start = tess_time_now();
    tile_taps *taps = tess_alloc(1, sizeof *taps);
    if (!taps) TESS_FAIL(TESS_ERR_ALLOC, "kernel tables");
    work = tess_alloc(plan->opts.threads, (size_t)work_bytes);
    if (!work)
        TESS_FAIL(TESS_ERR_ALLOC, "work memory of %d threads", plan->opts.threads);
    tile_taps_fill(&plan->kernel, taps);
    TESS_TRY(tile_pieces_make(plan, bricks, first, first + sums->num_bricks, &piece,
                              &num_pieces, &num_extra));
    tile_queue queue = {piece, num_pieces, 0, threads};
    tess_status failed = TESS_OK;
#pragma omp parallel num_threads(threads) reduction(+ : busy)
    {
        const double begin = tess_time_now();
        for (int64_t k = tile_queue_take(&queue), next; k < num_pieces;
             k = next < 0 ? tile_queue_take(&queue) : next) {
            const tess_brick_sum *sum = &sums->brick[piece[k].brick - first];
            tile_job job;
            next = plan->projection ? -1 : tile_queue_take_ahead(&queue, k);
            if (sum->num_planes == 0) continue; /* outside the window */
            tile_job_for(plan, samples, taps, sum, sums->num_pol,
                         buffer_of(plan, sums, sum), &job);
            if (next >= 0) {
                const tess_brick_sum *ahead = &sums->brick[piece[next].brick - first];
                tile_job_fetch(plan, ahead, &piece[next], buffer_of(plan, sums, ahead),
                               &job);
            }
            job.vis_out = samples->vis;
            job.add = sums->window_planes > 0;
            job.work = work + tess_omp_thread() * work_bytes;
            job.run = &bricks->run[piece[k].run];
            job.skip = piece[k].skip;
            job.count = piece[k].count;
            if (plan->projection)
                projection_degrid(&job, bricks, &piece[k], &failed);
            else
                degrid(&job);
            if (report->progress)
                tess_progress_add(report->progress, (double)piece[k].count);
        }
        const double end = tess_time_now();
        busy += end - begin;
        tess_trace_add(report->trace, TESS_LANE_GRID + tess_omp_thread(), "degrid",
                       begin, end);
    }
    TESS_TRY(failed);
    const double wall = tess_time_now() - start;
    report->busy_share = wall > 0 ? busy / (wall * threads) : 1;
cleanup:
    tess_free(taps);
    tess_free(work);
    tess_free(piece);
    return status;
}

const tess_degrid_ops tess_degrid_ops_cpu = {.begin = cpu_begin, .degrid = cpu_degrid};
