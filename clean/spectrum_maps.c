/* Maps of spectra, and images between channels, pixel by pixel. Errors are propagated
 * through the fit: a term is a sum of values times coefficients, of logarithms so near
 * the solution. Where the function does not fit, χ² tells how much larger than the
 * noise its deviations are, and errors grow with it. */
#include "tess_spectrum.h"

#include <math.h>

#include "clean_join.h"
#include "tess_mem.h"
#include "tess_omp.h"

enum { MOST = TESS_CLEAN_MOST_TERMS };

typedef struct mapping {
    const clean_spectrum *spectrum;
    tess_rows *value; /* [num_images] views */
    const double *sigma;
    tess_spectrum_maps *maps; /* views */
    double *room;             /* [threads][num_channels] */
    double *filter; /* [num_filters][num_channels]: see may_be_significant() */
    int num_filters;
} mapping;

/* Terms of a pixel and their covariance. */
typedef struct pixel_fit {
    double term[MOST], covariance[MOST][MOST];
    double chi2; /* reduced; NaN without degrees of freedom or noise */
} pixel_fit;

/* ---- pixels without a source ---- */

/* Makes polynomials of places that are orthonormal if weighted by 1/σ², times 1/σ². */
static void fill_filter(mapping *job)
{
    const clean_spectrum *s = job->spectrum;
    for (int t = 0; t < job->num_filters; ++t) {
        double *own = job->filter + (int64_t)t * s->num_channels, norm = 0;
        for (int c = 0; c < s->num_channels; ++c)
            own[c] = s->weight[c] > 0 ? pow(s->at[c], t) / job->sigma[c] : 0;
        for (int u = 0; u < t; ++u) {
            const double *other = job->filter + (int64_t)u * s->num_channels;
            double share = 0;
            for (int c = 0; c < s->num_channels; ++c)
                share += own[c] * other[c];
            for (int c = 0; c < s->num_channels; ++c)
                own[c] -= share * other[c];
        }
        for (int c = 0; c < s->num_channels; ++c)
            norm += own[c] * own[c];
        for (int c = 0; c < s->num_channels; ++c)
            own[c] /= norm > 0 ? sqrt(norm) : 1;
    }
    for (int t = 0; t < job->num_filters; ++t)
        for (int c = 0; c < s->num_channels; ++c)
            job->filter[t * s->num_channels + c] /=
                s->weight[c] > 0 ? job->sigma[c] : 1;
}

/* A filter is made for logarithms alone, whose fits take long, and if all noise is
 * known. */
static tess_status make_filter(mapping *job)
{
    tess_status status = TESS_OK;
    const clean_spectrum *s = job->spectrum;
    const int most = s->own_terms[0] + 1;
    if (s->kind != TESS_CLEAN_LOG_POLYNOMIAL) return TESS_OK;
    for (int c = 0; c < s->num_channels; ++c)
        if (s->weight[c] > 0 && !(job->sigma[c] > 0)) return TESS_OK;
    job->num_filters = most < s->num_known[0] ? most : s->num_known[0];
    job->filter =
        tess_alloc((int64_t)job->num_filters * s->num_channels, sizeof *job->filter);
    if (!job->filter) TESS_FAIL(TESS_ERR_ALLOC, "spectra of a row");
    fill_filter(job);
cleanup:
    return status;
}

/* Whether a pixel may have a significant first term. A function a · g that fits best
 * has a² / σ_a² ≤ Σ (a g / σ)², which is nearly that of the polynomials of one term
 * more than logarithms have: over two octaves they hold 99 % of a power law of index
 * −2. The limit allows for 36 %. */
static bool may_be_significant(const mapping *job, const double *value)
{
    static const double LEAST =
        0.64 * TESS_SPECTRUM_SIGNIFICANT * TESS_SPECTRUM_SIGNIFICANT;
    const int channels = job->spectrum->num_channels;
    double power = 0;
    if (job->num_filters == 0) return true;
    for (int t = 0; t < job->num_filters; ++t) {
        double sum = 0;
        for (int c = 0; c < channels; ++c)
            sum += job->filter[t * channels + c] * value[c];
        power += sum * sum;
    }
    return power >= LEAST;
}

/* ---- fits ---- */

static bool take_pixel(const mapping *job, int64_t k, double *value)
{
    const clean_spectrum *s = job->spectrum;
    for (int c = 0; c < s->num_channels; ++c) {
        value[c] = s->weight[c] > 0 ? tess_rows_pixel(&job->value[c], k) : 0;
        if (!isfinite(value[c])) return false;
    }
    return true;
}

static double reduced_chi2(const mapping *job, const double *value, const double *term)
{
    const clean_spectrum *s = job->spectrum;
    const int degrees = s->num_known[0] - s->own_terms[0];
    double sum = 0;
    if (degrees < 1) return (double)NAN;
    for (int c = 0; c < s->num_channels; ++c) {
        if (!(s->weight[c] > 0)) continue;
        if (!(job->sigma[c] > 0)) return (double)NAN;
        const double off = (value[c] - clean_spectrum_at(s, term, c)) / job->sigma[c];
        sum += off * off;
    }
    return sum / degrees;
}

/* The reduced χ² that noise exceeds with the probability of 5 σ (Wilson & Hilferty
 * 1931, PNAS 17, 684). */
static double most_chi2(const clean_spectrum *s)
{
    const double part = 2.0 / (9.0 * (s->num_known[0] - s->own_terms[0]));
    const double root = 1 - part + TESS_SPECTRUM_SIGNIFICANT * sqrt(part);
    return root * root * root;
}

static void fit_pixel(const mapping *job, const double *value, pixel_fit *fit)
{
    const clean_spectrum *s = job->spectrum;
    *fit = (pixel_fit){0};
    clean_spectrum_measure(s, value, fit->term);
    fit->chi2 = reduced_chi2(job, value, fit->term);
    const double times = fit->chi2 > 1 ? fit->chi2 : 1;
    for (int c = 0; c < s->num_channels; ++c) {
        double slope[MOST];
        if (!(s->weight[c] > 0)) continue;
        clean_spectrum_slopes(s, fit->term, c, slope);
        for (int i = 0; i < s->num_terms; ++i)
            for (int j = 0; j < s->num_terms; ++j)
                fit->covariance[i][j] +=
                    times * slope[i] * slope[j] * job->sigma[c] * job->sigma[c];
    }
}

static void put_index(const mapping *job, int64_t k, const pixel_fit *fit)
{
    const tess_spectrum_maps *maps = job->maps;
    const double a = fit->term[0];
    if (job->spectrum->kind == TESS_CLEAN_LOG_POLYNOMIAL) {
        tess_rows_set(&maps->index, k, fit->term[1]);
        tess_rows_set(&maps->index_error, k, sqrt(fit->covariance[1][1]));
        return;
    }
    const double alpha = fit->term[1] / a; /* d ln S / d ln ν at ν0 */
    tess_rows_set(&maps->index, k, alpha);
    tess_rows_set(&maps->index_error, k,
                  sqrt(fit->covariance[1][1] + alpha * alpha * fit->covariance[0][0] -
                       2 * alpha * fit->covariance[0][1]) /
                      fabs(a));
}

static void put_blank(const mapping *job, int64_t k, int first_term)
{
    const tess_spectrum_maps *maps = job->maps;
    for (int i = first_term; i < job->spectrum->num_terms; ++i) {
        tess_rows_set(&maps->term[i], k, (double)NAN);
        tess_rows_set(&maps->error[i], k, (double)NAN);
    }
    if (maps->index.value) {
        tess_rows_set(&maps->index, k, (double)NAN);
        tess_rows_set(&maps->index_error, k, (double)NAN);
    }
    tess_rows_set(&maps->misfit, k, (double)NAN);
}

static void map_pixel(const mapping *job, int64_t k, double *value)
{
    const clean_spectrum *s = job->spectrum;
    pixel_fit fit;
    if (!take_pixel(job, k, value) || !may_be_significant(job, value)) {
        put_blank(job, k, 0);
        return;
    }
    fit_pixel(job, value, &fit);
    for (int i = 0; i < s->num_terms; ++i) {
        tess_rows_set(&job->maps->term[i], k, fit.term[i]);
        tess_rows_set(&job->maps->error[i], k, sqrt(fit.covariance[i][i]));
    }
    tess_rows_set(&job->maps->misfit, k, fit.chi2 / most_chi2(s));
    const bool significant =
        fabs(fit.term[0]) >= TESS_SPECTRUM_SIGNIFICANT * sqrt(fit.covariance[0][0]);
    if (!significant)
        put_blank(job, k, s->kind == TESS_CLEAN_LOG_POLYNOMIAL ? 0 : s->num_terms);
    else if (job->maps->index.value)
        put_index(job, k, &fit);
}

static tess_status make_room(mapping *job, int threads)
{
    job->room =
        tess_alloc((int64_t)threads * job->spectrum->num_channels, sizeof *job->room);
    return job->room ? TESS_OK
                     : tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                         "spectra of a row");
}

/* Rows that are there are those of all images. */
static tess_status check_rows(const tess_clean_images *images, const tess_rows *rows)
{
    tess_status status = TESS_OK;
    if (rows->value && tess_rows_count(rows) != images->num_rows * images->nx)
        TESS_FAIL(TESS_ERR_INTERNAL, "rows of spectra are those of other images");
cleanup:
    return status;
}

/* Views of the images that have pixels. */
static tess_status view_values(const tess_clean_images *images, const tess_rows *value,
                               mapping *job)
{
    tess_status status = TESS_OK;
    job->value = tess_alloc_zero(images->num_images, sizeof *job->value);
    if (!job->value)
        TESS_FAIL(TESS_ERR_ALLOC, "images of %d channels", images->num_images);
    for (int c = 0; c < images->num_images; ++c) {
        TESS_TRY(check_rows(images, &value[c]));
        TESS_TRY(tess_rows_view(&value[c], &job->value[c]));
    }
cleanup:
    return status;
}

static void drop_values(const tess_clean_images *images, mapping *job)
{
    for (int c = 0; job->value && c < images->num_images; ++c)
        tess_rows_free(&job->value[c]);
    tess_free(job->value);
}

/* All maps, of the caller or their views, one after the other. */
enum { MOST_MAPS = 2 * MOST + 3 };

static void list_maps(tess_spectrum_maps *maps, tess_rows *list[MOST_MAPS])
{
    for (int i = 0; i < MOST; ++i) {
        list[2 * i] = &maps->term[i];
        list[2 * i + 1] = &maps->error[i];
    }
    list[2 * MOST] = &maps->index;
    list[2 * MOST + 1] = &maps->index_error;
    list[2 * MOST + 2] = &maps->misfit;
}

/* Views of the maps that have pixels. */
static tess_status edit_maps(const tess_spectrum_maps *maps, tess_spectrum_maps *views)
{
    tess_status status = TESS_OK;
    tess_spectrum_maps own = *maps;
    tess_rows *of[MOST_MAPS], *view[MOST_MAPS];
    list_maps(&own, of);
    list_maps(views, view);
    for (int k = 0; k < MOST_MAPS; ++k)
        if (of[k]->value) TESS_TRY(tess_rows_edit(of[k], false, view[k]));
cleanup:
    return status;
}

static tess_status put_maps_back(const tess_spectrum_maps *maps,
                                 tess_spectrum_maps *views)
{
    tess_status status = TESS_OK;
    tess_spectrum_maps own = *maps;
    tess_rows *of[MOST_MAPS], *view[MOST_MAPS];
    list_maps(&own, of);
    list_maps(views, view);
    for (int k = 0; k < MOST_MAPS; ++k)
        if (of[k]->value) TESS_TRY(tess_rows_put_back(of[k], view[k]));
cleanup:
    return status;
}

static void drop_maps(tess_spectrum_maps *maps)
{
    tess_rows *list[MOST_MAPS];
    list_maps(maps, list);
    for (int k = 0; k < MOST_MAPS; ++k)
        tess_rows_free(list[k]);
}

tess_status tess_spectrum_fit(const tess_clean_images *images, const tess_rows *value,
                              const double *sigma, int threads,
                              const tess_spectrum_maps *maps)
{
    tess_status status = TESS_OK;
    const int64_t pixels = images->num_rows * images->nx;
    clean_join join = {0};
    tess_spectrum_maps views = {0};
    mapping job = {.sigma = sigma, .maps = &views};
    TESS_TRY(view_values(images, value, &job));
    TESS_TRY(edit_maps(maps, &views));
    TESS_TRY(clean_join_create(images, &join));
    job.spectrum = &join.spectrum;
    TESS_TRY(make_room(&job, threads));
    TESS_TRY(make_filter(&job));
#pragma omp parallel num_threads(threads)
    {
        double *own = job.room + (int64_t)tess_omp_thread() * join.num_channels;
#pragma omp for schedule(dynamic, 256)
        for (int64_t k = 0; k < pixels; ++k)
            map_pixel(&job, k, own);
    }
    TESS_TRY(put_maps_back(maps, &views));
cleanup:
    drop_values(images, &job);
    drop_maps(&views);
    tess_free(job.room);
    tess_free(job.filter);
    clean_join_free(&join);
    return status;
}

/* ---- more terms ---- */

/* `misfit`: a view of the trial's. */
static bool is_tried(const tess_clean_images *images, const tess_rows *misfit,
                     int64_t each, int64_t k)
{
    return tess_rows_pixel(misfit, k) > 1 &&
           (images->row_first * images->nx + k) % each == 0;
}

/* Counts the pixels that the terms of images->join fit. */
static tess_status count_fitted(const tess_clean_images *images, mapping *job,
                                int threads, const tess_rows *misfit, int64_t each,
                                int64_t *count)
{
    tess_status status = TESS_OK;
    const int64_t pixels = images->num_rows * images->nx;
    int64_t fitted = 0;
    clean_join join = {0};
    TESS_TRY(clean_join_create(images, &join));
    job->spectrum = &join.spectrum;
    TESS_TRY(make_room(job, threads));
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads) \
        reduction(+ : fitted)
    for (int64_t k = 0; k < pixels; ++k) {
        double *own = job->room + (int64_t)tess_omp_thread() * join.num_channels;
        double term[MOST];
        if (!is_tried(images, misfit, each, k) || !take_pixel(job, k, own)) continue;
        clean_spectrum_measure(job->spectrum, own, term);
        fitted += reduced_chi2(job, own, term) <= most_chi2(job->spectrum);
    }
    *count = fitted;
cleanup:
    tess_free(job->room);
    job->room = NULL;
    clean_join_free(&join);
    return status;
}

tess_status tess_spectrum_try(const tess_clean_images *images, const tess_rows *value,
                              const double *sigma, int threads,
                              tess_spectrum_trial *trial)
{
    tess_status status = TESS_OK;
    int channels = 0;
    tess_clean_images more = *images;
    mapping job = {.sigma = sigma};
    tess_rows misfit = {0};
    TESS_TRY(view_values(images, value, &job));
    TESS_TRY(tess_rows_view(trial->misfit, &misfit));
    trial->tried = 0;
    for (int t = 0; t <= MOST; ++t)
        trial->fitted[t] = 0;
    for (int64_t k = 0; k < images->num_rows * images->nx; ++k)
        trial->tried += is_tried(images, &misfit, trial->each, k);
    for (int c = 0; c < images->num_images; ++c)
        channels += images->weight[c] > 0;
    for (int t = images->join.num_terms + 1; t <= MOST && t < channels; ++t) {
        more.join.num_terms = t;
        TESS_TRY(count_fitted(&more, &job, threads, &misfit, trial->each,
                              &trial->fitted[t]));
    }
cleanup:
    drop_values(images, &job);
    tess_rows_free(&misfit);
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
