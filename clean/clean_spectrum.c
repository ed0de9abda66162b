/* Fits spectra. Polynomials are fitted by linear least squares, whose solution is
 * computed once for all pixels. Polynomials of logarithms are fitted by iterations:
 * see clean_log_spectrum.c. */
#include "clean_spectrum.h"

#include <math.h>
#include <string.h>

#include "clean_log_spectrum.h"
#include "clean_small.h"
#include "tess_mem.h"

enum { MOST = TESS_CLEAN_MOST_TERMS };

/* Two frequencies count as one if their places differ by no more than this: no term
 * could be told from another by so small a part of the band. */
static const double SAME_PLACE = 1e-6;

/* ---- polynomials ---- */

static double *solution_of(const clean_spectrum *s, int pol)
{
    return s->solution + (int64_t)pol * s->num_terms * s->num_channels;
}

/* Computes (Vᵀ W V)⁻¹ Vᵀ W column by column, where V holds the powers of the channels'
 * places. */
static void find_solution(const clean_spectrum *s, int pol)
{
    const int n = s->own_terms[pol];
    double *solution = solution_of(s, pol);
    double normal[MOST][MOST] = {{0}}, power[MOST];
    for (int c = 0; c < s->num_channels; ++c) {
        clean_powers(s->at[c], n, power);
        for (int i = 0; i < n; ++i)
            for (int j = 0; j < n; ++j)
                normal[i][j] += s->weight[c * s->num_pol + pol] * power[i] * power[j];
    }
    for (int c = 0; c < s->num_channels; ++c) {
        double copy[MOST][MOST], column[MOST];
        const double weight = s->weight[c * s->num_pol + pol];
        memcpy(copy, normal, sizeof copy);
        clean_powers(s->at[c], n, column);
        for (int i = 0; i < n; ++i)
            column[i] *= weight;
        if (weight > 0 && clean_solve(copy, column, n))
            for (int i = 0; i < n; ++i)
                solution[i * s->num_channels + c] = column[i];
    }
}

/* Fits a polynomial, whose terms belong to powers of places. */
static void fit_polynomial(const clean_spectrum *s, const double *value, int pol,
                           double *term)
{
    const double *solution = solution_of(s, pol);
    for (int i = 0; i < s->num_terms; ++i) {
        term[i] = 0;
        for (int c = 0; c < s->num_channels; ++c)
            term[i] += solution[i * s->num_channels + c] * value[c * s->num_pol + pol];
    }
}

/* ---- either ---- */

static double at_place(const clean_spectrum *s, const double *term, double x)
{
    if (s->kind == TESS_CLEAN_POLYNOMIAL)
        return clean_polynomial(term, s->num_terms, x);
    return clean_log_at(term, s->num_terms, x);
}

static void fit_places(const clean_spectrum *s, const double *noise,
                       const double *value, int pol, double *term)
{
    if (s->kind == TESS_CLEAN_LOG_POLYNOMIAL)
        clean_log_component(s, value, pol, noise ? noise[pol] : 0, term);
    else
        fit_polynomial(s, value, pol, term);
}

static void evaluate(const clean_spectrum *s, const double *noise, const double *value,
                     const double *at, int count, double *out)
{
    double term[MOST];
    for (int p = 0; p < s->num_pol; ++p) {
        fit_places(s, noise, value, p, term);
        for (int c = 0; c < count; ++c)
            out[c * s->num_pol + p] = at_place(s, term, at[c]);
    }
}

void clean_spectrum_fit(const clean_spectrum *s, const double *noise, double *value)
{
    if (s->kind != TESS_CLEAN_EACH_CHANNEL)
        evaluate(s, noise, value, s->at, s->num_channels, value);
}

void clean_spectrum_spread(const clean_spectrum *s, const double *value, double *out)
{
    if (s->kind != TESS_CLEAN_EACH_CHANNEL)
        evaluate(s, NULL, value, s->at_out, s->num_out, out);
    else
        memcpy(out, value, (size_t)(s->num_channels * s->num_pol) * sizeof *value);
}

/* Turns terms of powers of places into terms of powers of distances from ν0. */
static void scale_terms(const clean_spectrum *s, double *term)
{
    double scale = 1;
    for (int k = 0; k < s->num_terms; ++k, scale /= s->unit)
        term[k] *= scale;
}

void clean_spectrum_terms(const clean_spectrum *s, const double *value, int pol,
                          double *term)
{
    fit_places(s, NULL, value, pol, term);
    scale_terms(s, term);
}

void clean_spectrum_measure(const clean_spectrum *s, const double *value, double *term)
{
    if (s->kind == TESS_CLEAN_LOG_POLYNOMIAL)
        clean_log_measure(s, value, term);
    else
        fit_polynomial(s, value, 0, term);
    scale_terms(s, term);
}

/* Computes the derivatives of a polynomial of logarithms with respect to its terms,
 * which belong to powers of places. */
static void log_slopes(const clean_spectrum *s, const double *term, double x,
                       double *slope)
{
    const int n = s->own_terms[0];
    const double value = at_place(s, term, x);
    clean_powers(x, n, slope);
    for (int i = 1; i < n; ++i)
        slope[i] *= log(10) * value;
    slope[0] = term[0] != 0 ? value / term[0] : 0;
}

/* Computes the column of (Jᵀ W J)⁻¹ Jᵀ W that belongs to one channel, where J holds the
 * derivatives at the solution. */
static void log_solution(const clean_spectrum *s, const double *term, int channel,
                         double *column)
{
    const int n = s->own_terms[0];
    double normal[MOST][MOST] = {{0}}, slope[MOST];
    for (int c = 0; c < s->num_channels; ++c) {
        log_slopes(s, term, s->at[c], slope);
        for (int i = 0; i < n; ++i)
            for (int j = 0; j < n; ++j)
                normal[i][j] += s->weight[c * s->num_pol] * slope[i] * slope[j];
    }
    log_slopes(s, term, s->at[channel], column);
    for (int i = 0; i < n; ++i)
        column[i] *= s->weight[channel * s->num_pol];
    if (!clean_solve(normal, column, n)) memset(column, 0, (size_t)n * sizeof *column);
}

/* scaled[] := terms of powers of places, of terms of powers of distances from ν0. */
static void unscale_terms(const clean_spectrum *s, const double *term, double *scaled)
{
    double scale = 1;
    for (int k = 0; k < s->num_terms; ++k, scale *= s->unit)
        scaled[k] = term[k] * scale;
}

double clean_spectrum_at(const clean_spectrum *s, const double *term, int channel)
{
    double scaled[MOST];
    unscale_terms(s, term, scaled);
    return at_place(s, scaled, s->at[channel]);
}

void clean_spectrum_slopes(const clean_spectrum *s, const double *term, int channel,
                           double *slope)
{
    double scaled[MOST], scale = 1;
    memset(slope, 0, (size_t)s->num_terms * sizeof *slope);
    unscale_terms(s, term, scaled);
    if (s->kind == TESS_CLEAN_LOG_POLYNOMIAL)
        log_solution(s, scaled, channel, slope);
    else
        for (int i = 0; i < s->num_terms; ++i)
            slope[i] = solution_of(s, 0)[i * s->num_channels + channel];
    for (int k = 0; k < s->num_terms; ++k, scale /= s->unit)
        slope[k] *= scale;
}

/* ---- set-up ---- */

static double place_of(const clean_spectrum *s, double freq_hz)
{
    return s->kind == TESS_CLEAN_LOG_POLYNOMIAL ? log10(freq_hz / s->nu0_hz)
                                                : freq_hz / s->nu0_hz - 1;
}

static void find_places(clean_spectrum *s, const clean_spectrum_need *need)
{
    s->unit = 0;
    for (int c = 0; c < s->num_channels; ++c)
        s->unit = fmax(s->unit, fabs(place_of(s, need->freq_hz[c])));
    if (!(s->unit > 0)) s->unit = 1;
    for (int c = 0; c < s->num_channels; ++c)
        s->at[c] = place_of(s, need->freq_hz[c]) / s->unit;
    for (int c = 0; c < s->num_out; ++c)
        s->at_out[c] = place_of(s, need->out_freq_hz[c]) / s->unit;
}

/* Whether an earlier channel with data has the same frequency. */
static bool is_repeated(const clean_spectrum *s, int pol, int channel)
{
    for (int c = 0; c < channel; ++c)
        if (s->weight[c * s->num_pol + pol] > 0 &&
            fabs(s->at[c] - s->at[channel]) <= SAME_PLACE)
            return true;
    return false;
}

/* A polarisation has no more terms than frequencies with data. */
static void count_terms(const clean_spectrum *s, int pol)
{
    int known = 0;
    for (int c = 0; c < s->num_channels; ++c)
        known += s->weight[c * s->num_pol + pol] > 0 && !is_repeated(s, pol, c);
    s->num_known[pol] = known;
    s->own_terms[pol] = known < s->num_terms ? known : s->num_terms;
}

tess_status clean_spectrum_create(const clean_spectrum_need *need, clean_spectrum *out)
{
    tess_status status = TESS_OK;
    const int64_t values = (int64_t)need->num_channels * need->num_pol;
    clean_spectrum s = {.kind = need->kind,
                        .num_terms = need->num_terms,
                        .num_pol = need->num_pol,
                        .num_channels = need->num_channels,
                        .num_out = need->num_out,
                        .nu0_hz = need->nu0_hz};
    if (s.kind != TESS_CLEAN_EACH_CHANNEL) {
        s.own_terms = tess_alloc_zero(s.num_pol, sizeof *s.own_terms);
        s.num_known = tess_alloc_zero(s.num_pol, sizeof *s.num_known);
        s.at = tess_alloc_zero(s.num_channels, sizeof *s.at);
        s.at_out = tess_alloc_zero(s.num_out, sizeof *s.at_out);
        s.weight = tess_alloc_zero(values, sizeof *s.weight);
        s.solution = tess_alloc_zero(values * s.num_terms, sizeof *s.solution);
        if (!s.own_terms || !s.num_known || !s.at || !s.at_out || !s.weight ||
            !s.solution)
            TESS_FAIL(TESS_ERR_ALLOC, "spectra of components");
        memcpy(s.weight, need->weight, (size_t)values * sizeof *s.weight);
        find_places(&s, need);
        for (int p = 0; p < s.num_pol; ++p) {
            count_terms(&s, p);
            find_solution(&s, p);
        }
    }
    *out = s;
    s = (clean_spectrum){0};
cleanup:
    clean_spectrum_free(&s);
    return status;
}

void clean_spectrum_free(clean_spectrum *spectrum)
{
    tess_free(spectrum->own_terms);
    tess_free(spectrum->num_known);
    tess_free(spectrum->at);
    tess_free(spectrum->at_out);
    tess_free(spectrum->weight);
    tess_free(spectrum->solution);
    *spectrum = (clean_spectrum){0};
}
