/* Subtracts predicted visibilities from samples. */
#include "residual.h"

static double complex value_of(const tess_samples *samples, int64_t at)
{
    return CMPLX(tess_real_at(samples->vis, samples->is_double, 2 * at),
                 tess_real_at(samples->vis, samples->is_double, 2 * at + 1));
}

static void put_value(tess_samples *samples, int64_t at, double complex value)
{
    tess_real_set(samples->vis, samples->is_double, 2 * at, creal(value));
    tess_real_set(samples->vis, samples->is_double, 2 * at + 1, cimag(value));
}

/* Subtracts `factor` times the visibilities of the model from one sample. */
static void subtract_sample(const imager_job_model *model, double factor,
                            const tess_samples *samples, const tess_samples *predicted,
                            int64_t sample, tess_samples *residual)
{
    double complex value[IMAGER_MAX_MODEL];
    for (int k = 0; k < model->num; ++k)
        value[k] = factor * value_of(predicted, sample * model->num + k);
    for (int p = 0; p < samples->num_pol; ++p) {
        const int64_t at = sample * samples->num_pol + p;
        double complex sum = 0;
        for (int k = 0; k < model->num; ++k)
            sum += model->mix[p][k] * value[k];
        put_value(residual, at, value_of(samples, at) - sum);
    }
}

void residual_subtract(const imager_job_model *model, double factor, int threads,
                       const tess_samples *samples, const tess_samples *predicted,
                       tess_samples *residual)
{
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t k = 0; k < samples->num_vis; ++k)
        subtract_sample(model, factor, samples, predicted, k, residual);
}
