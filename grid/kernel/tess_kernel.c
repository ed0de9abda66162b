/* Makes a gridding kernel: its parameters, its piecewise polynomials, its grid
 * correction and its error. */
#include "tess_kernel.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernel_quality.h"
#include "kernel_table.h"
#include "tess_const.h"

/* Means are taken over so many fractions of a cell in (0, ½). The other half follows by
 * symmetry. S is smooth and periodic in δ up to the kernel's step of exp(−β) at its
 * edge, so the midpoint rule converges to that level. */
enum { FRACTIONS = 16 };

/* Errors are averaged over so many places between the centre and the edge of the field.
 */
enum { PLACES = TESS_KERNEL_PLACES };

/* Values by tap and fraction. */
typedef double tap_table[TESS_MAX_SUPPORT][FRACTIONS];

static double fraction_at(int k)
{
    return 0.5 * (k + 0.5) / FRACTIONS;
}

/* φ(z) = exp(β((1−z²)^p − 1)), 0 for |z| > 1. */
static double shape(double z, double beta, double exponent)
{
    const double s = 1.0 - z * z;
    return s > 0 ? exp(beta * (pow(s, exponent) - 1.0)) : (s == 0 ? exp(-beta) : 0.0);
}

double tess_kernel_value(const tess_kernel *kernel, double z)
{
    return shape(z, kernel->beta, kernel->exponent);
}

void tess_kernel_taps(const tess_kernel *kernel, double fraction, double *out)
{
    const double y = 2.0 * fraction - 1.0;
    for (int j = 0; j < kernel->support; ++j) {
        double value = kernel->coefficient[kernel->degree][j];
        for (int d = kernel->degree - 1; d >= 0; --d)
            value = value * y + kernel->coefficient[d][j];
        out[j] = value;
    }
}

/* The exact taps, in place of which the polynomials are used. */
static void exact_table(int support, double beta, double exponent, tap_table taps)
{
    for (int j = 0; j < support; ++j)
        for (int k = 0; k < FRACTIONS; ++k)
            taps[j][k] =
                shape(2.0 * (fraction_at(k) + j) / support - 1.0, beta, exponent);
}

/* Computes the mean of S and of |S|² over the cell, and the error that the best
 * correction leaves. With a symmetric kernel, S(1−δ) is the conjugate of S(δ), so the
 * mean is real. The sums over taps are formed for all fractions side by side, without
 * the phase of the first tap. */
static double correction_of(const tap_table taps, int support, double x, double *error)
{
    double re[FRACTIONS] = {0}, im[FRACTIONS] = {0};
    double mean = 0, power = 0, c = 1, s = 0;
    const double step_re = cos(TESS_TWO_PI * x), step_im = -sin(TESS_TWO_PI * x);
    for (int j = 0; j < support; ++j) {
        for (int k = 0; k < FRACTIONS; ++k) {
            re[k] += taps[j][k] * c;
            im[k] += taps[j][k] * s;
        }
        const double next = c * step_re - s * step_im;
        s = c * step_im + s * step_re;
        c = next;
    }
    const double phase = -TESS_TWO_PI * x * (fraction_at(0) - 0.5 * support);
    const double turn = -TESS_TWO_PI * x * (fraction_at(1) - fraction_at(0));
    const double turn_re = cos(turn), turn_im = sin(turn);
    c = cos(phase);
    s = sin(phase);
    for (int k = 0; k < FRACTIONS; ++k) {
        const double real = re[k] * c - im[k] * s;
        im[k] = re[k] * s + im[k] * c;
        re[k] = real;
        mean += re[k] / FRACTIONS;
        power += (re[k] * re[k] + im[k] * im[k]) / FRACTIONS;
        const double next = c * turn_re - s * turn_im;
        s = c * turn_im + s * turn_re;
        c = next;
    }
    const double h = mean / power;
    if (error) {
        double square = 0;
        for (int k = 0; k < FRACTIONS; ++k) {
            const double dr = 1.0 - h * re[k], di = h * im[k];
            square += (dr * dr + di * di) / FRACTIONS;
        }
        *error = sqrt(square);
    }
    return h;
}

/* Computes the kernel's own taps at all fractions. */
static void polynomial_table(const tess_kernel *kernel, tap_table taps)
{
    for (int k = 0; k < FRACTIONS; ++k) {
        double tap[TESS_MAX_SUPPORT];
        tess_kernel_taps(kernel, fraction_at(k), tap);
        for (int j = 0; j < kernel->support; ++j)
            taps[j][k] = tap[j];
    }
}

double tess_kernel_correction(const tess_kernel *kernel, double x, double *error)
{
    tap_table taps;
    polynomial_table(kernel, taps);
    return correction_of((const double(*)[FRACTIONS])taps, kernel->support, x, error);
}

void tess_kernel_correction_line(const tess_kernel *kernel, int64_t count, double step,
                                 double *out)
{
    tap_table taps;
    polynomial_table(kernel, taps);
    for (int64_t i = 0; i < count; ++i)
        out[i] = correction_of((const double(*)[FRACTIONS])taps, kernel->support,
                               (double)(i - count / 2) * step, NULL);
}

/* How a kernel does over the field. */
typedef struct field_quality {
    double error, largest_error, place_error[PLACES];
    double amplification, largest_gain;
} field_quality;

/* Computes errors over the field, |x| ≤ edge. The error grows and ripples towards the
 * edge. The last ripple is narrow and high when the padding is small, so the places are
 * closer together there: x = edge (1 − t²), with t uniform. The largest gain is that at
 * the edge, because h grows all the way. */
static field_quality quality_of(const tap_table taps, int support, double edge)
{
    double square = 0, gain = 0;
    field_quality found = {0};
    const double at_edge = correction_of(taps, support, edge, &found.largest_error);
    const double at_centre = correction_of(taps, support, 0, NULL);
    for (int k = 0; k < PLACES; ++k) {
        const double t = (k + 0.5) / PLACES;
        double error;
        const double h = correction_of(taps, support, edge * (1 - t * t), &error);
        found.place_error[k] = error;
        square += error * error * 2 * t / PLACES;
        gain += h * h * 2 * t / PLACES;
        found.largest_error = fmax(found.largest_error, error);
    }
    found.error = sqrt(square);
    found.amplification = sqrt(gain) / at_centre;
    found.largest_gain = at_edge / at_centre;
    return found;
}

double kernel_exact_error(int support, double beta, double exponent, double edge)
{
    tap_table taps;
    exact_table(support, beta, exponent, taps);
    return quality_of((const double(*)[FRACTIONS])taps, support, edge).error;
}

/* Notes how the kernel does with the polynomials. */
static void assess(tess_kernel *kernel, double edge)
{
    tap_table taps;
    polynomial_table(kernel, taps);
    const field_quality found =
        quality_of((const double(*)[FRACTIONS])taps, kernel->support, edge);
    kernel->error = found.error;
    kernel->largest_error = found.largest_error;
    memcpy(kernel->place_error, found.place_error, sizeof found.place_error);
    kernel->amplification = found.amplification;
    kernel->largest_gain = found.largest_gain;
}

/* Takes β and p of least error from the table. Both change so slowly with the padding
 * that they are interpolated linearly. Beyond the ends of the table p stays as it is,
 * and β changes as it does asymptotically, with 1 − 1/2σ (arXiv:1808.06736, eq. 4.5).
 */
static void look_up(tess_kernel *kernel)
{
    const double(*row)[2] = KERNEL_TABLE[kernel->support - TESS_MIN_SUPPORT];
    const double last =
        KERNEL_FIRST_PADDING + (KERNEL_PADDINGS - 1) * KERNEL_PADDING_STEP;
    const double inside = fmin(fmax(kernel->padding, KERNEL_FIRST_PADDING), last);
    const double place = (inside - KERNEL_FIRST_PADDING) / KERNEL_PADDING_STEP;
    const int at = place < KERNEL_PADDINGS - 2 ? (int)place : KERNEL_PADDINGS - 2;
    const double part = place - at;
    kernel->beta = kernel->support * (1 - 0.5 / kernel->padding) / (1 - 0.5 / inside) *
                   ((1 - part) * row[at][0] + part * row[at + 1][0]);
    kernel->exponent = (1 - part) * row[at][1] + part * row[at + 1][1];
}

/* Interpolates tap j at Chebyshev nodes, and rewrites T_k(y) as powers of y.
 * `cosine[i]` is cos(π i / 2 terms), for i < 4 terms. */
static void fit_tap(tess_kernel *kernel, const double *cosine, int j)
{
    const int terms = kernel->degree + 1;
    double value[TESS_MAX_DEGREE + 1], power[3][TESS_MAX_DEGREE + 1];
    for (int k = 0; k < terms; ++k) {
        const double fraction = 0.5 * (cosine[2 * k + 1] + 1.0);
        value[k] =
            tess_kernel_value(kernel, 2.0 * (fraction + j) / kernel->support - 1.0);
    }
    memset(power, 0, sizeof power);
    double *before = power[0], *current = power[1], *next = power[2];
    current[0] = 1.0; /* T_0 */
    for (int n = 0; n < terms; ++n) {
        double c = 0;
        for (int k = 0; k < terms; ++k)
            c += value[k] * cosine[n * (2 * k + 1) % (4 * terms)];
        c *= (n == 0 ? 1.0 : 2.0) / terms;
        for (int d = 0; d < terms; ++d)
            kernel->coefficient[d][j] += c * current[d];
        /* T_{n+1} = 2 y T_n − T_{n−1}; T_1 = y */
        for (int d = 0; d < terms; ++d)
            next[d] = (d > 0 ? (n == 0 ? 1.0 : 2.0) * current[d - 1] : 0.0) -
                      (n == 0 ? 0.0 : before[d]);
        double *spare = before;
        before = current;
        current = next;
        next = spare;
    }
}

static void fit_taps(tess_kernel *kernel, int degree)
{
    double cosine[4 * (TESS_MAX_DEGREE + 1)];
    const int terms = degree + 1;
    for (int i = 0; i < 4 * terms; ++i)
        cosine[i] = cos(TESS_PI * 0.5 * i / terms);
    kernel->degree = degree;
    memset(kernel->coefficient, 0, sizeof kernel->coefficient);
    for (int j = 0; j < kernel->support; ++j)
        fit_tap(kernel, cosine, j);
}

void tess_kernel_create(int support, double padding, tess_kernel *kernel)
{
    memset(kernel, 0, sizeof *kernel);
    kernel->support = support;
    kernel->padding = padding;
    look_up(kernel);
    const double edge = 0.5 / padding;
    const double target =
        kernel_exact_error(support, kernel->beta, kernel->exponent, edge);
    /* The taps at the kernel's rim end like a square root, so their polynomials never
     * converge fully. A degree that costs less than a twentieth of the error is enough.
     */
    for (int degree = support / 2 + 1; degree <= TESS_MAX_DEGREE; ++degree) {
        fit_taps(kernel, degree);
        assess(kernel, edge);
        if (kernel->error <= 1.05 * target || degree >= support + 6) break;
    }
}

void tess_kernel_correction_fit(const tess_kernel *kernel, double x_max,
                                double c[TESS_CORRECTION_TERMS])
{
    enum { N = TESS_CORRECTION_TERMS };
    double value[N];
    for (int k = 0; k < N; ++k) {
        const double y = cos(TESS_PI * (k + 0.5) / N);
        value[k] = tess_kernel_correction(kernel, x_max * sqrt(0.5 * (y + 1.0)), NULL);
    }
    for (int n = 0; n < N; ++n) {
        double sum = 0;
        for (int k = 0; k < N; ++k)
            sum += value[k] * cos(TESS_PI * n * (k + 0.5) / N);
        c[n] = sum * (n == 0 ? 1.0 : 2.0) / N;
    }
}
