/** @file tess_multithresh.h
 *  Masks of CLEAN that several thresholds find in residual images: auto-multithresh
 *  (Kepley et al. 2020, PASP 132, 024505). Images are distributed by rows.
 *
 *  Each round adds to the mask of an image. With the noise σ (1.4826 · MAD), the median
 *  and the largest |residual|, and with the highest sidelobe of the PSF:
 *  1. Pixels above median + max(sidelobe · largest · sidelobe level, noise · σ) are
 *     regions. Regions of fewer pixels than a share of the beam are left out. The
 *     others are convolved with the beam, and cut at a share of the largest value.
 *  2. From the second round on, the mask is grown: pixels of it and next to it, step by
 *     step, while they are above the threshold with `low_noise` in place of `noise`.
 *     What has grown is pruned, convolved and cut alike.
 *  3. Pixels below the median by max(sidelobe · …, negative · σ) are convolved and cut,
 *     and are a mask of absorption, which does not grow.
 */
#ifndef TESS_MULTITHRESH_H
#define TESS_MULTITHRESH_H

#include "tess_clean.h"

/** A number alone behind a semicolon is a default. */
typedef struct tess_multithresh_opts {
    double sidelobe;           /**< times the sidelobe level times the peak; 3 */
    double noise, low_noise;   /**< in σ; 5, 1.5 */
    double negative;           /**< in σ; 0: no mask of absorption */
    double smooth_factor;      /**< times the beam; 1 */
    double min_beam_frac;      /**< of the beam's area; .3. 0: nothing is pruned */
    double cut;                /**< of the largest convolved value; .01 */
    int64_t grow_iterations;   /**< 75 */
    bool grow_prune;           /**< what has grown is pruned; true */
    double min_percent_change; /**< a mask that changes by less at the final threshold
                                  is settled [percent]; −1: it never is */
    bool fast_noise; /**< σ of the whole image; true. Else of what is outside the mask
                        or, in the first round, of what Chauvenet's criterion leaves */
} tess_multithresh_opts;

void tess_multithresh_opts_default(tess_multithresh_opts *opts); /**< Local. */

/** The image whose mask is found. */
typedef struct tess_multithresh_image {
    int64_t nx, ny, row_first, num_rows; /**< rows as of tess_clean_images */
    tess_clean_beam beam;                /**< zeros: nothing is pruned or convolved */
    double sidelobe_level;               /**< tess_psf_sidelobe() */
    int threads;
} tess_multithresh_image;

/** What a round has found; the same on all ranks. */
typedef struct tess_multithresh_report {
    double sigma, median, peak; /**< peak: the largest |residual| */
    double threshold;
    bool by_sidelobe;                /**< the threshold is that of sidelobes */
    int64_t num_regions, num_pruned; /**< above the threshold, and too small of these */
    int64_t num_grown, grown_pruned; /**< of what has grown */
    int64_t num_negative;            /**< pixels of the mask of absorption */
    int64_t num_pixels;              /**< pixels of the mask */
} tess_multithresh_report;

typedef struct tess_multithresh tess_multithresh;

/** An empty mask. TESS_ERR_ALLOC. Collective. */
tess_status tess_multithresh_create(tess_comm *comm,
                                    const tess_multithresh_image *image,
                                    const tess_multithresh_opts *opts,
                                    tess_multithresh **mask);
void tess_multithresh_destroy(tess_multithresh *mask); /**< NULL is fine. Local. */

/** One round. Pixels that are NaN, or where `region` (TESS_PIXEL_MASK in host memory;
 *  NULL: everywhere) is 0, count for nothing and are not masked. `at_end`: the last
 *  minor loop ended at its final threshold. TESS_ERR_ALLOC. Collective. */
tess_status tess_multithresh_update(tess_multithresh *mask, const tess_rows *residual,
                                    const tess_rows *region, bool at_end,
                                    tess_multithresh_report *report);

/** This rank's rows of the mask, [num_rows][nx], 0 or 1. Local. */
const uint8_t *tess_multithresh_pixels(const tess_multithresh *mask);

/** For checkpoints: the number of rounds, negative once the mask is settled, and for
 *  each pixel of this rank 0, 1 (masked), or 3 (masked, and not for absorption alone).
 *  Local. */
int64_t tess_multithresh_rounds(const tess_multithresh *mask);
int tess_multithresh_state(const tess_multithresh *mask, int64_t pixel);

/** Go on from such a state; [num_rows][nx]. Local. */
void tess_multithresh_resume(tess_multithresh *mask, int64_t rounds,
                             const uint32_t *state);

/** Bytes that a round takes on a rank with so many pixels, beside the caller's; of
 *  these, those that are kept between rounds. Local. */
void tess_multithresh_bytes(double pixels, double *most, double *kept);

/** Fit a Gaussian to the main lobe of a PSF, its pixels above .35 of the centre, as CASA
 *  does; `*beam` stays as it is where that fails. TESS_ERR_ALLOC. Collective. */
tess_status tess_psf_lobe(tess_comm *comm, const tess_rows *psf, tess_clean_beam *beam);

/** The highest sidelobe of a PSF, whose centre counts as 1: the largest value that a
 *  beam leaves when it is subtracted, or the depth of the lowest value. Collective. */
tess_status tess_psf_sidelobe(tess_comm *comm, const tess_rows *psf,
                              const tess_clean_beam *beam, double *level);

#endif
