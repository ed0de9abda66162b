/** @file image_primary_beam.h  (private to app/imager/run/)
 *  The primary beam of a run's images.
 */
#ifndef TESS_IMAGE_PRIMARY_BEAM_H
#define TESS_IMAGE_PRIMARY_BEAM_H

#include "image_dishes.h"
#include "image_run.h"

struct tess_beam_mean;

/** A direction that antennas point to. */
typedef struct image_pointing {
    const char *name; /**< of the first field that is observed so; borrowed */
    double direction_rad[2];
    double rotation[3][3]; /**< of direction cosines from the images' centre to here */
    double *time_mjd_s; /**< [num_times] integrations; NULL: the beam does not turn */
    int64_t num_times;
} image_pointing;

/** What the primary beams of a run's images have in common. */
typedef struct image_primary_beam {
    image_dishes dishes;
    image_pointing *pointing; /**< [num_pointings]; one, unless --mosaic joins them */
    int num_pointings;
    int *of_reader; /**< the pointing of each reader of the source */
    int *of_field;  /**< of a mosaic: that of each field of the samples' origins */
    double site_m[3];
    int num_weight; /**< number of weights of a sample: 1, or one for each polarisation
                     */
    int num_sums; /**< one for each polarisation; of a mosaic for each pair of kinds of
                       dishes of each pointing */
    int64_t *weight; /**< [num_intervals][num_sums][num_chan] sums of imaging weights,
                        in a common unit; 0 for channels that have not been weighed.
                        NULL: none has. A run goes on from interval to interval and
                        holds one; a session holds all */
} image_primary_beam;

/** Open the beam that the options ask for and find the pointings, once for a run; of a
 * mosaic, samples keep their origins. TESS_ERR_INPUT for several pointings that are not
 * joined, and as tess_primary_beam_open(). Collective. */
tess_status image_primary_beam_find(image_run *run);

/** Do the same, and read the times at which beams turn. Errors as above. Collective. */
tess_status image_primary_beam_open(image_run *run);

/** Sum the imaging weights of each channel of an output, whose samples are weighted or
 * will be when they are read. Collective. */
tess_status image_primary_beam_weigh(image_run *run, int64_t output, sample_sets *data);

/** What a beam is the mean of. */
typedef struct image_beam_of {
    int sum; /**< whose weights the channels have */
    int pointing, pair;
} image_beam_of;

/** Sine of the largest distance of a pixel of the image from a pointing: that of a
 * corner, or 1 where one is beyond the horizon. Local. */
double image_primary_beam_reach(const image_run *run, const image_pointing *pointing);

/** That of a pair of kinds of dishes at a pointing of a mosaic. Local. */
image_beam_of image_beam_of_pair(const image_primary_beam *beam, int pointing,
                                 int pair);

/** Make the mean beam of an output over channels, by weight, and over the integrations
 * of its interval; NULL where it has no weights. TESS_ERR_ALLOC, TESS_ERR_IO,
 * TESS_ERR_INPUT. Local. */
tess_status image_primary_beam_mean(const image_run *run, int64_t output,
                                    image_beam_of which, struct tess_beam_mean **mean);

/** The power at direction cosines from the images' centre; NaN beyond the horizon.
 * Local. */
double image_pointing_power(const image_pointing *pointing,
                            const struct tess_beam_mean *mean, double l, double m);

/** Add the beam to the products of an output, if there is one and the output has data:
 * the mean over channels, by weight, and over the integrations of its interval. That of
 * a mosaic is made with its images. Collective.
 */
tess_status image_primary_beam_make(image_run *run, int64_t output,
                                    imager_product *product);

/** Give `rows`, which have no memory yet, those of the beam of an output and
 *  polarisation, in host memory; NaN where it has no weights. TESS_ERR_ALLOC. Local. */
tess_status image_primary_beam_rows(const image_run *run, int64_t output, int pol,
                                    tess_rows *rows);

/** Raise `*largest` to the largest beam at any pixel of the images, at any frequency of
 * an output channel and in any interval; the search may end once it is above `enough`.
 * Not of a mosaic. TESS_ERR_ALLOC, TESS_ERR_IO, TESS_ERR_INPUT. Local. */
tess_status image_primary_beam_largest(const image_run *run, int64_t channel,
                                       double enough, double *largest);

void image_primary_beam_free(image_primary_beam *beam); /**< NULL is fine. Local. */

#endif
