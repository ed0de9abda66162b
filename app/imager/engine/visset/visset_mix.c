/* Mixes the correlations of samples to what a target grids of them. */
#include "visset_private.h"

#include "tess_mem.h"
#include "tess_real.h"

/* Sets the values of one sample: factor[num_pol][corrs] times its correlations. */
static void mix_sample(const tess_samples *samples, int64_t sample,
                       const double complex *factor, tess_samples *mixed)
{
    const bool is_double = samples->is_double;
    const int corrs = samples->num_pol;
    for (int p = 0; p < mixed->num_pol; ++p, factor += corrs) {
        const int64_t at = 2 * (sample * mixed->num_pol + p);
        double re = 0, im = 0;
        for (int k = 0; k < corrs; ++k) {
            const int64_t from = 2 * (sample * corrs + k);
            const double a = creal(factor[k]), b = cimag(factor[k]);
            const double x = tess_real_at(samples->vis, is_double, from);
            const double y = tess_real_at(samples->vis, is_double, from + 1);
            re += a * x - b * y;
            im += a * y + b * x;
        }
        tess_real_set(mixed->vis, is_double, at, re);
        tess_real_set(mixed->vis, is_double, at + 1, im);
    }
}

static void mix_row(const imager_job *job, const tess_samples *samples, int64_t row,
                    double complex *factor, tess_samples *mixed)
{
    const imager_view *view = &job->view;
    const int64_t values = (int64_t)mixed->num_pol * samples->num_pol;
    view->factors(view->context, job->targets.aim, samples, row, factor);
    for (int32_t c = 0; c < samples->num_chan[row]; ++c)
        mix_sample(samples, samples->vis_first[row] + c, factor + c * values, mixed);
}

tess_status visset_mix(const imager_job *job, const tess_samples *samples,
                       tess_samples *mixed)
{
    tess_status status = TESS_OK;
    const int64_t most =
        (int64_t)tess_samples_longest_row(samples, 0, samples->num_rows) *
        mixed->num_pol * samples->num_pol;
    bool complete = true;
#pragma omp parallel num_threads(job->layout->threads) reduction(&& : complete)
    {
        double complex *factor = tess_alloc(most, sizeof *factor);
        complete = factor != NULL;
#pragma omp for schedule(static)
        for (int64_t row = 0; row < samples->num_rows; ++row)
            if (factor) mix_row(job, samples, row, factor, mixed);
        tess_free(factor);
    }
    if (!complete) TESS_FAIL(TESS_ERR_ALLOC, "factors of a row of visibilities");
cleanup:
    return status;
}
