#include "tess_degrid.h"

#include <string.h>

/* A line is read in whole vectors, taps beyond the support being zero: what lies behind
 * its cells must be finite. */
static void clear_line_ends(const tess_grid_plan *plan, tess_brick_sums *sums)
{
    const int64_t cells = tess_grid_brick_lines(plan);
    const int64_t stride = tess_grid_brick_stride(plan);
    const int64_t bytes = plan->is_double ? 16 : 8;
    #pragma omp parallel for num_threads(plan->opts.threads) schedule(static)
    for (int64_t line = 0; line < sums->num_values / stride; ++line)
        memset((char *)sums->data + (line * stride + cells) * bytes, 0,
               (size_t)((stride - cells) * bytes));
}

tess_status tess_degrid_begin(const tess_grid_plan *plan, const tess_samples *samples,
                              const tess_brick_list *bricks, int64_t first, int64_t end,
                              tess_brick_sums *sums)
{
    tess_status status = TESS_OK;
    tess_brick_sums made = {.num_pol = samples->num_pol};
    TESS_TRY(plan->backend->grid->begin(plan, samples, bricks, first, end, &made));
    clear_line_ends(plan, &made);
    *sums = made;
    made = (tess_brick_sums){0};
cleanup:
    tess_brick_sums_free(&made);
    return status;
}

tess_status tess_degrid_execute(const tess_grid_plan *plan, tess_samples *samples,
                                const tess_brick_list *bricks, int64_t first,
                                const tess_brick_sums *sums)
{
    return plan->backend->degrid->degrid(plan, samples, bricks, first, sums);
}
