/** @file device_read.h  (private to app/imager/)
 *  Samples that are made on the device: rows of UVFITS files are copied there as they
 *  are, at the speed of the link, and are decoded, weighted and surveyed there.
 */
#ifndef TESS_DEVICE_READ_H
#define TESS_DEVICE_READ_H

#include "imager_job.h"
#include "output_table.h"

/** Whether samples can be made on the device. The source must be set up for few
 * polarisations, all its blocks must lie in files that can be read as they are, and no
 * times or channels may be left out. Targets that take views of the samples must do so
 * on the device, and subtract no models. Local. */
bool device_read_possible(const imager_job *job, const tess_source *source);

/** Whether the device has room for these samples beside `num_images` images of each
 * target, and for what targets take of them. If the job has models of the images, these
 * and the residuals of all samples must fit, too. Local. */
bool device_read_fits(const imager_job *job, const tess_source *source, int num_images);

/** Make the samples, samples->resident, with as many weights as the source says; find
 * their extent, and whether the weights of a sample agree throughout. Ignored
 * visibilities are counted in job->profile. Errors as of reading and tess_device_alloc.
 * Local. */
tess_status device_read_samples(const imager_job *job, tess_source *source,
                                tess_samples *samples, imager_extent *extent,
                                bool *weights_agree);

/** Keep one weight of each sample; all its weights are equal. Local. */
tess_status device_read_share_weights(tess_samples *samples);

#endif
