/* Fits spectra. Polynomials are fitted by linear least squares, whose solution is
 * computed once for all pixels. Polynomials of logarithms are fitted by Levenberg-
 * Marquardt iterations. */
#include "clean_spectrum.h"

#include <math.h>
#include <string.h>

#include "tess_mem.h"

enum { MOST = TESS_CLEAN_MOST_TERMS };

/* Two frequencies count as one if their places differ by no more than this: no term
 * could be told from another by so small a part of the band. */
static const double SAME_PLACE = 1e-6;

/* ---- small systems of equations ---- */

/* Solves a x = b for a symmetric, positive definite a by Cholesky's decomposition.
 * False: a is not positive definite. Overwrites `a`, and `b` with the solution. */
static bool solve(double a[MOST][MOST], double *b, int n)
{
    for (int j = 0; j < n; ++j) {
        for (int k = 0; k < j; ++k)
            a[j][j] -= a[j][k] * a[j][k];
        if (!(a[j][j] > 0)) return false;
        a[j][j] = sqrt(a[j][j]);
        for (int i = j + 1; i < n; ++i) {
            for (int k = 0; k < j; ++k)
                a[i][j] -= a[i][k] * a[j][k];
            a[i][j] /= a[j][j];
        }
    }
    for (int i = 0; i < n; ++i) {
        for (int k = 0; k < i; ++k)
            b[i] -= a[i][k] * b[k];
        b[i] /= a[i][i];
    }
    for (int i = n - 1; i >= 0; --i) {
        for (int k = i + 1; k < n; ++k)
            b[i] -= a[k][i] * b[k];
        b[i] /= a[i][i];
    }
    return true;
}

/* term[0] + term[1] x + … */
static double polynomial(const double *term, int n, double x)
{
    double sum = 0;
    for (int k = n - 1; k >= 0; --k)
        sum = sum * x + term[k];
    return sum;
}

static void powers(double x, int n, double *power)
{
    for (int k = 0; k < n; ++k)
        power[k] = k == 0 ? 1 : power[k - 1] * x;
}

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
        powers(s->at[c], n, power);
        for (int i = 0; i < n; ++i)
            for (int j = 0; j < n; ++j)
                normal[i][j] += s->weight[c * s->num_pol + pol] * power[i] * power[j];
    }
    for (int c = 0; c < s->num_channels; ++c) {
        double copy[MOST][MOST], column[MOST];
        const double weight = s->weight[c * s->num_pol + pol];
        memcpy(copy, normal, sizeof copy);
        powers(s->at[c], n, column);
        for (int i = 0; i < n; ++i)
            column[i] *= weight;
        if (weight > 0 && solve(copy, column, n))
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

/* ---- polynomials of logarithms ---- */

/* The fit of sign · 10^(term[0] + term[1] x + …) to the values of one polarisation. */
typedef struct log_fit {
    const clean_spectrum *spectrum;
    const double *value;
    int pol, n;
    double sign;
    double term[MOST];
} log_fit;

static double weight_at(const log_fit *fit, int c)
{
    return fit->spectrum->weight[c * fit->spectrum->num_pol + fit->pol];
}

static double value_at(const log_fit *fit, int c)
{
    return fit->sign * fit->value[c * fit->spectrum->num_pol + fit->pol];
}

static double sum_of_squares(const log_fit *fit, const double *term)
{
    double sum = 0;
    for (int c = 0; c < fit->spectrum->num_channels; ++c) {
        const double off =
            value_at(fit, c) - pow(10, polynomial(term, fit->n, fit->spectrum->at[c]));
        sum += weight_at(fit, c) * off * off;
    }
    return sum;
}

/* Finds where iterations begin: a linear fit to the logarithms of those values that
 * have the sign of the mean. Error propagation gives a logarithm the weight W S². If
 * there are too few such values, or if a constant fits better, the fit begins with the
 * constant mean. Iterations from such a start never end at the function 0. */
static void begin_logs(log_fit *fit, double mean)
{
    const clean_spectrum *s = fit->spectrum;
    double normal[MOST][MOST] = {{0}}, right[MOST] = {0}, power[MOST];
    int used = 0;
    for (int c = 0; c < s->num_channels; ++c) {
        const double value = value_at(fit, c);
        if (!(value > 0 && weight_at(fit, c) > 0)) continue;
        const double weight = weight_at(fit, c) * value / mean * value / mean;
        powers(s->at[c], fit->n, power);
        for (int i = 0; i < fit->n; ++i) {
            right[i] += weight * power[i] * log10(value);
            for (int j = 0; j < fit->n; ++j)
                normal[i][j] += weight * power[i] * power[j];
        }
        ++used;
    }
    memset(fit->term, 0, sizeof fit->term);
    fit->term[0] = log10(mean);
    if (used >= fit->n && solve(normal, right, fit->n) &&
        sum_of_squares(fit, right) < sum_of_squares(fit, fit->term))
        memcpy(fit->term, right, (size_t)fit->n * sizeof *right);
}

/* Tries one step with this damping. True: the sum of squares has become smaller. */
static bool step(log_fit *fit, double damping, double *squares)
{
    const clean_spectrum *s = fit->spectrum;
    double normal[MOST][MOST] = {{0}}, right[MOST] = {0}, power[MOST], next[MOST];
    for (int c = 0; c < s->num_channels; ++c) {
        const double model = pow(10, polynomial(fit->term, fit->n, s->at[c]));
        const double slope = log(10) * model, weight = weight_at(fit, c);
        powers(s->at[c], fit->n, power);
        for (int i = 0; i < fit->n; ++i) {
            right[i] += weight * slope * power[i] * (value_at(fit, c) - model);
            for (int j = 0; j < fit->n; ++j)
                normal[i][j] += weight * slope * power[i] * slope * power[j];
        }
    }
    for (int i = 0; i < fit->n; ++i)
        normal[i][i] *= 1 + damping;
    if (!solve(normal, right, fit->n)) return false;
    for (int i = 0; i < fit->n; ++i)
        next[i] = fit->term[i] + right[i];
    const double less = sum_of_squares(fit, next);
    if (!(less < *squares)) return false;
    memcpy(fit->term, next, (size_t)fit->n * sizeof *next);
    *squares = less;
    return true;
}

static void iterate(log_fit *fit)
{
    enum { MOST_STEPS = 100 };
    static const double ENOUGH = 1e-12, LARGE = 1e10;
    double squares = sum_of_squares(fit, fit->term), damping = 1e-3;
    for (int k = 0; k < MOST_STEPS && squares > 0; ++k) {
        const double before = squares;
        const bool falls = step(fit, damping, &squares);
        damping *= falls ? 0.1 : 10;
        if (damping > LARGE || (falls && before - squares <= ENOUGH * before)) break;
    }
}

/* Fits a polynomial of logarithms. term[0] becomes the value at ν0, with its sign; the
 * other terms belong to powers of places. All terms are 0 if the mean is 0. */
static void fit_logs(const clean_spectrum *s, const double *value, int pol,
                     double *term)
{
    log_fit fit = {
        .spectrum = s, .value = value, .pol = pol, .n = s->own_terms[pol], .sign = 1};
    double mean = 0, sum = 0;
    memset(term, 0, (size_t)s->num_terms * sizeof *term);
    for (int c = 0; c < s->num_channels; ++c) {
        mean += weight_at(&fit, c) * value_at(&fit, c);
        sum += weight_at(&fit, c);
    }
    if (!(fabs(mean) > 0) || fit.n == 0) return;
    fit.sign = mean < 0 ? -1 : 1;
    begin_logs(&fit, fabs(mean) / sum);
    iterate(&fit);
    memcpy(term, fit.term, (size_t)fit.n * sizeof *term);
    term[0] = fit.sign * pow(10, fit.term[0]);
}

/* ---- either ---- */

static void fit_places(const clean_spectrum *s, const double *value, int pol,
                       double *term)
{
    (s->kind == TESS_CLEAN_LOG_POLYNOMIAL ? fit_logs : fit_polynomial)(s, value, pol,
                                                                       term);
}

static double at_place(const clean_spectrum *s, const double *term, double x)
{
    if (s->kind == TESS_CLEAN_POLYNOMIAL) return polynomial(term, s->num_terms, x);
    return term[0] * pow(10, x * polynomial(term + 1, s->num_terms - 1, x));
}

static void evaluate(const clean_spectrum *s, const double *value, const double *at,
                     int count, double *out)
{
    double term[MOST];
    for (int p = 0; p < s->num_pol; ++p) {
        fit_places(s, value, p, term);
        for (int c = 0; c < count; ++c)
            out[c * s->num_pol + p] = at_place(s, term, at[c]);
    }
}

void clean_spectrum_fit(const clean_spectrum *s, double *value)
{
    if (s->kind != TESS_CLEAN_EACH_CHANNEL)
        evaluate(s, value, s->at, s->num_channels, value);
}

void clean_spectrum_spread(const clean_spectrum *s, const double *value, double *out)
{
    if (s->kind != TESS_CLEAN_EACH_CHANNEL)
        evaluate(s, value, s->at_out, s->num_out, out);
    else
        memcpy(out, value, (size_t)(s->num_channels * s->num_pol) * sizeof *value);
}

void clean_spectrum_terms(const clean_spectrum *s, const double *value, int pol,
                          double *term)
{
    double scale = 1;
    fit_places(s, value, pol, term);
    for (int k = 0; k < s->num_terms; ++k, scale /= s->unit)
        term[k] *= scale;
}

/* Computes the derivatives of a polynomial of logarithms with respect to its terms,
 * which belong to powers of places. */
static void log_slopes(const clean_spectrum *s, const double *term, double x,
                       double *slope)
{
    const int n = s->own_terms[0];
    const double value = at_place(s, term, x);
    powers(x, n, slope);
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
    if (!solve(normal, column, n)) memset(column, 0, (size_t)n * sizeof *column);
}

void clean_spectrum_slopes(const clean_spectrum *s, const double *term, int channel,
                           double *slope)
{
    double scaled[MOST], scale = 1;
    memset(slope, 0, (size_t)s->num_terms * sizeof *slope);
    for (int k = 0; k < s->num_terms; ++k, scale *= s->unit)
        scaled[k] = term[k] * scale;
    if (s->kind == TESS_CLEAN_LOG_POLYNOMIAL)
        log_solution(s, scaled, channel, slope);
    else
        for (int i = 0; i < s->num_terms; ++i)
            slope[i] = solution_of(s, 0)[i * s->num_channels + channel];
    scale = 1;
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
        s.at = tess_alloc_zero(s.num_channels, sizeof *s.at);
        s.at_out = tess_alloc_zero(s.num_out, sizeof *s.at_out);
        s.weight = tess_alloc_zero(values, sizeof *s.weight);
        s.solution = tess_alloc_zero(values * s.num_terms, sizeof *s.solution);
        if (!s.own_terms || !s.at || !s.at_out || !s.weight || !s.solution)
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
    tess_free(spectrum->at);
    tess_free(spectrum->at_out);
    tess_free(spectrum->weight);
    tess_free(spectrum->solution);
    *spectrum = (clean_spectrum){0};
}
