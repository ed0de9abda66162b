/* Passes the calls of degridding to the plan's backend. */
#include "tess_degrid.h"
#include "tess_samples.h"

tess_status tess_degrid_begin(const tess_grid_plan *plan, const tess_samples *samples,
                              const tess_brick_list *bricks, int64_t first, int64_t end,
                              tess_brick_sums *sums)
{
    tess_status status = TESS_OK;
    tess_brick_sums made = {.num_pol = samples->num_pol,
                            .window_first = sums->window_first,
                            .window_planes = sums->window_planes,
                            .spare = sums->spare};
    TESS_TRY(plan->backend->degrid->begin(plan, samples, bricks, first, end, &made));
    *sums = made;
    made = (tess_brick_sums){0};
cleanup:
    tess_brick_sums_free(&made);
    return status;
}

tess_status tess_degrid_execute(const tess_grid_plan *plan, tess_samples *samples,
                                const tess_brick_list *bricks, int64_t first,
                                const tess_brick_sums *sums, tess_grid_report *report)
{
    return plan->backend->degrid->degrid(plan, samples, bricks, first, sums, report);
}

tess_status tess_degrid_finish(const tess_grid_plan *plan, tess_samples *samples,
                               const tess_brick_list *bricks)
{
    if (!plan->backend->degrid->finish) return TESS_OK;
    return plan->backend->degrid->finish(plan, samples, bricks);
}
