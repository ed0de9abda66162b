/* Grids the sums of the bricks of one block, or lays them out and degrids them. */
#include "steps_private.h"

#include "tess_degrid.h"
#include "tess_log.h"
#include "tess_samples.h"

double steps_num_vis(const steps_part *part, const tess_brick_list *bricks)
{
    double num_vis = 0;
    for (int64_t b = part->first; b < part->end; ++b)
        num_vis += (double)bricks->num_vis[b];
    return num_vis;
}

tess_status steps_add_sums(tess_steps *steps, const steps_part *part,
                           tess_plane_window window, const tess_samples *samples,
                           const tess_brick_list *bricks, bool psf)
{
    tess_status status = TESS_OK;
    steps_live *live = NULL;
    int64_t plane, plane_end;
    const double start = tess_time_now(), own = tess_time_own();
    const double num_vis = steps_num_vis(part, bricks);
    tess_grid_report report = {
        .progress = &steps->progress, .busy_share = 1, .trace = steps->profile->trace};
    TESS_TRY(steps_add_live(steps, part->block, &live));
    live->sums.window_first = (int32_t)window.first;
    live->sums.window_planes = (int32_t)window.count;
    live->sums.spare = &steps->spare;
    TESS_TRY(tess_grid_execute(steps->plan, samples,
                               &(tess_brick_range){bricks, part->first, part->end}, psf,
                               &live->sums, &report));
    steps_planes_of_block(steps->plan, part->block, &plane, &plane_end);
    if (plane >= window.first) /* later windows grid the same visibilities again */
        steps->profile->stage_visibilities[TESS_STAGE_GRID] += (int64_t)num_vis;
    steps_note_gridded(steps, start, own, report.busy_share);
    if (plane >= window.first)
        steps->profile->grid.merged_visibilities += report.merged;
    tess_profile_since(steps->profile, TESS_STAGE_GRID, start);
cleanup:
    return status;
}

tess_status steps_grid_part(tess_steps *steps, const steps_part *part,
                            tess_plane_window window, const tess_samples *samples,
                            const tess_brick_list *bricks, bool psf)
{
    tess_status status = TESS_OK;
    if (part->first == part->end) return TESS_OK;
    tess_progress_start(&steps->progress, "gridding", "vis",
                        steps_num_vis(part, bricks));
    status = steps_add_sums(steps, part, window, samples, bricks, psf);
    tess_progress_finish(&steps->progress);
    return status;
}

tess_status steps_lay_out_part(tess_steps *steps, const steps_part *part,
                               tess_plane_window window, const tess_samples *samples,
                               const tess_brick_list *bricks)
{
    tess_status status = TESS_OK;
    steps_live *live = NULL;
    if (part->first == part->end) return TESS_OK;
    TESS_TRY(steps_add_live(steps, part->block, &live));
    live->first_brick = part->first;
    live->sums.window_first = (int32_t)window.first;
    live->sums.window_planes = (int32_t)window.count;
    live->sums.spare = &steps->spare;
    TESS_TRY(tess_degrid_begin(steps->plan, samples, bricks, part->first, part->end,
                               &live->sums));
cleanup:
    return status;
}

tess_status steps_degrid_live(tess_steps *steps, const steps_live *live,
                              tess_samples *samples, const tess_brick_list *bricks)
{
    tess_status status = TESS_OK;
    tess_grid_report report = {
        .progress = &steps->progress, .busy_share = 1, .trace = steps->profile->trace};
    const double start = tess_time_now(), own = tess_time_own();
    double num_vis = 0;
    int64_t plane, plane_end;
    steps_planes_of_block(steps->plan, live->block, &plane, &plane_end);
    for (int64_t b = 0; b < live->sums.num_bricks; ++b)
        num_vis += (double)bricks->num_vis[live->first_brick + b];
    tess_progress_start(&steps->progress, "degridding", "vis", num_vis);
    status = tess_degrid_execute(steps->plan, samples, bricks, live->first_brick,
                                 &live->sums, &report);
    tess_progress_finish(&steps->progress);
    steps_note_gridded(steps, start, own, report.busy_share);
    /* later windows degrid the same visibilities again */
    if (plane >= live->sums.window_first)
        steps->profile->stage_visibilities[TESS_STAGE_GRID] += (int64_t)num_vis;
    return status;
}

void steps_free_step(tess_steps *steps, int step)
{
    int64_t kept = 0;
    for (int64_t k = 0; k < steps->num_live; ++k)
        if (steps->step_of_block[steps->live[k].block] == step)
            tess_brick_sums_free(&steps->live[k].sums);
        else
            steps->live[kept++] = steps->live[k];
    steps->num_live = kept;
}

tess_status steps_degrid(tess_steps *steps, int step, tess_samples *samples,
                         const tess_brick_list *bricks)
{
    tess_status status = TESS_OK;
    const double start = tess_time_now();
    for (int64_t k = 0; k < steps->num_live && status == TESS_OK; ++k)
        if (steps->step_of_block[steps->live[k].block] == step)
            status = steps_degrid_live(steps, &steps->live[k], samples, bricks);
    steps_free_step(steps, step);
    tess_profile_since(steps->profile, TESS_STAGE_GRID, start);
    return status;
}
