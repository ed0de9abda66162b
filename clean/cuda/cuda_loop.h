/** @file cuda_loop.h  (private to clean/)
 *  The sub-minor loop of a scale, which finds components, and what adds them to model
 *  images. Local throughout.
 */
#ifndef TESS_CLEAN_CUDA_LOOP_H
#define TESS_CLEAN_CUDA_LOOP_H

#include "cuda_work.h"

tess_status cuda_loop(clean_work *work, clean_loop *loop, clean_components *found);

tess_status cuda_add(clean_work *work, const clean_components *merged,
                     const tess_rows *model);

#endif
