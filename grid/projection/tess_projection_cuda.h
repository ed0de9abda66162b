/** @file tess_projection_cuda.h
 *  W-projection on a GPU: samples in device memory to brick sums and back, by the
 *  strategies of gcf/. What tess_tile_cuda.h is to w-stacking.
 *
 *  The sums of bricks lie one below the other: to a strategy they are one tall grid,
 * and the pols of a brick are grids that begin some lines further down. Samples become
 *  points of it some rows at a time, as many as memory allows.
 *
 *  All fail as tess_tile_cuda.h does, wait, and are Local.
 */
#ifndef TESS_PROJECTION_CUDA_H
#define TESS_PROJECTION_CUDA_H

#include "tess_tile_cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The bricks in which samples start: all of a list but work, which there is none of.
 * `skip_ignored`: samples whose weights are all 0 are left out. */
tess_status projection_cuda_list(const tess_grid_plan *plan,
                                 const tess_device_samples *samples, bool skip_ignored,
                                 tile_cuda_list *list);

/** As tile_cuda_grid and tile_cuda_degrid; sums->brick and sums->num_values are set. */
tess_status projection_cuda_grid(const tess_grid_plan *plan, const cuda_part *part,
                                 bool psf);
tess_status projection_cuda_degrid(const tess_grid_plan *plan, const cuda_part *part);

#ifdef __cplusplus
}
#endif
#endif
