/** @file tess_cubic.h
 *  Cubic interpolation between equidistant values (Keys 1981, IEEE Trans. ASSP 29,
 *  1153, with a = -1/2).
 */
#ifndef TESS_CUBIC_H
#define TESS_CUBIC_H

/** Weights of the values at −1, 0, 1 and 2, for interpolation at a place `t` between 0
 * and 1. */
static inline void tess_cubic_weights(double t, double weight[4])
{
    const double t2 = t * t, t3 = t2 * t;
    weight[0] = -0.5 * t3 + t2 - 0.5 * t;
    weight[1] = 1.5 * t3 - 2.5 * t2 + 1;
    weight[2] = -1.5 * t3 + 2 * t2 + 0.5 * t;
    weight[3] = 0.5 * t3 - 0.5 * t2;
}

#endif
