/** @file device_read.h  (private to app/imager/)
 *  Samples made on the device: rows of UVFITS files go there as they are, at the speed
 *  of the link, and are decoded, weighted and surveyed there.
 */
#ifndef TESS_DEVICE_READ_H
#define TESS_DEVICE_READ_H

#include "imager_job.h"
#include "output_table.h"

/** Can the samples of `num_images` images of this geometry be made so? The source must
 *  be set up for few polarisations, all its blocks lie in files that can be read as
 * they are, nothing be left out by time or channel, and the samples fit beside the
 * images. Local. */
bool device_read_possible(const imager_job *job, const tess_source *source,
                          int num_images);

/** Make them: samples->resident, with their extent, a weight for each polarisation, and
 *  whether these are the same throughout. Ignored visibilities are counted in
 *  job->profile. Errors as of reading and tess_device_alloc. Local. */
tess_status device_read_samples(const imager_job *job, tess_source *source,
                                tess_samples *samples, imager_extent *extent,
                                bool *weights_agree);

/** Keep only one weight a sample, which they all are. Local. */
tess_status device_read_share_weights(tess_samples *samples);

#endif
