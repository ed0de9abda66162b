/** @file image_output.h  (private to app/imager/run/)
 *  What one output is made of: its samples and their weights; what is known of its
 *  dirty images; images without data.
 */
#ifndef TESS_IMAGE_OUTPUT_H
#define TESS_IMAGE_OUTPUT_H

#include "image_run.h"

/** Copy the samples of an output out of all that are in memory. TESS_ERR_ALLOC. Local.
 */
tess_status image_copy_output(const image_run *run, int64_t output, tess_samples *out);

/** Samples of an output; a team has been sent its own in `data->cached`. Collective. */
tess_status image_data_for(image_run *run, int64_t output, sample_sets *data);

/** Free the samples; a zeroed object is fine. Local. */
void image_data_free(sample_sets *data);

/** The samples of an output (image_data_for), weighted. `*density` is to be applied to
 * samples that are not in memory, and belongs to the caller, or is NULL.
 *  variance[num_pol]: Σ W²/w of each image, for image_measure_made. Collective. */
tess_status image_weighted_data(image_run *run, int64_t output, sample_sets *data,
                                double *variance, tess_density **density);

/** Note the variances of dirty images and PSFs that have just been made, and find their
 * beam, found[num_pol]. Collective. */
tess_status image_measure_made(const image_run *run, int64_t output,
                               const double *variance, imager_product *made,
                               struct image_found *found);

/** Make the images of an output without data: models are 0, all others NaN. Each rank
 * gets an equal share of the rows. TESS_ERR_ALLOC. Collective. */
tess_status image_empty_products(const image_run *run, imager_product *product);

/** Make the density of all channels of an interval, once (--mf-weighting). To be called
 * before image_data_for; image_weighted_data applies the density. Collective. */
tess_status image_share_density(image_run *run, int64_t interval);

#endif
