/* Maps of spectra, and images between channels, pixel by pixel. Errors are propagated
 * through the fit: a term is a sum of values times coefficients, of logarithms so near
 * the solution. */
#include "tess_spectrum.h"

#include <math.h>

#include "clean_join.h"
#include "tess_mem.h"
#include "tess_omp.h"

enum { MOST = TESS_CLEAN_MOST_TERMS };

typedef struct mapping {
    const clean_spectrum *spectrum;
    const double *const *value;
    const double *sigma;
    const tess_spectrum_maps *maps;
    double *room; /* [threads][num_channels] */
} mapping;

/* Terms of a pixel and their covariance. */
typedef struct pixel_fit {
    double term[MOST], covariance[MOST][MOST];
} pixel_fit;

static bool take_pixel(const mapping *job, int64_t k, double *value)
{
    const clean_spectrum *s = job->spectrum;
    for (int c = 0; c < s->num_channels; ++c) {
        value[c] = s->weight[c] > 0 ? job->value[c][k] : 0;
        if (!isfinite(value[c])) return false;
    }
    return true;
}

static void fit_pixel(const mapping *job, const double *value, pixel_fit *fit)
{
    const clean_spectrum *s = job->spectrum;
    *fit = (pixel_fit){0};
    clean_spectrum_measure(s, value, fit->term);
    for (int c = 0; c < s->num_channels; ++c) {
        double slope[MOST];
        if (!(s->weight[c] > 0)) continue;
        clean_spectrum_slopes(s, fit->term, c, slope);
        for (int i = 0; i < s->num_terms; ++i)
            for (int j = 0; j < s->num_terms; ++j)
                fit->covariance[i][j] +=
                    slope[i] * slope[j] * job->sigma[c] * job->sigma[c];
    }
}

static void put_index(const mapping *job, int64_t k, const pixel_fit *fit)
{
    const tess_spectrum_maps *maps = job->maps;
    const double a = fit->term[0];
    if (job->spectrum->kind == TESS_CLEAN_LOG_POLYNOMIAL) {
        maps->index[k] = fit->term[1];
        maps->index_error[k] = sqrt(fit->covariance[1][1]);
        return;
    }
    const double alpha = fit->term[1] / a; /* d ln S / d ln ν at ν0 */
    maps->index[k] = alpha;
    maps->index_error[k] =
        sqrt(fit->covariance[1][1] + alpha * alpha * fit->covariance[0][0] -
             2 * alpha * fit->covariance[0][1]) /
        fabs(a);
}

static void put_blank(const mapping *job, int64_t k, int first_term)
{
    const tess_spectrum_maps *maps = job->maps;
    for (int i = first_term; i < job->spectrum->num_terms; ++i)
        maps->term[i][k] = maps->error[i][k] = (double)NAN;
    if (maps->index) maps->index[k] = maps->index_error[k] = (double)NAN;
}

static void map_pixel(const mapping *job, int64_t k, double *value)
{
    const clean_spectrum *s = job->spectrum;
    pixel_fit fit;
    if (!take_pixel(job, k, value)) {
        put_blank(job, k, 0);
        return;
    }
    fit_pixel(job, value, &fit);
    for (int i = 0; i < s->num_terms; ++i) {
        job->maps->term[i][k] = fit.term[i];
        job->maps->error[i][k] = sqrt(fit.covariance[i][i]);
    }
    const bool significant =
        fabs(fit.term[0]) >= TESS_SPECTRUM_SIGNIFICANT * sqrt(fit.covariance[0][0]);
    if (!significant)
        put_blank(job, k, s->kind == TESS_CLEAN_LOG_POLYNOMIAL ? 0 : s->num_terms);
    else if (job->maps->index)
        put_index(job, k, &fit);
}

tess_status tess_spectrum_fit(const tess_clean_images *images,
                              const double *const *value, const double *sigma,
                              int threads, const tess_spectrum_maps *maps)
{
    tess_status status = TESS_OK;
    const int64_t pixels = images->num_rows * images->nx;
    clean_join join = {0};
    mapping job = {.value = value, .sigma = sigma, .maps = maps};
    TESS_TRY(clean_join_create(images, &join));
    job.spectrum = &join.spectrum;
    job.room = tess_alloc((int64_t)threads * join.num_channels, sizeof *job.room);
    if (!job.room) TESS_FAIL(TESS_ERR_ALLOC, "spectra of a row");
#pragma omp parallel num_threads(threads)
    {
        double *own = job.room + (int64_t)tess_omp_thread() * join.num_channels;
#pragma omp for schedule(dynamic, 256)
        for (int64_t k = 0; k < pixels; ++k)
            map_pixel(&job, k, own);
    }
cleanup:
    tess_free(job.room);
    clean_join_free(&join);
    return status;
}

/* ---- images between channels ---- */

/* Whether a pixel has values other than 0, which are taken. */
static bool take_values(const clean_spectrum *s, const double *const *value, int64_t k,
                        double *out)
{
    bool any = false;
    for (int c = 0; c < s->num_channels; ++c) {
        const bool counts = s->weight[c] > 0 && isfinite(value[c][k]);
        out[c] = counts ? value[c][k] : 0;
        any = any || out[c] < 0 || out[c] > 0;
    }
    return any;
}

static tess_status make_spectrum(const tess_spectrum_channels *of, double freq_hz,
                                 clean_spectrum *spectrum)
{
    const clean_spectrum_need need = {
        .kind = of->kind,
        .num_terms = of->num_terms,
        .num_pol = 1,
        .num_channels = of->num_channels,
        .num_out = 1,
        .nu0_hz = 0.5 * (of->freq_hz[0] + of->freq_hz[of->num_channels - 1]),
        .freq_hz = of->freq_hz,
        .out_freq_hz = &freq_hz,
        .weight = of->weight};
    return clean_spectrum_create(&need, spectrum);
}

tess_status tess_spectrum_at(const tess_spectrum_channels *of, double freq_hz,
                             const double *const *value, int64_t count, int threads,
                             double *out)
{
    tess_status status = TESS_OK;
    clean_spectrum spectrum = {0};
    bool complete = true;
    TESS_TRY(make_spectrum(of, freq_hz, &spectrum));
#pragma omp parallel num_threads(threads) reduction(&& : complete)
    {
        double *own = tess_alloc(of->num_channels, sizeof *own);
        complete = own != NULL;
#pragma omp for schedule(static)
        for (int64_t k = 0; k < count; ++k) {
            out[k] = 0;
            if (own && take_values(&spectrum, value, k, own))
                clean_spectrum_spread(&spectrum, own, &out[k]);
        }
        tess_free(own);
    }
    if (!complete) TESS_FAIL(TESS_ERR_ALLOC, "spectra of a row");
cleanup:
    clean_spectrum_free(&spectrum);
    return status;
}
