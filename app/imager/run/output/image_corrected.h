/** @file image_corrected.h  (private to app/imager/run/)
 *  Images over the primary beam, and images of the beam itself.
 */
#ifndef TESS_IMAGE_CORRECTED_H
#define TESS_IMAGE_CORRECTED_H

#include "image_names.h"
#include "imager_rows.h"

/** Make the rows of an image that the primary beam makes of those of a kind: the beam
 * itself, or its square, or an image over the beam, which is NaN where the beam is
 * below the limit; a model is 0 there. TESS_ERR_ALLOC. Local. */
tess_status image_corrected_rows(const image_corrected *corrected,
                                 const imager_rows *image, const imager_rows *beam,
                                 double limit, imager_rows *rows);

#endif
