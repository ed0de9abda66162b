/** @file subtract_cuda.h  (private to grid/)
 *  A model subtracted from samples in device memory: subtract_cuda.cu, or
 *  tests/emulated/subtract_emulated.c.
 */
#ifndef TESS_SUBTRACT_CUDA_H
#define TESS_SUBTRACT_CUDA_H

#include "tess_tile_cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/** residual->vis := samples->vis less `what` of predicted->vis, in device memory;
 *  `residual` may be `predicted`. Rounded as residual_make() rounds on the
 *  processor, bit by bit. Enqueued. TESS_ERR_ALLOC, TESS_ERR_RESOURCE. Local. */
tess_status subtract_cuda(const tess_subtraction *what,
                          const tess_device_samples *samples,
                          const tess_device_samples *predicted,
                          const tess_device_samples *residual);

#ifdef __cplusplus
}
#endif
#endif
