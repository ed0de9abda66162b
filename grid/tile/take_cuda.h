/** @file take_cuda.h  (private to grid/)
 *  What an image takes of correlations that are in device memory, and a source in their
 *  place.
 */
#ifndef TESS_TAKE_CUDA_H
#define TESS_TAKE_CUDA_H

#include "tess_device_samples.h"
#include "tess_geom.h"
#include "tess_status.h"
#include "tess_take.h"

#ifdef __cplusplus
extern "C" {
#endif

/** to->vis := what is taken of from->vis, which has the same rows; with a table of
 *  matrices, these know their origins. Enqueued. TESS_ERR_ALLOC, TESS_ERR_RESOURCE.
 *  Local. */
tess_status take_cuda(const tess_take *take, const tess_device_samples *from,
                      const tess_device_samples *to);

/** samples->vis := those of a source of 1 Jy of this phase. Enqueued.
 *  TESS_ERR_RESOURCE. Local. */
tess_status source_cuda(const tess_geom_phase *phase,
                        const tess_device_samples *samples);

#ifdef __cplusplus
}
#endif
#endif
