/** @file continuum.h  (private to app/imager/)
 *  The continuum of spectral lines: a polynomial in frequency for each row, spectral
 *  window and correlation, fitted to the channels without lines, and subtracted from
 *  all channels.
 */
#ifndef TESS_CONTINUUM_H
#define TESS_CONTINUUM_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_vis.h"

enum { CONTINUUM_MAX_ORDER = 9 };

/** What the rows of one segment are fitted by. */
typedef struct continuum {
    int order;        /**< of the polynomial */
    int64_t num_chan; /**< of a row */
    bool *is_line;    /**< [num_chan] channels that are not fitted */
    double *place;    /**< [num_chan] frequency, from −1 to 1 in its window */
    int num_windows;  /**< consecutive channels with one window number */
    int64_t *end;     /**< [num_windows] where the channels of a window end */
} continuum;

/** For a segment of these windows; no channel has a line yet. TESS_ERR_ALLOC. Local. */
tess_status continuum_create(const tess_vis_segment *segment, int order,
                             continuum *fit);
void continuum_free(continuum *fit); /**< Zeros are fine. Local. */

/** Number of channels of window `k` that are fitted. Local. */
int64_t continuum_num_fitted(const continuum *fit, int k);

/** Subtract from each row, window and correlation of the block the polynomial that fits
 *  real and imaginary part best, by the weights of the block. Samples that are flagged,
 *  not finite or without weight do not count. Where fewer samples are left than the
 *  polynomial has coefficients, the window of the row is flagged in this correlation;
 *  `*num_unfit` becomes the number of rows and windows in which that was so of samples
 *  that were good. TESS_ERR_ALLOC. Local. */
tess_status continuum_subtract(const continuum *fit, int num_threads,
                               tess_vis_block *block, int64_t *num_unfit);

#endif
