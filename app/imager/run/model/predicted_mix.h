/** @file predicted_mix.h  (private to app/imager/)
 *  Converts predicted visibilities of model images to the correlations of a file.
 */
#ifndef TESS_PREDICTED_MIX_H
#define TESS_PREDICTED_MIX_H

#include <complex.h>

#include "imager_job.h"
#include "tess_polar.h"
#include "tess_samples.h"
#include "tess_vis.h"

/** A correlation is the sum of these times the visibilities of the model images. */
typedef struct predicted_mix {
    int num_corr, num_images;
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

#endif
