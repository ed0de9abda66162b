/** @file kernel_start.h  (tests)
 *  Where the footprint of a kernel begins, by its definition.
 */
#ifndef TESS_TEST_KERNEL_START_H
#define TESS_TEST_KERNEL_START_H

#include <math.h>

#include "tess_kernel.h"

/** First grid point of the footprint around grid coordinate g: ⌈g − W/2⌉, and in
 *  `fraction` its distance from g − W/2. */
static inline int64_t kernel_start(const tess_kernel *kernel, double g,
                                   double *fraction)
{
    const double lower = g - 0.5 * kernel->support;
    const double start = ceil(lower);
    *fraction = start - lower;
    return (int64_t)start;
}

#endif
