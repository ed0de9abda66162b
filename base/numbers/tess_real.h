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

#endif
