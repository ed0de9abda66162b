/** @file cuda_borders.h  (private to clean/)
 *  Components of places with gains of their own (clean_borders.h) on the device. All
 *  functions are Local, and ask for clean_has_borders().
 */
#ifndef TESS_CLEAN_CUDA_BORDERS_H
#define TESS_CLEAN_CUDA_BORDERS_H

#include "cuda_work.h"

/** Find the places of a list's candidates. TESS_ERR_ALLOC. */
tess_status cuda_borders_list(const clean_work *work, cuda_list *list);

/** As cuda_subtract(), which it takes the place of. */
tess_status cuda_borders_subtract(clean_work *work, int scale,
                                  const clean_components *merged);

#endif
