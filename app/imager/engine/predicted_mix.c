/* From predicted visibilities of model images to the correlations of a file: the last
 * step of a prediction, before visibilities are written or given to a caller. */
#include "predicted_mix.h"

#include "tess_real.h"

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
