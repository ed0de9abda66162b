/** @file tess_real.h
 *  Arrays of real numbers whose precision is known at run time.
 */
#ifndef TESS_REAL_H
#define TESS_REAL_H

#include <stdbool.h>
#include <stdint.h>

/** Element k of an array of double or of float, as double. */
static inline double tess_real_at(const void *array, bool is_double, int64_t k)
{
    return is_double ? ((const double *)array)[k] : (double)((const float *)array)[k];
}

/** Set element k of such an array. */
static inline void tess_real_set(void *array, bool is_double, int64_t k, double value)
{
    if (is_double)
        ((double *)array)[k] = value;
    else
        ((float *)array)[k] = (float)value;
}

/** to[k] += from[k] for `count` floats, or doubles. Local. */
static inline void tess_add_reals(bool is_double, void *to, const void *from,
                                  int64_t count)
{
    if (is_double)
        for (int64_t k = 0; k < count; ++k)
            ((double *)to)[k] += ((const double *)from)[k];
    else
        for (int64_t k = 0; k < count; ++k)
            ((float *)to)[k] += ((const float *)from)[k];
}

#endif
