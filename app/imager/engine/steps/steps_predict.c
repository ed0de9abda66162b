/* W-steps in the direction from images to visibilities. */
#include "steps_private.h"

#include <string.h>

#include "tess_degrid.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_samples.h"

/* Lists the planes that the blocks of this step need and that have not been
 * transformed. */
static int64_t planes_needed(tess_steps *steps, int step, int64_t *needed)
{
    int64_t count = 0, first, end;
    for (int g = 0; g < steps->num_groups; ++g) {
        const int64_t b = steps_block_of(steps, step, g);
        if (b < 0) continue;
        steps_planes_of_block(steps->plan, b, &first, &end);
        for (int64_t p = first; p < end; ++p)
            if (!steps->plane_done[p]) {
                needed[count++] = p;
                steps->plane_done[p] = 1;
            }
    }
    return count;
}

/* Calls steps_lay_out_part for the bricks of a block, unless it is laid out already. */
static tess_status lay_out_block(tess_steps *steps, int64_t block,
                                 tess_plane_window window, const tess_samples *samples,
                                 const tess_brick_list *bricks)
{
    if (steps->step_of_block[block] < 0) return TESS_OK;
    for (int64_t k = 0; k < steps->num_live; ++k)
        if (steps->live[k].block == block) return TESS_OK;
    const steps_part all = steps_whole_block(steps, bricks, block);
    return steps_lay_out_part(steps, &all, window, samples, bricks);
}

tess_status steps_lay_out_step(tess_steps *steps, int step, const tess_samples *samples,
                               const tess_brick_list *bricks, int64_t *planes,
                               int64_t *count)
{
    tess_status status = TESS_OK;
    *count = planes_needed(steps, step, planes);
    for (int64_t k = 0; k < *count; ++k) {
        int64_t first, end;
        steps_blocks_of_plane(steps->plan, planes[k], &first, &end);
        for (int64_t b = first; b < end; ++b)
            TESS_TRY(lay_out_block(steps, b, (tess_plane_window){0}, samples, bricks));
    }
cleanup:
    return status;
}

/* Predicts in all steps. Collective. */
static tess_status predict_steps(tess_steps *steps, tess_samples *samples,
                                 const tess_brick_list *bricks, int64_t *needed)
{
    tess_status status = TESS_OK;
    for (int step = 0; step < steps->num_steps; ++step) {
        int64_t count;
        status = steps_lay_out_step(steps, step, samples, bricks, needed, &count);
        TESS_TRY(steps_transform_planes(steps, status, needed, count, samples->num_pol,
                                        false));
        status = steps_degrid(steps, step, samples, bricks);
        TESS_TRY(tess_comm_agree(steps->comm, status));
        tess_profile_sent(steps->profile, TESS_STAGE_GRID);
    }
cleanup:
    return status;
}

tess_status tess_steps_predict(tess_steps *steps, tess_samples *samples,
                               const tess_brick_list *bricks)
{
    tess_status status = TESS_OK;
    const tess_grid_plan *plan = steps->plan;
    bool in_parts;
    int64_t *planes = tess_alloc(plan->num_planes, sizeof *planes);
    TESS_TRY(tess_comm_agree(steps->comm, planes ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(steps_choose_parts(steps, bricks, samples->num_pol, false, &in_parts));
    TESS_TRY(in_parts ? steps_predict_in_parts(steps, samples, bricks, planes)
                      : predict_steps(steps, samples, bricks, planes));
    const double start = tess_time_now();
    status = tess_degrid_finish(plan, samples, bricks);
    tess_profile_since(steps->profile, TESS_STAGE_GRID, start);
    TESS_TRY(tess_comm_agree(steps->comm, status));
cleanup:
    tess_planes_rest(steps->planes, false);
    tess_free(planes);
    return status;
}

/* Sets visibilities to zero; windows of planes add to them. */
static void clear_vis(const tess_steps *steps, tess_samples *samples)
{
    enum { PART = 4096 };
    const int64_t bytes =
        samples->num_vis * samples->num_pol * (samples->is_double ? 16 : 8);
#pragma omp parallel for num_threads(steps->plan->opts.threads) schedule(static)
    for (int64_t at = 0; at < bytes; at += PART)
        memset((char *)samples->vis + at, 0,
               (size_t)(bytes - at < PART ? bytes - at : PART));
}

/* Degrids the samples of blocks in a window of planes. Collective. */
static tess_status predict_window(tess_steps *steps, tess_plane_window window,
                                  tess_samples *samples, const tess_brick_list *bricks,
                                  int64_t *planes)
{
    tess_status status = TESS_OK;
    int64_t block, block_end;
    tess_steps_blocks_in(steps, window, &block, &block_end);
    for (; block < block_end && status == TESS_OK; ++block)
        status = lay_out_block(steps, block, window, samples, bricks);
    for (int64_t k = 0; k < window.count; ++k)
        planes[k] = window.first + k;
    TESS_TRY(steps_transform_planes(steps, status, planes, window.count,
                                    samples->num_pol, false));
    const double start = tess_time_now();
    for (int64_t k = 0; k < steps->num_live && status == TESS_OK; ++k)
        status = steps_degrid_live(steps, &steps->live[k], samples, bricks);
    tess_profile_since(steps->profile, TESS_STAGE_GRID, start);
    TESS_TRY(tess_comm_agree(steps->comm, status));
    tess_profile_sent(steps->profile, TESS_STAGE_GRID);
    steps_give_up_live(steps);
cleanup:
    return status;
}

tess_status tess_steps_predict_by_planes(tess_steps *steps, int planes_at_once,
                                         tess_samples *samples,
                                         const tess_brick_list *bricks)
{
    tess_status status = TESS_OK;
    const int64_t planes = steps->plan->num_planes;
    int64_t *wanted = tess_alloc(planes_at_once, sizeof *wanted);
    TESS_TRY(tess_comm_agree(steps->comm, wanted ? TESS_OK : TESS_ERR_ALLOC));
    clear_vis(steps, samples);
    for (int64_t first = 0; first < planes; first += planes_at_once) {
        const int64_t left = planes - first;
        const tess_plane_window window = {
            first, left < planes_at_once ? left : planes_at_once};
        if (!tess_steps_window_touched(steps, window)) continue;
        TESS_TRY(predict_window(steps, window, samples, bricks, wanted));
    }
cleanup:
    tess_planes_rest(steps->planes, false);
    steps_free_spare(steps);
    tess_free(wanted);
    return status;
}
