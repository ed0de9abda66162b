/** @file majors.h  (private to app/imager/run/)
 *  Major cycles: minor loops on the residual images of an output, and residual images
 * of the models that these have made (Schwab 1984, AJ 89, 1076).
 */
#ifndef TESS_MAJORS_H
#define TESS_MAJORS_H

#include "channel_group.h"
#include "image_found.h"
#include "image_run.h"

/** Memory that cleaning by the run's backend takes on each rank of run->comm, beside
 * the images that are written [bytes]. The longest baseline of the job's extent
 * determines beam and scales. Local. */
double majors_bytes(const image_run *run);

/** Memory of the minor loops of one output, or of those that are joined, and who runs
 * them. Local. */
void majors_minor_need(const image_run *run, tess_clean_need *need);

/** Memory that images and minor loops take on a device, if they live there [bytes].
 * Local. */
double majors_device_bytes(const image_run *run);

/** Warn of thresholds that let noise be cleaned, and of scales that are ignored.
 * Local. */
void majors_warn_of_options(const image_run *run);

/** Clean the images of a group of channels; polarisations each by itself or together.
 * The final residuals are those of the data less the whole models.
 * TESS_ERR_INPUT: the mask, or the model that is continued, has other pixels.
 * Collective. */
tess_status majors_clean(channel_group *group);

/** ν0 of spectra [Hz]; 0: the mean of the channels by weight. Local. */
double majors_reference_hz(const image_run *run);

/** image := model ∗ beam + residual. The rows lie as those of a team's images.
 * Collective. */
tess_status majors_restore(const image_run *run, const tess_fits_beam *beam,
                           const tess_rows *model, const tess_rows *residual,
                           const tess_rows *image);

#endif
