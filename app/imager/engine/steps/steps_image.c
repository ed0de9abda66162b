/* W-steps in the direction from visibilities to images. */
#include "steps_private.h"

#include "tess_mem.h"
#include "tess_samples.h"

/* A plane that is complete after a step is one of those that a block of this step may
 * touch. */
int64_t steps_planes_complete(tess_steps *steps, int step, int64_t *planes)
{
    int64_t count = 0;
    for (int g = 0; g < steps->num_groups; ++g) {
        const int64_t block = steps_block_of(steps, step, g);
        int64_t first, end;
        if (block < 0) continue;
        steps_planes_of_block(steps->plan, block, &first, &end);
        for (int64_t p = first; p < end; ++p)
            if (!steps->plane_done[p] && steps_last_of_plane(steps, p) <= step) {
                planes[count++] = p;
                steps->plane_done[p] = 1;
            }
    }
    return count;
}

static tess_status grid_block(tess_steps *steps, int64_t block,
                              tess_plane_window window, const tess_samples *samples,
                              const tess_brick_list *bricks, bool psf)
{
    const steps_part all = steps_whole_block(steps, bricks, block);
    return steps_grid_part(steps, &all, window, samples, bricks, psf);
}

tess_status tess_steps_image(tess_steps *steps, int first, int end, bool transform_now,
                             const tess_samples *samples, const tess_brick_list *bricks,
                             bool psf)
{
    tess_status status = TESS_OK;
    const tess_grid_plan *plan = steps->plan;
    const int num_pol = samples->num_pol + (psf ? samples->num_weight : 0);
    int64_t *ready = NULL;
    bool in_parts;
    TESS_TRY(steps_choose_parts(steps, bricks, num_pol, !transform_now, &in_parts));
    if (in_parts) return steps_image_in_parts(steps, first, end, samples, bricks, psf);
    ready = tess_alloc(plan->num_planes, sizeof *ready);
    TESS_TRY(tess_comm_agree(steps->comm, ready ? TESS_OK : TESS_ERR_ALLOC));
    for (int step = first; step < end; ++step) {
        TESS_TRY(tess_steps_look(steps));
        for (int g = 0; g < steps->num_groups && status == TESS_OK; ++g) {
            const int64_t b = steps_block_of(steps, step, g);
            if (b >= 0 && !tess_steps_block_done(steps, b))
                status =
                    grid_block(steps, b, (tess_plane_window){0}, samples, bricks, psf);
        }
        tess_profile_sent(steps->profile, TESS_STAGE_GRID);
        if (!transform_now) {
            TESS_TRY(tess_comm_agree(steps->comm, status));
            continue;
        }
        const int64_t count = steps_planes_complete(steps, step, ready);
        TESS_TRY(steps_transform_planes(steps, status, ready, count, num_pol, true));
        steps_free_finished(steps);
    }
cleanup:
    tess_planes_rest(steps->planes, false);
    tess_free(ready);
    return status;
}

/* Grids the samples of blocks in a window of planes. Local. */
static tess_status grid_window(tess_steps *steps, tess_plane_window window,
                               const tess_samples *samples,
                               const tess_brick_list *bricks, bool psf)
{
    tess_status status = TESS_OK;
    int64_t first, end;
    tess_steps_blocks_in(steps, window, &first, &end);
    for (int64_t b = first; b < end; ++b)
        if (steps->step_of_block[b] >= 0 && !tess_steps_block_done(steps, b))
            TESS_TRY(grid_block(steps, b, window, samples, bricks, psf));
cleanup:
    return status;
}

/* As tess_steps_image_window, without a rest of the planes. Collective. */
static tess_status window_to_images(tess_steps *steps, tess_plane_window window,
                                    bool last, const tess_samples *samples,
                                    const tess_brick_list *bricks, bool psf)
{
    tess_status status = TESS_OK;
    const int num_pol = samples->num_pol + (psf ? samples->num_weight : 0);
    int64_t *ready = tess_alloc(window.count, sizeof *ready);
    TESS_TRY(tess_comm_agree(steps->comm, ready ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_steps_look(steps));
    status = grid_window(steps, window, samples, bricks, psf);
    tess_profile_sent(steps->profile, TESS_STAGE_GRID);
    if (!last) {
        TESS_TRY(tess_comm_agree(steps->comm, status));
        goto cleanup;
    }
    for (int64_t k = 0; k < window.count; ++k) {
        ready[k] = window.first + k;
        steps->plane_done[ready[k]] = 1;
    }
    TESS_TRY(steps_transform_planes(steps, status, ready, window.count, num_pol, true));
    steps_give_up_live(steps);
    if (window.first + window.count == steps->plan->num_planes) steps_free_spare(steps);
cleanup:
    tess_free(ready);
    return status;
}

tess_status tess_steps_image_window(tess_steps *steps, tess_plane_window window,
                                    bool last, const tess_samples *samples,
                                    const tess_brick_list *bricks, bool psf)
{
    const tess_status status =
        window_to_images(steps, window, last, samples, bricks, psf);
    tess_planes_rest(steps->planes, false);
    return status;
}

tess_status tess_steps_image_by_planes(tess_steps *steps, int planes_at_once,
                                       const tess_samples *samples,
                                       const tess_brick_list *bricks, bool psf)
{
    tess_status status = TESS_OK;
    const int64_t planes = steps->plan->num_planes;
    for (tess_plane_window window = {0, planes_at_once}; window.first < planes;
         window.first += planes_at_once) {
        if (window.count > planes - window.first) window.count = planes - window.first;
        if (!tess_steps_window_touched(steps, window)) continue;
        TESS_TRY(window_to_images(steps, window, true, samples, bricks, psf));
    }
cleanup:
    tess_planes_rest(steps->planes, false);
    steps_free_spare(steps);
    return status;
}
