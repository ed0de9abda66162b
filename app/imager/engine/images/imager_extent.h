/** @file imager_extent.h  (private to app/imager/)
 *  The extent of visibilities in w, baseline length and frequency, which a plan covers.
 */
#ifndef TESS_IMAGER_EXTENT_H
#define TESS_IMAGER_EXTENT_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"

typedef struct tess_samples tess_samples; /* tess_samples.h */

/** Extent of the visibilities that one image is made of, over all ranks. */
typedef struct imager_extent {
    int64_t num_vis;
    double w_min_lambda, w_max_lambda; /* least and largest |w| */
    double w_span_lambda;  /* for several images the smallest range of |w| that one of
                              them has; < 0: w_max − w_min */
    double uvw_max_lambda; /* longest baseline */
    double freq_sum, freq_min, freq_max;
    double weight_sum;     /* sum of the natural weights of the first polarisation */
    double largest_weight; /* largest natural weight */
    double largest_vis_jy; /* largest magnitude of a real or imaginary part of a
                              polarisation */
} imager_extent;

/** The extent of an empty set of visibilities. Local. */
imager_extent imager_extent_empty(void);

/** Add channels [begin, end) of a row of samples to `extent`. With `skip_ignored`,
 * ignored samples do not count. Without it the samples are those of a prediction, which
 * have no values, so that the largest value is not searched for. Local. */
void imager_extent_add_row(const tess_samples *samples, const double *freq_hz,
                           bool skip_ignored, int64_t row, int32_t begin, int32_t end,
                           imager_extent *extent);

/** Add the visibilities of `extent` to `total`. Local. */
void imager_extent_join(imager_extent *total, const imager_extent *extent);

/** Sum extents [count] over ranks. Collective. */
tess_status imager_extent_sum(tess_comm *comm, imager_extent *extent, int64_t count);

#endif
