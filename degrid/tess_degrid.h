/** @file tess_degrid.h
 *  Degridding, the adjoint of gridding (tess_grid.h) with the same plan: visibilities
 *  are computed from brick sums that hold the grid of a model.
 */
#ifndef TESS_DEGRID_H
#define TESS_DEGRID_H

#include "tess_grid.h"

/** The backend's functions for degridding. */
struct tess_degrid_ops {
    /** As tess_grid_ops.begin, values undefined: tess_degrid_begin. */
    tess_status (*begin)(const tess_grid_plan *plan, const tess_samples *samples,
                         const tess_brick_list *bricks, int64_t first, int64_t end,
                         tess_brick_sums *sums);
    /** samples->vis[sample][pol] of the bricks [first, first + sums->num_bricks) := the
     *  sum of grid values times kernel, with the w-phase; += it for a window of planes.
     *  Weights play no part. Nothing is merged. */
    tess_status (*degrid)(const tess_grid_plan *plan, tess_samples *samples,
                          const tess_brick_list *bricks, int64_t first,
                          const tess_brick_sums *sums, tess_grid_report *report);
    /** Called after all bricks: copy the visibilities to samples->vis. NULL: they are
     *  there already. */
    tess_status (*finish)(const tess_grid_plan *plan, tess_samples *samples,
                          const tess_brick_list *bricks);
    /** Bytes of the backend's memory that sums of the bricks [first, end) take, gridded
     *  or to be degridded. NULL, as the next: they lie in the host's. */
    int64_t (*sums_bytes)(const tess_grid_plan *plan, const tess_brick_list *bricks,
                          int64_t first, int64_t end, int num_pol);
    /** Bytes of the backend's memory that sums may take now, in addition to the work
     *  memory. */
    int64_t (*sums_room)(const tess_grid_plan *plan, const tess_brick_list *bricks);
};

/** Lay out brick sums for the bricks [first, end). Their values are undefined; the
 *  caller fills them with the model's grid. In host memory, zeros must follow the cells
 *  of each line, because lines are read in whole vectors. tess_planes_extract() does
 *  both. Only the window and `spare` of `*sums` are used as input. Local. */
tess_status tess_degrid_begin(const tess_grid_plan *plan, const tess_samples *samples,
                              const tess_brick_list *bricks, int64_t first, int64_t end,
                              tess_brick_sums *sums);

/** Degrid those bricks: sums->num_pol == samples->num_pol values per sample, which are
 *  in samples->vis after tess_degrid_finish; what a window of planes yields is added to
 *  what is there. Local. */
tess_status tess_degrid_execute(const tess_grid_plan *plan, tess_samples *samples,
                                const tess_brick_list *bricks, int64_t first,
                                const tess_brick_sums *sums, tess_grid_report *report);
tess_status tess_degrid_finish(const tess_grid_plan *plan, tess_samples *samples,
                               const tess_brick_list *bricks);

#endif
