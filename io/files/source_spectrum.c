/* Evaluates the spectra of listed sources: their flux at a frequency, and as a
 * polynomial around it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tess_source_list.h"

/* Computes Σ term[k] x^k. */
static double polynomial(const double *term, int num_terms, double x)
{
    double sum = 0;
    for (int k = num_terms - 1; k >= 0; --k)
        sum = term[k] + x * sum;
    return sum;
}

void tess_source_flux(const tess_source_spectrum *spectrum, double freq_hz,
                      double flux_jy[4])
{
    const double *at_ref = spectrum->flux_jy;
    double scale = 1, added = 0;
    if (spectrum->num_terms > 0) {
        const double ratio = freq_hz / spectrum->ref_hz;
        if (spectrum->is_log) {
            scale = pow(ratio,
                        polynomial(spectrum->term, spectrum->num_terms, log10(ratio)));
        } else {
            const double x = ratio - 1;
            added = x * polynomial(spectrum->term, spectrum->num_terms, x);
            if (fabs(at_ref[0]) > 0) scale = 1 + added / at_ref[0];
        }
    }
    for (int s = 0; s < 4; ++s)
        flux_jy[s] = at_ref[s] * scale;
    if (!spectrum->is_log) flux_jy[0] = at_ref[0] + added;
}

void tess_source_band_flux(const tess_source_spectrum *spectrum, double freq_hz,
                           double width_hz, double flux_jy[4])
{
    /* Gauss-Legendre quadrature of five points: exact for polynomials up to x⁹ */
    static const double place[] = {0, 0.538469310105683091, 0.906179845938663993};
    static const double weight[] = {0.568888888888888889, 0.478628670499366468,
                                    0.236926885056189088};
    double at[4], sum[4] = {0};
    if (!(width_hz > 0 && width_hz < 2 * freq_hz)) width_hz = 0;
    for (int k = -2; k <= 2; ++k) {
        const int which = abs(k);
        const double offset = (k < 0 ? -0.5 : 0.5) * place[which] * width_hz;
        tess_source_flux(spectrum, freq_hz + offset, at);
        for (int s = 0; s < 4; ++s)
            sum[s] += 0.5 * weight[which] * at[s];
    }
    for (int s = 0; s < 4; ++s)
        flux_jy[s] = sum[s];
}

/* ---- power series in x, cut behind `num` terms ---- */

typedef struct series {
    int num;
    double at[TESS_SOURCE_LIST_TERMS];
} series;

static series multiply(const series *a, const series *b)
{
    series product = {.num = a->num};
    for (int i = 0; i < a->num; ++i)
        for (int j = 0; i + j < a->num; ++j)
            product.at[i + j] += a->at[i] * b->at[j];
    return product;
}

/* Computes Σ term[k] x(…)^k. */
static series compose(const double *term, int num_terms, const series *x)
{
    series sum = {.num = x->num};
    for (int k = num_terms - 1; k >= 0; --k) {
        sum = multiply(&sum, x);
        sum.at[0] += term[k];
    }
    return sum;
}

/* Computes exp(a). With E' = a' E, n E_n = Σ k a_k E_(n−k). */
static series exponential(const series *a)
{
    series e = {.num = a->num};
    e.at[0] = exp(a->at[0]);
    for (int n = 1; n < a->num; ++n) {
        for (int k = 1; k <= n; ++k)
            e.at[n] += k * a->at[k] * e.at[n - k];
        e.at[n] /= n;
    }
    return e;
}

/* Computes ln(ν/ν_ref) around `ratio`: ln ratio + ln(1 + x). */
static series logarithm(double ratio, int num)
{
    series made = {.num = num};
    made.at[0] = log(ratio);
    for (int k = 1; k < num; ++k)
        made.at[k] = (k % 2 == 1 ? 1.0 : -1.0) / k;
    return made;
}

/* Computes the logarithm of Stokes I over its value at the reference frequency. */
static series log_spectrum(const tess_source_spectrum *spectrum, double ratio, int num)
{
    const series natural = logarithm(ratio, num);
    series decimal = natural;
    for (int k = 0; k < num; ++k)
        decimal.at[k] /= log(10.0);
    const series index = compose(spectrum->term, spectrum->num_terms, &decimal);
    const series power = multiply(&natural, &index);
    return exponential(&power);
}

/* Computes what is added to Stokes I at the reference frequency. */
static series plain_spectrum(const tess_source_spectrum *spectrum, double ratio,
                             int num)
{
    series x = {.num = num};
    x.at[0] = ratio - 1;
    if (num > 1) x.at[1] = ratio;
    const series inner = compose(spectrum->term, spectrum->num_terms, &x);
    return multiply(&x, &inner);
}

void tess_source_taylor(const tess_source_spectrum *spectrum, double freq_hz,
                        int stokes, int num_terms, double *taylor)
{
    double flux_jy[4];
    memset(taylor, 0, (size_t)num_terms * sizeof *taylor);
    tess_source_flux(spectrum, freq_hz, flux_jy);
    taylor[0] = flux_jy[stokes];
    if (spectrum->num_terms == 0) return;
    const double ratio = freq_hz / spectrum->ref_hz, *at_ref = spectrum->flux_jy;
    const series change = spectrum->is_log ? log_spectrum(spectrum, ratio, num_terms)
                                           : plain_spectrum(spectrum, ratio, num_terms);
    double scale = at_ref[stokes];
    if (!spectrum->is_log) /* the other Stokes parameters keep their ratio to I */
        scale = stokes == 0 ? 1 : fabs(at_ref[0]) > 0 ? at_ref[stokes] / at_ref[0] : 0;
    for (int k = 1; k < num_terms; ++k)
        taylor[k] = scale * change.at[k];
}
