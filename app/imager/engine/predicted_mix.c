/* From predicted visibilities of model images to the correlations of a file: the last
 * step of a prediction, before visibilities are written or given to a caller. */
#include "predicted_mix.h"

#include "tess_real.h"

/* A correlation's part in the image of a polarisation. */
static double complex coefficient(const tess_pol *pol, tess_corr corr)
{
    double complex stokes[4];
    tess_pol_from_stokes(corr, stokes);
    if (predicted_is_stokes(pol)) return stokes[pol->code - 1];
    if (pol->code != corr) return 0;
    return pol->imaginary ? CMPLX(0, 1) : 1;
}

predicted_mix predicted_mix_of(const tess_pol *pol, int num_pol, const tess_corr *corr,
                               int num_corr, double scale)
{
    predicted_mix mix = {.num_corr = num_corr, .num_images = num_pol, .scale = scale};
    for (int c = 0; c < num_corr; ++c)
        for (int p = 0; p < num_pol; ++p)
            mix.coefficient[c][p] = coefficient(&pol[p], corr[c]);
    return mix;
}

void predicted_mix_sample(const predicted_mix *mix, const tess_samples *samples,
                          int64_t sample, double phase_re, double phase_im, float *out)
{
    const double complex factor = CMPLX(phase_re / mix->scale, phase_im / mix->scale);
    for (int c = 0; c < mix->num_corr; ++c) {
        double complex sum = 0;
        for (int s = 0; s < mix->num_images; ++s) {
            const int64_t at = 2 * (sample * samples->num_pol + s);
            const double re = tess_real_at(samples->vis, samples->is_double, at);
            const double im = tess_real_at(samples->vis, samples->is_double, at + 1);
            sum += mix->coefficient[c][s] * CMPLX(re, im);
        }
        sum *= factor;
        out[2 * c] = (float)creal(sum);
        out[2 * c + 1] = (float)cimag(sum);
    }
}
