/** @file cuda_rows.h  (private to clean/)
 *  The caller's rows on the device. A rank alone has those that live there as they are,
 *  and others in copies. The rows of several ranks come to the ranks that hold images,
 * and go back from the first one.
 */
#ifndef TESS_CLEAN_CUDA_ROWS_H
#define TESS_CLEAN_CUDA_ROWS_H

#include "cuda_work.h"

/** View this rank's rows. TESS_ERR_ALLOC. Local. */
tess_status cuda_rows_view(const tess_rows *rows, cuda_view *view);

/** Give the pixels of such a view to the rows. Local. */
tess_status cuda_rows_put_back(const tess_rows *rows, const cuda_view *view);
void cuda_rows_free(cuda_view *view); /**< Local */

/** View the whole image on the ranks that hold images; others get nothing. Returns the
 * same or TESS_ERR_PEER on all ranks. Collective. */
tess_status cuda_rows_gather(const clean_work *work, const tess_rows *rows,
                             cuda_view *view);

/** Give the pixels of the first rank's whole image to the rows of all ranks.
 * Collective.
 */
tess_status cuda_rows_scatter(const clean_work *work, const cuda_view *view,
                              const tess_rows *rows);

#endif
