/** @file image_summary.h  (private to app/imager/run/)
 *  The last lines of `tessera image`.
 */
#ifndef TESS_IMAGE_SUMMARY_H
#define TESS_IMAGE_SUMMARY_H

#include "image_files.h"

/** Visibilities of the run, over all ranks. */
typedef struct image_counts {
    int64_t used, ignored[TESS_NUM_IGNORED];
} image_counts;

/** Log what the run has made of which data, and warn of beams that could not be fitted.
 * `all`: every rank of the run. Collective. */
tess_status image_summary_tell(tess_comm *all, const image_files *output,
                               const image_counts *counts);

#endif
