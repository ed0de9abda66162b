/** @file image_found.h  (private to app/imager/run/)
 *  What a run finds of its images, for the last lines of the log: beams, peaks, rms and
 *  the noise to be expected. Filled in by image_files.c while images are written.
 */
#ifndef TESS_IMAGE_FOUND_H
#define TESS_IMAGE_FOUND_H

#include "image_files.h"
#include "imager_product.h"
#include "output_table.h"

/** Why an image is cleaned no further. */
typedef enum image_end {
    IMAGE_END_THRESHOLD,
    IMAGE_END_NMITER,
    IMAGE_END_MASK_NMITER,
    IMAGE_END_NITER,
    IMAGE_END_NEGATIVE,
    IMAGE_END_STALLED,
    IMAGE_END_DIVERGED,
    IMAGE_END_NOTHING,
    IMAGE_END_UNMASKED, /**< the automatic mask is empty */
    IMAGE_END_STOPPED,
    NUM_IMAGE_ENDS
} image_end;

/** What is known of one image. All members are doubles, so that ranks can sum arrays of
 * them: one rank fills in an image, and the others have zeros. */
struct image_found {
    double made;           /**< 1: this run has made it */
    double has_data;       /**< 1: its pixels are not NaN */
    tess_fits_beam beam;   /**< of the PSF, and of restored images without `common` */
    tess_fits_beam common; /**< of restored images with --common-beam; else zeros */
    double beam_failure;   /**< a tess_beam_failure; 0 also if no PSF was made */
    double beam_expected;  /**< FWHM [pixels] that the longest baseline lets expect, or
                              that of the taper, which WSClean takes where it is wider */
    double peak_jy;        /**< value of largest absolute value, with its sign */
    double peak_pixel;     /**< number of its pixel, row · nx + column */
    double rms_jy;         /**< √(mean of squares) over all pixels that are not NaN */
    double noise_jy; /**< noise that is expected if weights are 1/σ²; NAN: unknown */
    double majors;   /**< major iterations; 0: the image was not cleaned */
    double iterations;   /**< minor ones */
    double threshold_jy; /**< final threshold of the last minor loop; 0: none */
    double flux_jy;      /**< of the model */
    double num_scales;
    double nu0_hz; /**< reference frequency of the spectrum that was fitted; 0: none */
    double deviation_jy; /**< 1.4826 MAD of the restored image; 0: it is not told */
    double sum_jy;       /**< sum of its pixels [Jy/beam] */
    double residual_rms_jy, residual_peak_jy;
    double residual_deviation_jy; /**< 1.4826 MAD of the residual; 0: it is not told */
    double clean_end;             /**< an image_end: why it was cleaned no further */
};

typedef struct image_found_table {
    int64_t num_channels,
        num_intervals; /**< num_channels: with the mean, if there is one */
    int num_pol;
    struct image_found *image; /**< [num_intervals][num_channels][num_pol] */
    tess_fits_beam
        *common; /**< [num_intervals] zeros: not found yet, or not asked for */
} image_found_table;

/** TESS_ERR_ALLOC. Local. */
tess_status image_found_create(const output_table *outputs, int num_pol,
                               image_found_table *summary);
void image_found_free(image_found_table *summary); /**< Local. */

/** The entry of the image of an output channel (-1: the mean) and interval. Local. */
struct image_found *image_found_at(const image_found_table *summary, int64_t interval,
                                   int64_t channel, int pol);

/** The beam of restored images. Local. */
static inline tess_fits_beam image_found_restored(const struct image_found *found)
{
    return found->common.major_rad > 0 ? found->common : found->beam;
}

/** Number of images. Local. */
static inline int64_t image_found_count(const image_found_table *summary)
{
    return summary->num_intervals * summary->num_channels * summary->num_pol;
}

/** Whether each image has lines of its own; of many images only ranges are told. Local.
 */
bool image_found_has_lines(const image_found_table *summary);

/** Whether the last lines tell the deviations of a cleaned image of an output channel
 *  (-1: the mean) and of its residual. They do where each image has lines of its own,
 *  and for the first mean of channels that were cleaned together. Local. */
bool image_found_tells_deviation(const image_files *output, int64_t interval,
                                 int64_t channel, int pol);

/** Measure peak, rms and sum of an image that is distributed by rows, and its deviation
 *  where that is wanted, because it takes several times as long. Collective. */
tess_status image_found_measure(tess_comm *comm, const tess_rows *rows, int threads,
                                bool wants_deviation, struct image_found *found);

/** Measure the same of the residual of an image, but for the sum. Collective. */
tess_status image_found_measure_residual(tess_comm *comm, const tess_rows *rows,
                                         int threads, bool wants_deviation,
                                         struct image_found *found);

/** The sum of a model that is distributed by rows [Jy]. Collective. */
tess_status image_model_flux(tess_comm *comm, const tess_rows *rows, double *flux_jy);

#endif
