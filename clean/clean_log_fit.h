/** @file clean_log_fit.h  (private to clean/)
 *  Fits polynomials of logarithms, by Levenberg-Marquardt iterations on the values
 *  themselves: logarithms of noisy values are biased, and those of negative values do
 *  not exist.
 *
 *  Where noise is large, least squares follow it: a single high channel at the edge of
 *  the band becomes a slope without bounds, whose values between and beyond the
 * channels are anything. The fit of a component therefore minimises
 *
 *      J = Σ w (value − function)² + s² Σ_{k≥1} (a_k / PRIOR)²
 *
 *  with s² the noise in units of w · value², and a_k the terms of log10(ν/ν0)^k. This
 * is the most probable function if terms have a Gaussian distribution of standard
 *  deviation PRIOR before they are measured. Terms that are measured well are those of
 *  least squares, and others are near 0. The constant has J = χ0² s², so that no term
 * of the solution exceeds PRIOR √χ0². The functions are compiled for processors and for
 * GPUs.
 */
#ifndef TESS_CLEAN_LOG_FIT_H
#define TESS_CLEAN_LOG_FIT_H

#include <math.h>

#include "clean_small.h"

/* Nearly all radio sources have indices between −2 and 1 (de Gasperin, Intema & Frail
 * 2018, MNRAS 474, 5008). */
static const double CLEAN_LOG_PRIOR = 2;

/* Values are rounded, to this part of them at least. */
static const double CLEAN_LOG_ROUNDING = 1e-6;

/* No function may change by more powers of ten than this within the band. */
static const double CLEAN_LOG_MOST_DECADES = 30;

/** Where values are known, and how many: as in clean_spectrum. */
typedef struct clean_log_places {
    int num_terms, num_pol, num_channels, num_out;
    double unit;
    const int *own_terms, *num_known;
    const double *at, *at_out, *weight;
} clean_log_places;

/** The fit of sign · 10^(term[0] + term[1] x + …) to the values of one polarisation. */
typedef struct clean_log_fit {
    const clean_log_places *places;
    const double *value;
    int pol, n;
    double sign, mean; /**< of the values; mean > 0 */
    double noise;
    double stiff[CLEAN_SMALL_MOST]; /**< 1 / the prior's variance of a term, which
                                            belongs to powers of places */
    double term[CLEAN_SMALL_MOST];
    /* room of a step: normal equations, powers of a place, the next terms */
    double normal[CLEAN_SMALL_MOST][CLEAN_SMALL_MOST];
    double right[CLEAN_SMALL_MOST], power[CLEAN_SMALL_MOST];
    double next[CLEAN_SMALL_MOST];
} clean_log_fit;

TESS_SHARED_FUNCTION double clean_log_weight_at(const clean_log_fit *fit, int c)
{
    return fit->places->weight[c * fit->places->num_pol + fit->pol];
}

TESS_SHARED_FUNCTION double clean_log_value_at(const clean_log_fit *fit, int c)
{
    return fit->sign * fit->value[c * fit->places->num_pol + fit->pol];
}

TESS_SHARED_FUNCTION double clean_log_power_of_ten(double x)
{
    return exp(log(10.0) * x);
}

/* Σ w (value − function)². */
TESS_SHARED_FUNCTION double clean_log_misfit(const clean_log_fit *fit,
                                             const double *term)
{
    double sum = 0;
    for (int c = 0; c < fit->places->num_channels; ++c) {
        const double weight = clean_log_weight_at(fit, c);
        if (!(weight > 0)) continue;
        const double off =
            clean_log_value_at(fit, c) -
            clean_log_power_of_ten(clean_polynomial(term, fit->n, fit->places->at[c]));
        sum += weight * off * off;
    }
    return sum;
}

/* J. */
TESS_SHARED_FUNCTION double clean_log_cost(const clean_log_fit *fit, const double *term)
{
    double sum = 0;
    for (int i = 1; i < fit->n; ++i)
        sum += fit->stiff[i] * term[i] * term[i];
    return clean_log_misfit(fit, term) + fit->noise * sum;
}

/* Begins normal equations anew. */
TESS_SHARED_FUNCTION void clean_log_clear(clean_log_fit *fit)
{
    for (int i = 0; i < fit->n; ++i) {
        fit->right[i] = 0;
        for (int j = 0; j < fit->n; ++j)
            fit->normal[i][j] = 0;
    }
}

TESS_SHARED_FUNCTION void clean_log_stiffen(clean_log_fit *fit)
{
    for (int i = 1; i < fit->n; ++i)
        fit->normal[i][i] += fit->noise * fit->stiff[i];
}

TESS_SHARED_FUNCTION void clean_log_take(clean_log_fit *fit, const double *term)
{
    for (int i = 0; i < fit->n; ++i)
        fit->term[i] = term[i];
}

/* Finds where iterations begin: a linear fit to the logarithms of those values that
 * have the sign of the mean. Error propagation gives a logarithm the weight W S². If
 * there are too few such values, or if a constant fits better, the fit begins with the
 * constant mean. Iterations from such a start never end at the function 0. */
TESS_SHARED_FUNCTION void clean_log_begin_logs(clean_log_fit *fit)
{
    const clean_log_places *s = fit->places;
    int used = 0;
    clean_log_clear(fit);
    for (int c = 0; c < s->num_channels; ++c) {
        const double value = clean_log_value_at(fit, c);
        if (!(value > 0 && clean_log_weight_at(fit, c) > 0)) continue;
        const double weight = clean_log_weight_at(fit, c) * value * value;
        clean_powers(s->at[c], fit->n, fit->power);
        for (int i = 0; i < fit->n; ++i) {
            fit->right[i] += weight * fit->power[i] * log10(value);
            for (int j = 0; j < fit->n; ++j)
                fit->normal[i][j] += weight * fit->power[i] * fit->power[j];
        }
        ++used;
    }
    clean_log_stiffen(fit);
    for (int i = 0; i < fit->n; ++i)
        fit->term[i] = i == 0 ? log10(fit->mean) : 0;
    if (used >= fit->n && clean_solve(fit->normal, fit->right, fit->n) &&
        clean_log_cost(fit, fit->right) < clean_log_cost(fit, fit->term))
        clean_log_take(fit, fit->right);
}

/* Tries one step with this damping. True: the cost has become smaller. */
TESS_SHARED_FUNCTION bool clean_log_step(clean_log_fit *fit, double damping,
                                         double *least)
{
    const clean_log_places *s = fit->places;
    clean_log_clear(fit);
    for (int c = 0; c < s->num_channels; ++c) {
        const double weight = clean_log_weight_at(fit, c);
        if (!(weight > 0)) continue;
        const double model =
            clean_log_power_of_ten(clean_polynomial(fit->term, fit->n, s->at[c]));
        const double slope = log(10.0) * model;
        clean_powers(s->at[c], fit->n, fit->power);
        for (int i = 0; i < fit->n; ++i) {
            fit->right[i] +=
                weight * slope * fit->power[i] * (clean_log_value_at(fit, c) - model);
            for (int j = 0; j < fit->n; ++j)
                fit->normal[i][j] +=
                    weight * slope * fit->power[i] * slope * fit->power[j];
        }
    }
    clean_log_stiffen(fit);
    for (int i = 1; i < fit->n; ++i)
        fit->right[i] -= fit->noise * fit->stiff[i] * fit->term[i];
    for (int i = 0; i < fit->n; ++i)
        fit->normal[i][i] *= 1 + damping;
    if (!clean_solve(fit->normal, fit->right, fit->n)) return false;
    for (int i = 0; i < fit->n; ++i)
        fit->next[i] = fit->term[i] + fit->right[i];
    const double less = clean_log_cost(fit, fit->next);
    if (!(less < *least)) return false;
    clean_log_take(fit, fit->next);
    *least = less;
    return true;
}

TESS_SHARED_FUNCTION void clean_log_iterate(clean_log_fit *fit)
{
    enum { MOST_STEPS = 100 };
    const double ENOUGH = 1e-12, LARGE = 1e10;
    double least = clean_log_cost(fit, fit->term), damping = 1e-3;
    for (int k = 0; k < MOST_STEPS && least > 0; ++k) {
        const double before = least;
        const bool falls = clean_log_step(fit, damping, &least);
        damping *= falls ? 0.1 : 10;
        if (damping > LARGE || (falls && before - least <= ENOUGH * before)) break;
    }
}

/* Whether all values within the band, and at the channels that it is spread to, are
 * numbers of some sense. */
TESS_SHARED_FUNCTION bool clean_log_is_bounded(const clean_log_fit *fit)
{
    const clean_log_places *s = fit->places;
    double farthest = 1, sum = 0;
    for (int c = 0; c < s->num_out; ++c)
        farthest = fmax(farthest, fabs(s->at_out[c]));
    for (int i = fit->n - 1; i > 0; --i)
        sum = (sum + fabs(fit->term[i])) * farthest;
    return sum < CLEAN_LOG_MOST_DECADES && isfinite(fit->term[0]);
}

/* ---- fits ---- */

/* False: the mean is 0, or not finite. */
TESS_SHARED_FUNCTION bool clean_log_begin(const clean_log_places *s,
                                          const double *value, int pol,
                                          clean_log_fit *fit)
{
    double sum = 0, weights = 0, squares = 0, prior = 1;
    fit->places = s;
    fit->value = value;
    fit->pol = pol;
    fit->n = s->own_terms[pol];
    fit->sign = 1;
    for (int c = 0; c < s->num_channels; ++c) {
        sum += clean_log_weight_at(fit, c) * clean_log_value_at(fit, c);
        squares += clean_log_weight_at(fit, c) * clean_log_value_at(fit, c) *
                   clean_log_value_at(fit, c);
        weights += clean_log_weight_at(fit, c);
    }
    if (!(fabs(sum) > 0) || !isfinite(squares) || fit->n == 0) return false;
    fit->sign = sum < 0 ? -1 : 1;
    fit->mean = fabs(sum) / weights;
    fit->noise = CLEAN_LOG_ROUNDING * CLEAN_LOG_ROUNDING * squares;
    for (int i = 1; i < fit->n; ++i) {
        prior *= s->unit;
        fit->stiff[i] = 1 / (CLEAN_LOG_PRIOR * prior * CLEAN_LOG_PRIOR * prior);
    }
    return true;
}

/* How much less than the constant's the misfit has to be: each further term has to
 * gain 2 s² (Akaike 1974, IEEE Trans. Autom. Control 19, 716). */
TESS_SHARED_FUNCTION double clean_log_least_gain(const clean_log_fit *fit)
{
    return 2 * (fit->n - 1) * fit->noise;
}

/* Fits, first with the noise that is known and then, if the function fits worse than
 * that, with the noise that the misfit tells of. False: a constant fits as well. */
TESS_SHARED_FUNCTION bool clean_log_fit_terms(clean_log_fit *fit)
{
    const clean_log_places *s = fit->places;
    const int degrees = s->num_known[fit->pol] - fit->n;
    for (int i = 0; i < fit->n; ++i)
        fit->next[i] = i == 0 ? log10(fit->mean) : 0;
    const double without = clean_log_misfit(fit, fit->next);
    if (!(without > clean_log_least_gain(fit))) return false;
    clean_log_begin_logs(fit);
    clean_log_iterate(fit);
    const double seen = clean_log_misfit(fit, fit->term) / (degrees > 1 ? degrees : 1);
    if (seen > fit->noise) {
        fit->noise = seen;
        clean_log_iterate(fit);
    }
    return without - clean_log_misfit(fit, fit->term) > clean_log_least_gain(fit) &&
           clean_log_is_bounded(fit);
}

TESS_SHARED_FUNCTION void clean_log_put_terms(const clean_log_fit *fit, double *term)
{
    for (int i = 1; i < fit->n; ++i)
        term[i] = fit->term[i];
    term[0] = fit->sign * clean_log_power_of_ten(fit->term[0]);
}

/** What clean_log_component() does. */
TESS_SHARED_FUNCTION void clean_log_fit_component(clean_log_fit *fit,
                                                  const clean_log_places *s,
                                                  const double *value, int pol,
                                                  double noise, double *term)
{
    for (int i = 0; i < s->num_terms; ++i)
        term[i] = 0;
    if (!clean_log_begin(s, value, pol, fit)) return;
    fit->noise = fmax(fit->noise, noise);
    if (fit->n > 1 && clean_log_fit_terms(fit))
        clean_log_put_terms(fit, term);
    else
        term[0] = fit->sign * fit->mean;
}

/** The value of terms at a place. */
TESS_SHARED_FUNCTION double clean_log_value(const double *term, int num_terms, double x)
{
    return term[0] *
           clean_log_power_of_ten(x * clean_polynomial(term + 1, num_terms - 1, x));
}

#endif
