/** @file subtracted_rows.h  (private to app/imager/run/)
 *  A model that is subtracted from whole rows before their continuum is fitted.
 */
#ifndef TESS_SUBTRACTED_ROWS_H
#define TESS_SUBTRACTED_ROWS_H

#include "image_run.h"

/** With --subtract and --uvcontsub: predict the model at all channels of the rows, and
 *  have the source subtract it from them. Nothing otherwise. Collective. */
tess_status subtracted_rows_make(image_run *run);

#endif
