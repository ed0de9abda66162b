/* Makes taps along w for planes that are all touched by every visibility. */
#include "tess_kernel.h"

#include <math.h>
#include <string.h>

#include "tess_const.h"

/* Places in half of the range of w at which errors are looked at; they are largest
 * between planes and at the end. Distances of planes that are tried. */
enum { RANGE_PLACES = 48, DISTANCES = 48 };

/* Where plane k lies, in distances of planes from the middle of the range. */
static double place_of(int count, int k)
{
    return k - 0.5 * (count - 1);
}

/* Computes the largest |∏ (τ − τ_k)| for τ in ± half a range of `length` distances. It
 * is what the error of interpolation is proportional to, in this length. */
static double largest_product(int count, double length)
{
    double largest = 0;
    for (int i = 0; i <= RANGE_PLACES; ++i) {
        double product = 1;
        for (int k = 0; k < count; ++k)
            product *= (0.5 * length * i / RANGE_PLACES - place_of(count, k)) / length;
        largest = fmax(largest, fabs(product));
    }
    return largest;
}

/* Finds the length of the range, in distances of planes, at which interpolation errs
 * least. The outer planes then lie a little inside of the range, as Chebyshev's nodes
 * do. */
static double best_length(int count)
{
    double best = 1, least = INFINITY;
    if (count == 1) return 1;
    for (int i = 0; i <= DISTANCES; ++i) {
        const double length = count - 1 + (double)i / DISTANCES;
        const double product = largest_product(count, length);
        if (product >= least) continue;
        least = product;
        best = length;
    }
    return best;
}

/* Makes Lagrange's polynomials through the planes. τ = −y/2: taps are polynomials of
 * y = 2f − 1, and the footprint's lower edge is half a support below the middle. */
static void fit_polynomials(int count, tess_kernel *taps)
{
    for (int j = 0; j < count; ++j) {
        double term[TESS_MAX_SUPPORT + 1] = {1};
        for (int k = 0, degree = 0; k < count; ++k) {
            if (k == j) continue;
            const double per = 1 / (place_of(count, j) - place_of(count, k));
            ++degree;
            for (int d = degree; d >= 0; --d)
                term[d] = per * ((d > 0 ? -0.5 * term[d - 1] : 0) -
                                 place_of(count, k) * term[d]);
        }
        for (int d = 0; d < count; ++d)
            taps->coefficient[d][j] = term[d];
    }
}

/* Computes |1 − Σ_k L_k(τ) exp(2πi x (τ_k − τ))| at place τ for a pixel that turns by
 * 2π x from plane to plane. */
static double error_at(const tess_kernel *taps, double x, double place)
{
    double tap[TESS_MAX_SUPPORT];
    double re = 1, im = 0;
    tess_kernel_taps(taps, 0.5 - place, tap);
    for (int k = 0; k < taps->support; ++k) {
        const double phase = TESS_TWO_PI * x * (place_of(taps->support, k) - place);
        re -= tap[k] * cos(phase);
        im -= tap[k] * sin(phase);
    }
    return hypot(re, im);
}

double tess_kernel_between_planes(int count, double turns, tess_kernel *taps)
{
    const double length = best_length(count);
    double largest = 0;
    memset(taps, 0, sizeof *taps);
    taps->support = count;
    taps->degree = count - 1;
    fit_polynomials(count, taps);
    for (int i = 0; i <= RANGE_PLACES; ++i)
        largest = fmax(largest,
                       error_at(taps, turns / length, 0.5 * length * i / RANGE_PLACES));
    taps->error = taps->largest_error = largest;
    return length;
}
