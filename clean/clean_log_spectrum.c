/* Fits polynomials of logarithms, by Levenberg-Marquardt iterations on the values
 * themselves: logarithms of noisy values are biased, and those of negative values do
 * not exist.
 *
 * Where noise is large, least squares follow it: a single high channel at the edge of
 * the band becomes a slope without bounds, whose values between and beyond the channels
 * are anything. The fit of a component therefore minimises
 *
 *     J = Σ w (value − function)² + s² Σ_{k≥1} (a_k / PRIOR)²
 *
 * with s² the noise in units of w · value², and a_k the terms of log10(ν/ν0)^k. This is
 * the most probable function if terms have a Gaussian distribution of standard
 * deviation PRIOR before they are measured. Terms that are measured well are those of
 * least squares, and others are near 0. The constant has J = χ0² s², so that no term of
 * the solution exceeds PRIOR √χ0². */
#include "clean_log_spectrum.h"

#include <math.h>
#include <string.h>

#include "clean_small.h"

enum { MOST = TESS_CLEAN_MOST_TERMS };

/* Nearly all radio sources have indices between −2 and 1 (de Gasperin, Intema & Frail
 * 2018, MNRAS 474, 5008). */
static const double PRIOR = 2;

/* Values are rounded, to this part of them at least. */
static const double ROUNDING = 1e-6;

/* No function may change by more powers of ten than this within the band. */
static const double MOST_DECADES = 30;

/* The fit of sign · 10^(term[0] + term[1] x + …) to the values of one polarisation. */
typedef struct log_fit {
    const clean_spectrum *spectrum;
    const double *value;
    int pol, n;
    double sign, mean; /* of the values; mean > 0 */
    double noise;
    double stiff[MOST]; /* 1 / the prior's variance of a term, which belongs to powers
                           of places */
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

static double power_of_ten(double x)
{
    return exp(log(10) * x);
}

/* Σ w (value − function)². */
static double misfit(const log_fit *fit, const double *term)
{
    double sum = 0;
    for (int c = 0; c < fit->spectrum->num_channels; ++c) {
        const double weight = weight_at(fit, c);
        if (!(weight > 0)) continue;
        const double off =
            value_at(fit, c) -
            power_of_ten(clean_polynomial(term, fit->n, fit->spectrum->at[c]));
        sum += weight * off * off;
    }
    return sum;
}

/* J. */
static double cost(const log_fit *fit, const double *term)
{
    double sum = 0;
    for (int i = 1; i < fit->n; ++i)
        sum += fit->stiff[i] * term[i] * term[i];
    return misfit(fit, term) + fit->noise * sum;
}

static void stiffen(const log_fit *fit, double normal[MOST][MOST])
{
    for (int i = 1; i < fit->n; ++i)
        normal[i][i] += fit->noise * fit->stiff[i];
}

/* Finds where iterations begin: a linear fit to the logarithms of those values that
 * have the sign of the mean. Error propagation gives a logarithm the weight W S². If
 * there are too few such values, or if a constant fits better, the fit begins with the
 * constant mean. Iterations from such a start never end at the function 0. */
static void begin_logs(log_fit *fit)
{
    const clean_spectrum *s = fit->spectrum;
    double normal[MOST][MOST] = {{0}}, right[MOST] = {0}, power[MOST];
    int used = 0;
    for (int c = 0; c < s->num_channels; ++c) {
        const double value = value_at(fit, c);
        if (!(value > 0 && weight_at(fit, c) > 0)) continue;
        const double weight = weight_at(fit, c) * value * value;
        clean_powers(s->at[c], fit->n, power);
        for (int i = 0; i < fit->n; ++i) {
            right[i] += weight * power[i] * log10(value);
            for (int j = 0; j < fit->n; ++j)
                normal[i][j] += weight * power[i] * power[j];
        }
        ++used;
    }
    stiffen(fit, normal);
    memset(fit->term, 0, sizeof fit->term);
    fit->term[0] = log10(fit->mean);
    if (used >= fit->n && clean_solve(normal, right, fit->n) &&
        cost(fit, right) < cost(fit, fit->term))
        memcpy(fit->term, right, (size_t)fit->n * sizeof *right);
}

/* Tries one step with this damping. True: the cost has become smaller. */
static bool step(log_fit *fit, double damping, double *least)
{
    const clean_spectrum *s = fit->spectrum;
    double normal[MOST][MOST] = {{0}}, right[MOST] = {0}, power[MOST], next[MOST];
    for (int c = 0; c < s->num_channels; ++c) {
        const double weight = weight_at(fit, c);
        if (!(weight > 0)) continue;
        const double model =
            power_of_ten(clean_polynomial(fit->term, fit->n, s->at[c]));
        const double slope = log(10) * model;
        clean_powers(s->at[c], fit->n, power);
        for (int i = 0; i < fit->n; ++i) {
            right[i] += weight * slope * power[i] * (value_at(fit, c) - model);
            for (int j = 0; j < fit->n; ++j)
                normal[i][j] += weight * slope * power[i] * slope * power[j];
        }
    }
    stiffen(fit, normal);
    for (int i = 1; i < fit->n; ++i)
        right[i] -= fit->noise * fit->stiff[i] * fit->term[i];
    for (int i = 0; i < fit->n; ++i)
        normal[i][i] *= 1 + damping;
    if (!clean_solve(normal, right, fit->n)) return false;
    for (int i = 0; i < fit->n; ++i)
        next[i] = fit->term[i] + right[i];
    const double less = cost(fit, next);
    if (!(less < *least)) return false;
    memcpy(fit->term, next, (size_t)fit->n * sizeof *next);
    *least = less;
    return true;
}

static void iterate(log_fit *fit)
{
    enum { MOST_STEPS = 100 };
    static const double ENOUGH = 1e-12, LARGE = 1e10;
    double least = cost(fit, fit->term), damping = 1e-3;
    for (int k = 0; k < MOST_STEPS && least > 0; ++k) {
        const double before = least;
        const bool falls = step(fit, damping, &least);
        damping *= falls ? 0.1 : 10;
        if (damping > LARGE || (falls && before - least <= ENOUGH * before)) break;
    }
}

/* Whether all values within the band, and at the channels that it is spread to, are
 * numbers of some sense. */
static bool is_bounded(const log_fit *fit)
{
    const clean_spectrum *s = fit->spectrum;
    double farthest = 1, sum = 0;
    for (int c = 0; c < s->num_out; ++c)
        farthest = fmax(farthest, fabs(s->at_out[c]));
    for (int i = fit->n - 1; i > 0; --i)
        sum = (sum + fabs(fit->term[i])) * farthest;
    return sum < MOST_DECADES && isfinite(fit->term[0]);
}

/* ---- fits ---- */

/* False: the mean is 0, or not finite. */
static bool begin(const clean_spectrum *s, const double *value, int pol, log_fit *fit)
{
    double sum = 0, weights = 0, squares = 0, prior = 1;
    *fit = (log_fit){
        .spectrum = s, .value = value, .pol = pol, .n = s->own_terms[pol], .sign = 1};
    for (int c = 0; c < s->num_channels; ++c) {
        sum += weight_at(fit, c) * value_at(fit, c);
        squares += weight_at(fit, c) * value_at(fit, c) * value_at(fit, c);
        weights += weight_at(fit, c);
    }
    if (!(fabs(sum) > 0) || !isfinite(squares) || fit->n == 0) return false;
    fit->sign = sum < 0 ? -1 : 1;
    fit->mean = fabs(sum) / weights;
    fit->noise = ROUNDING * ROUNDING * squares;
    for (int i = 1; i < fit->n; ++i) {
        prior *= s->unit;
        fit->stiff[i] = 1 / (PRIOR * prior * PRIOR * prior);
    }
    return true;
}

/* How much less than the constant's the misfit has to be: each further term has to
 * gain 2 s² (Akaike 1974, IEEE Trans. Autom. Control 19, 716). */
static double least_gain(const log_fit *fit)
{
    return 2 * (fit->n - 1) * fit->noise;
}

/* Fits, first with the noise that is known and then, if the function fits worse than
 * that, with the noise that the misfit tells of. False: a constant fits as well. */
static bool fit_terms(log_fit *fit)
{
    const clean_spectrum *s = fit->spectrum;
    const int degrees = s->num_known[fit->pol] - fit->n;
    const double constant[MOST] = {log10(fit->mean)};
    const double without = misfit(fit, constant);
    if (!(without > least_gain(fit))) return false;
    begin_logs(fit);
    iterate(fit);
    const double seen = misfit(fit, fit->term) / (degrees > 1 ? degrees : 1);
    if (seen > fit->noise) {
        fit->noise = seen;
        iterate(fit);
    }
    return without - misfit(fit, fit->term) > least_gain(fit) && is_bounded(fit);
}

static void put_terms(const log_fit *fit, double *term)
{
    memcpy(term, fit->term, (size_t)fit->n * sizeof *term);
    term[0] = fit->sign * power_of_ten(fit->term[0]);
}

void clean_log_component(const clean_spectrum *s, const double *value, int pol,
                         double noise, double *term)
{
    log_fit fit;
    memset(term, 0, (size_t)s->num_terms * sizeof *term);
    if (!begin(s, value, pol, &fit)) return;
    fit.noise = fmax(fit.noise, noise);
    if (fit.n > 1 && fit_terms(&fit))
        put_terms(&fit, term);
    else
        term[0] = fit.sign * fit.mean;
}

void clean_log_measure(const clean_spectrum *s, const double *value, double *term)
{
    log_fit fit;
    memset(term, 0, (size_t)s->num_terms * sizeof *term);
    if (!begin(s, value, 0, &fit)) return;
    begin_logs(&fit);
    iterate(&fit);
    if (is_bounded(&fit))
        put_terms(&fit, term);
    else
        for (int i = 0; i < s->num_terms; ++i)
            term[i] = (double)NAN;
}

double clean_log_at(const double *term, int num_terms, double x)
{
    return term[0] * power_of_ten(x * clean_polynomial(term + 1, num_terms - 1, x));
}
