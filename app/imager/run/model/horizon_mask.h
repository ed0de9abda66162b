/** @file horizon_mask.h  (private to app/imager/run/)
 *  The mask that keeps components from the horizon, as a file.
 */
#ifndef TESS_HORIZON_MASK_H
#define TESS_HORIZON_MASK_H

#include "image_run.h"

/** Where WSClean would write it, write NAME-horizon-mask.fits: 1 where the first
 *  output's components may be, also by the user's mask, and else 0. The run is planned.
 *  Collective over all ranks. */
tess_status horizon_mask_write(const image_run *run);

#endif
