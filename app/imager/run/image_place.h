/** @file image_place.h  (private to app/imager/run/)
 *  Where the images of a run that cleans live: on its GPUs, or in host memory.
 */
#ifndef TESS_IMAGE_PLACE_H
#define TESS_IMAGE_PLACE_H

#include "image_run.h"

/** Before data are read: expect that the images will live on the device. Samples are
 * made there only if they leave room for these. Local. */
void image_place_expect(image_run *run);

/** What the images of all sets that this rank makes at a time are expected to take of
 * its device [bytes], with the means over channels, which they share. Local. */
double image_place_bytes(const image_run *run);

/** Choose where the images live, once teams are formed: on the device, if those of
 * every rank have room there beside the samples, else in host memory, which the log
 * says. Collective. */
tess_status image_place_choose(image_run *run);

#endif
