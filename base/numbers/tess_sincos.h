/** @file tess_sincos.h
 *  Sine and cosine of phases in turns, written so that compilers vectorise loops over
 *  them.
 */
#ifndef TESS_SINCOS_H
#define TESS_SINCOS_H

#include <math.h>

#include "tess_const.h"

/** Nearest whole number to x, |x| < 2^51. It vectorises on every instruction set. */
static inline double tess_nearest(double x)
{
    const double shift = 0x1.8p52;
    return (x + shift) - shift;
}

/** As tess_nearest(), in single precision, |x| < 2^22. */
static inline float tess_nearest_single(float x)
{
    const float shift = 0x1.8p23f;
    return (x + shift) - shift;
}

/** sin and cos of 2π·turns, |turns| < 2^49: the quadrant is split off, then Taylor
 * polynomials serve on ±π/4. The first neglected terms, θ^17/17! and θ^18/18!, are
 * below 5e-17. */
static inline void tess_sincos_turns(double turns, double *sine, double *cosine)
{
    const double quadrant = tess_nearest(4.0 * turns);
    const double theta = (turns - 0.25 * quadrant) * TESS_TWO_PI, x = theta * theta;
    const double s =
        theta *
        (1 + x * (-1.0 / 6 +
                  x * (1.0 / 120 + x * (-1.0 / 5040 +
                                        x * (1.0 / 362880 +
                                             x * (-1.0 / 39916800 +
                                                  x * (1.0 / 6227020800.0 -
                                                       x * (1 / 1307674368000.0))))))));
    const double c =
        1 + x * (-0.5 + x * (1.0 / 24 +
                             x * (-1.0 / 720 +
                                  x * (1.0 / 40320 +
                                       x * (-1.0 / 3628800 +
                                            x * (1.0 / 479001600 +
                                                 x * (-1.0 / 87178291200.0 +
                                                      x * (1 / 20922789888000.0))))))));
    /* `half` is quadrant / 2, rounded down; so `odd` is 0 or 1 */
    const double half = tess_nearest(0.5 * quadrant - 0.25), odd = quadrant - 2 * half;
    const double sign = 1 - 2 * (half - 2 * tess_nearest(0.5 * half - 0.25));
    /* odd quadrants exchange sine and cosine: arithmetic with `odd` replaces a branch
     */
    *sine = sign * (s + odd * (c - s));
    *cosine = sign * (c - odd * (c + s));
}

/** The same in single precision, |turns| ≤ ½. The first neglected terms, θ^11/11! and
 * θ^10/10!, are below 3e-8. */
static inline void tess_sincos_turns_single(float turns, float *sine, float *cosine)
{
    const float quadrant = tess_nearest_single(4.0f * turns);
    const float theta = (turns - 0.25f * quadrant) * (float)TESS_TWO_PI;
    const float x = theta * theta;
    const float s =
        theta *
        (1.0f +
         x * (-1.0f / 6 + x * (1.0f / 120 + x * (-1.0f / 5040 + x * (1 / 362880.0f)))));
    const float c =
        1.0f + x * (-0.5f + x * (1.0f / 24 + x * (-1.0f / 720 + x * (1 / 40320.0f))));
    const float half = tess_nearest_single(0.5f * quadrant - 0.25f);
    const float odd = quadrant - 2.0f * half;
    const float sign =
        1.0f - 2.0f * (half - 2.0f * tess_nearest_single(0.5f * half - 0.25f));
    *sine = sign * (s + odd * (c - s));
    *cosine = sign * (c - odd * (c + s));
}

#endif
