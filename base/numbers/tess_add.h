/** @file tess_add.h
 *  Sums of arrays in either precision.
 */
#ifndef TESS_ADD_H
#define TESS_ADD_H

#include <stdbool.h>
#include <stdint.h>

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
