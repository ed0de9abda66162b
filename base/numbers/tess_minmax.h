/** @file tess_minmax.h
 *  The smaller and the larger of two whole numbers. For real numbers there are fmin()
 *  and fmax().
 */
#ifndef TESS_MINMAX_H
#define TESS_MINMAX_H

#include <stdint.h>

static inline int64_t tess_min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t tess_max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/** The number in [low, high] that is nearest to k. */
static inline int64_t tess_clamp_i64(int64_t k, int64_t low, int64_t high)
{
    return tess_min_i64(tess_max_i64(k, low), high);
}

#endif
