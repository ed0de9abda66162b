/** @file model_pixels.h  (private to app/imager/)
 *  What pixels of a model may be.
 */
#ifndef TESS_MODEL_PIXELS_H
#define TESS_MODEL_PIXELS_H

#include "tess_fits.h"
#include "tess_status.h"

/** Read rows as tess_fits_read() does. Blank pixels beyond the horizon, where there is
 *  no sky, become 0. TESS_ERR_INPUT: another pixel is not finite. Local, thread-safe.
 */
tess_status model_pixels_read(const tess_fits_model *model, int stokes_index,
                              int freq_index, int64_t row_first, int64_t num_rows,
                              double *out);

#endif
