/** @file tess_grid_cuda.h
 *  What gridding and degridding on a GPU share: samples in device memory, sorted there.
 *
 *  All samples stay on the device from tess_brick_list_make to tess_brick_list_free
 *  when memory allows. Else they are cut into *sets* of rows that come and go, one
 *  after the other, each time bricks are gridded or degridded; brick sums are those of
 *  all sets.
 */
#ifndef TESS_GRID_CUDA_H
#define TESS_GRID_CUDA_H

#include "tess_grid.h"
#include "tess_tile_cuda.h"

typedef tess_status cuda_part_function(const tess_grid_plan *plan,
                                       const cuda_part *part, bool psf);

/** Lay out sums for the bricks [first, end) of the list and take device memory for
 *  them, `zeroed` or undefined. sums->num_pol is set. */
tess_status cuda_lay_out(const tess_grid_plan *plan, const tess_brick_list *bricks,
                         int64_t first, int64_t end, bool zeroed,
                         tess_brick_sums *sums);

/** tess_degrid_ops.sums_bytes, .sums_room. */
int64_t cuda_sums_bytes(const tess_grid_plan *plan, const tess_brick_list *bricks,
                        int64_t first, int64_t end, int num_pol);
int64_t cuda_sums_room(const tess_grid_plan *plan, const tess_brick_list *bricks);

/** Call `function` for every set with samples in the bricks of these sums; waits for
 *  the device. If it `predicts`, visibilities of sets that do not stay on the device
 * are copied to `samples`. */
tess_status cuda_each_set(const tess_grid_plan *plan, const tess_samples *samples,
                          const tess_brick_list *bricks, const tess_brick_sums *sums,
                          bool psf, bool predicts, cuda_part_function *function);

/** Bring predicted visibilities that are still on the device to samples->vis, unless
 *  the samples stay there. */
tess_status cuda_fetch_vis(tess_samples *samples, const tess_brick_list *bricks);

#endif
