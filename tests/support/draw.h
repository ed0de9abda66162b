/** @file draw.h  (tests)
 *  Random numbers from a fixed seed, the same on every machine.
 */
#ifndef TESS_TEST_DRAW_H
#define TESS_TEST_DRAW_H

#include <math.h>
#include <stdint.h>

/** State of the generator; any value is a good seed. */
typedef struct draw {
    uint64_t state;
} draw;

/** SplitMix64 (Steele, Lea & Flood 2014). */
static inline uint64_t draw_bits(draw *from)
{
    uint64_t z = from->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/** Uniform in [low, high). */
static inline double draw_uniform(draw *from, double low, double high)
{
    return low + (high - low) * (double)(draw_bits(from) >> 11) * 0x1p-53;
}

/** Whole number in [0, count). */
static inline int64_t draw_index(draw *from, int64_t count)
{
    return (int64_t)(draw_bits(from) % (uint64_t)count);
}

/** Normal with mean 0 and variance 1 (Box and Muller). */
static inline double draw_normal(draw *from)
{
    const double radius = sqrt(-2.0 * log(1.0 - draw_uniform(from, 0, 1)));
    return radius * cos(draw_uniform(from, 0, 6.283185307179586));
}

#endif
