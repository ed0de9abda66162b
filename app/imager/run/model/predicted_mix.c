/* Converts predicted visibilities of model images to the correlations of a file. This
 * is the last step of a prediction, before visibilities are written or given to a
 * caller. */
#include "predicted_mix.h"

#include "tess_real.h"

/* The part of image pol[p] in a correlation. A cross-hand without an image is the
 * conjugate of the other one in the sky. */
static double complex coefficient(const tess_pol *pol, int num_pol, int p,
                                  tess_corr corr)
{
    double complex stokes[4];
    tess_pol_from_stokes(corr, stokes);
    if (predicted_is_stokes(&pol[p])) return stokes[pol[p].code - 1];
    const double complex part = pol[p].imaginary ? CMPLX(0, 1) : 1;
    if (pol[p].code == corr) return part;
    const bool is_conjugate = tess_pol_conjugate(pol[p].code) == corr;
    return is_conjugate && !tess_pol_has(pol, num_pol, corr) ? conj(part) : 0;
}

predicted_mix predicted_mix_of(const tess_pol *pol, int num_pol, const tess_corr *corr,
                               int num_corr, double scale)
{
    predicted_mix mix = {.num_corr = num_corr, .num_images = num_pol, .scale = scale};
    for (int c = 0; c < num_corr; ++c)
        for (int p = 0; p < num_pol; ++p)
            mix.coefficient[c][p] = coefficient(pol, num_pol, p, corr[c]);
    return mix;
}

void predicted_mix_sample(const predicted_mix *mix, const tess_samples *samples,
                          int64_t sample, double phase_re, double phase_im, float *out)
{
    /* C's complex product looks for infinities in each result, which takes longer than
     * the product itself */
    const double factor_re = phase_re / mix->scale, factor_im = phase_im / mix->scale;
    for (int c = 0; c < mix->num_corr; ++c) {
        double sum_re = 0, sum_im = 0;
        for (int s = 0; s < mix->num_images; ++s) {
            const int64_t at = 2 * (sample * samples->num_pol + s);
            const double re = tess_real_at(samples->vis, samples->is_double, at);
            const double im = tess_real_at(samples->vis, samples->is_double, at + 1);
            const double mix_re = creal(mix->coefficient[c][s]);
            const double mix_im = cimag(mix->coefficient[c][s]);
            sum_re += mix_re * re - mix_im * im;
            sum_im += mix_re * im + mix_im * re;
        }
        out[2 * c] = (float)(sum_re * factor_re - sum_im * factor_im);
        out[2 * c + 1] = (float)(sum_re * factor_im + sum_im * factor_re);
    }
}
