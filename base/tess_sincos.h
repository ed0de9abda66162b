/** @file tess_sincos.h
 *  Sine and cosine of phases in turns, written so that loops over them vectorise.
 */
#ifndef TESS_SINCOS_H
#define TESS_SINCOS_H

#include <math.h>

#include "tess_const.h"

/** sin and cos of 2π·turns: quadrant reduction, then Taylor polynomials on ±π/4, whose
 *  first neglected terms (θ^17/17!, θ^18/18!) are below 5e-17. */
static inline void tess_sincos_turns(double turns, double *sine, double *cosine)
{
    const double quadrant = floor(4.0 * turns + 0.5);
    const double theta = (turns - 0.25 * quadrant) * TESS_TWO_PI, x = theta * theta;
    const double s =
        theta *
        (1 + x * (-1.0 / 6 +
                  x * (1.0 / 120 +
                       x * (-1.0 / 5040 +
                            x * (1.0 / 362880 +
                                 x * (-1.0 / 39916800 +
                                      x * (1.0 / 6227020800.0 -
                                           x / 1307674368000.0)))))));
    const double c =
        1 + x * (-0.5 +
                 x * (1.0 / 24 +
                      x * (-1.0 / 720 +
                           x * (1.0 / 40320 +
                                x * (-1.0 / 3628800 +
                                     x * (1.0 / 479001600 +
                                          x * (-1.0 / 87178291200.0 +
                                               x / 20922789888000.0)))))));
    const double half = floor(0.5 * quadrant), odd = quadrant - 2 * half;
    const double sign = 1 - 2 * (half - 2 * floor(0.5 * half));
    /* blended by arithmetic: odd is 0 or 1 */
    *sine = sign * (s + odd * (c - s));
    *cosine = sign * (c - odd * (c + s));
}

#endif
