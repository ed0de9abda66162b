/** @file predicted_rows.h  (private to app/imager/run/)
 *  Rows of an observation at which visibilities of model images are predicted: samples
 *  are made of them, and correlations of the file of what is predicted at the samples.
 */
#ifndef TESS_PREDICTED_ROWS_H
#define TESS_PREDICTED_ROWS_H

#include <complex.h>

#include "imager_job.h"
#include "prepare.h"
#include "tess_polar.h"
#include "tess_samples.h"
#include "tess_vis.h"

/** A correlation is the sum of these times the visibilities of the model images. */
typedef struct predicted_mix {
    int num_corr, num_images;
    int first;    /**< image of the samples, which may have more than these */
    double scale; /**< predicted visibilities are those of the model times this */
    double complex coefficient[TESS_MAX_CORR][IMAGER_MAX_MODEL];
} predicted_mix;

/** Whether an image is of a Stokes parameter, not of a correlation. */
static inline bool predicted_is_stokes(const tess_pol *pol)
{
    return pol->code >= 1 && pol->code <= 4;
}

/** Find how model images of these polarisations, pol[num_pol], make up correlations
 * corr[num_corr]. Local. */
predicted_mix predicted_mix_of(const tess_pol *pol, int num_pol, const tess_corr *corr,
                               int num_corr, double scale);

/** Make the correlations of one sample, out[num_corr][2], times a phase factor. Local.
 */
void predicted_mix_sample(const predicted_mix *mix, const tess_samples *samples,
                          int64_t sample, double phase_re, double phase_im, float *out);

/** Samples of the rows of several blocks. */
typedef struct predicted_rows {
    tess_samples samples;
    int64_t *row; /**< [samples.num_rows] row within its block */
    int64_t capacity;
} predicted_rows;

/** Neighbouring channels of a block's rows, among the samples. */
typedef struct predicted_part {
    const tess_recipe *recipe; /**< of the segment; borrowed */
    int64_t chan, num_chan;    /**< channels of the segment */
    int64_t first, end;        /**< rows of the samples */
} predicted_part;

/** Make room for so many rows and samples in all. TESS_ERR_ALLOC. Local. */
tess_status predicted_rows_reserve(predicted_rows *rows, int64_t num_rows,
                                   int64_t num_vis);

/** Make samples of a block's rows: of the segment's channels from `chan` on, as many as
 *  the block has. Rows without finite uvw have none. TESS_ERR_ALLOC. Local. */
tess_status predicted_rows_add(predicted_rows *rows, const tess_recipe *recipe,
                               const tess_vis_block *block, int64_t chan,
                               predicted_part *part);

/** Put what has been predicted into block->vis, from channel `to_chan` of the block on,
 *  with at most `threads` threads. Of the block, uvw_m is needed if the recipe rotates.
 *  Local. */
void predicted_rows_take(const predicted_rows *rows, const predicted_part *part,
                         const predicted_mix *mix, int threads, int64_t to_chan,
                         tess_vis_block *block);

void predicted_rows_free(predicted_rows *rows); /**< Local. */

#endif
