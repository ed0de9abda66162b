/** @file image_primary_beam.h  (private to app/imager/run/)
 *  The primary beam of a run's images.
 */
#ifndef TESS_IMAGE_PRIMARY_BEAM_H
#define TESS_IMAGE_PRIMARY_BEAM_H

#include "image_run.h"

struct tess_primary_beam;

/** What the primary beams of a run's images have in common. */
typedef struct image_primary_beam {
    struct tess_primary_beam *beam;
    double pointing_rad[2];
    double rotation[3][3]; /**< rotation of direction cosines from the images' centre to
                              the pointing centre */
    double site_m[3];
    double *time_mjd_s; /**< [num_times] integrations; NULL: the beam does not turn */
    int64_t num_times;
    int num_weight;  /**< number of weights of a sample: 1, or one for each polarisation
                      */
    int64_t *weight; /**< [TESS_MAX_POL][num_chan] sums of imaging weights, in a common
                        unit; 0 for channels that have not been weighed */
} image_primary_beam;

/** Open the beam that the options ask for, if any. TESS_ERR_INPUT for several
 * pointings, and as tess_primary_beam_open(). Collective. */
tess_status image_primary_beam_open(image_run *run);

/** Sum the imaging weights of each channel of an output, whose samples are weighted or
 * will be when they are read. Collective. */
tess_status image_primary_beam_weigh(image_run *run, int64_t output, sample_sets *data);

/** Add the beam to the products of an output, if there is one and the output has data:
 * the mean over channels, by weight, and over the integrations of its interval.
 * Collective.
 */
tess_status image_primary_beam_make(image_run *run, int64_t output,
                                    imager_product *product);

/** Give `rows`, which have no memory yet, those of the beam of an output and
 *  polarisation, in host memory; NaN where it has no weights. TESS_ERR_ALLOC. Local. */
tess_status image_primary_beam_rows(const image_run *run, int64_t output, int pol,
                                    tess_rows *rows);

void image_primary_beam_free(image_primary_beam *beam); /**< NULL is fine. Local. */

#endif
