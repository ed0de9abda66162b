/** @file tess_casa_image.h
 *  Images of CASA: tables whose only row has the pixels, in a column named map, and whose
 *  keywords have the coordinates (casacore's PagedImage).
 */
#ifndef TESS_CASA_IMAGE_H
#define TESS_CASA_IMAGE_H

#include "tess_fits.h"
#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tess_casa_image tess_casa_image;

/** Open an image of a direction coordinate, and of a spectral and a Stokes one where it
 *  has them. `header` gets size, place and planes, as tess_fits_open would. TESS_ERR_IO,
 *  TESS_ERR_INPUT (not such an image), TESS_ERR_RESOURCE (a build without casacore).
 *  Local. */
tess_status tess_casa_image_open(const char *path, tess_fits_model *header,
                                 tess_casa_image **image);

/** Read rows [row_first, row_first + num_rows) of a plane, out[num_rows][nx]. Local. */
tess_status tess_casa_image_read(const tess_casa_image *image, int stokes_index,
                                 int freq_index, int64_t row_first, int64_t num_rows,
                                 double *out);

void tess_casa_image_close(tess_casa_image *image); /**< NULL is fine. Local. */

#ifdef __cplusplus
}
#endif
#endif
