/** @file cuda_grids.h  (private to clean/)
 *  Images of large scales on the device, by way of coarser grids (clean_grids.h). Local
 *  throughout.
 */
#ifndef TESS_CLEAN_CUDA_GRIDS_H
#define TESS_CLEAN_CUDA_GRIDS_H

#include "cuda_work.h"

/** Choose a grid for each scale, unless that has been done for these PSFs. Waits. */
tess_status cuda_grids_choose(clean_work *work);

/** image := `spectrum` times the kernel of a scale that has a coarser grid, times
 *  factor (NULL: 1). */
tess_status cuda_grid_image(clean_work *work, int scale, const void *spectrum,
                            const void *factor, void *image);

#endif
