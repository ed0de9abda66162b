/** @file cuda_rows.h  (private to clean/)
 *  The caller's rows on the device: those that live there as they are, others in
 * copies.
 */
#ifndef TESS_CLEAN_CUDA_ROWS_H
#define TESS_CLEAN_CUDA_ROWS_H

#include "cuda_work.h"

/** Zeros are none. */
typedef struct cuda_view {
    cuda_pixels pixels;
    void *copy; /**< device, or NULL */
} cuda_view;

/** View rows. TESS_ERR_ALLOC. Local. */
tess_status cuda_rows_view(const tess_rows *rows, cuda_view *view);

/** Give the pixels of a view to the rows. Local. */
tess_status cuda_rows_put_back(const tess_rows *rows, const cuda_view *view);
void cuda_rows_free(cuda_view *view);

#endif
