/** @file pixel_places.h  (private to app/imager/run/)
 *  Whether the pixels of two images lie at the same places.
 */
#ifndef TESS_PIXEL_PLACES_H
#define TESS_PIXEL_PLACES_H

#include "tess_fits.h"

/** TESS_ERR_INPUT, naming `file`, unless it has as many pixels as `image`, and they lie
 *  within a tenth of a pixel of them. `what` is the image's name in the message. Local.
 */
tess_status pixel_places_check(const tess_fits_model *file,
                               const tess_fits_model *image, const char *what);

struct image_run;

/** The same for the images of a run. Local. */
tess_status pixel_places_check_run(const struct image_run *run,
                                   const tess_fits_model *file);

#endif
