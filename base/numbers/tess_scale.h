/** @file tess_scale.h
 *  Powers of two that keep products of very small or very large numbers in the range of
 *  their type. Multiplication by a power of two is exact.
 */
#ifndef TESS_SCALE_H
#define TESS_SCALE_H

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/** The power of two that brings `largest` to between 0.5 and 1. It is 1 if no scaling
 * is needed: if the products of two numbers of up to `largest`, and the sums of 2^50
 * such products, are in the range of the type, with room for factors of 1e-9. */
static inline double tess_scale_for(double largest, bool is_double)
{
    const int near_one = is_double ? 400 : 36, most = 1000;
    int exponent;
    if (!(largest > 0) || !isfinite(largest)) return 1;
    frexp(largest, &exponent);
    if (abs(exponent) <= near_one) return 1;
    return ldexp(1, exponent < -most ? most : -exponent);
}

#endif
