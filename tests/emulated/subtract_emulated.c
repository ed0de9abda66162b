/* subtract_cuda.h in host memory; see device_emulated.c. */
#include "subtract_cuda.h"

#include <complex.h>

#include "device_emulated.h"
#include "tess_real.h"

static double complex value_of(const tess_device_samples *samples, int64_t at)
{
    return CMPLX(tess_real_at(samples->vis, samples->is_double, 2 * at),
                 tess_real_at(samples->vis, samples->is_double, 2 * at + 1));
}

tess_status subtract_cuda(const tess_subtraction *what,
                          const tess_device_samples *samples,
                          const tess_device_samples *predicted,
                          const tess_device_samples *residual)
{
    tess_status status = TESS_OK;
    const int num_model = what->num_model, num_pol = what->num_pol;
    double complex value[16];
    if (!device_emulated_enqueues(&status)) return status;
    for (int64_t k = 0; k < samples->num_vis; ++k) {
        for (int m = 0; m < num_model; ++m)
            value[m] = what->factor * value_of(predicted, k * num_model + m);
        for (int p = 0; p < num_pol; ++p) {
            const double *mix = what->mix + 2 * p * num_model;
            const int64_t at = k * num_pol + p;
            double complex sum = 0;
            for (int m = 0; m < num_model; ++m)
                sum += CMPLX(mix[2 * m], mix[2 * m + 1]) * value[m];
            sum = value_of(samples, at) - sum;
            tess_real_set(residual->vis, samples->is_double, 2 * at, creal(sum));
            tess_real_set(residual->vis, samples->is_double, 2 * at + 1, cimag(sum));
        }
    }
    return status;
}
