/** @file kernel_quality.h  (private to grid/)
 *  How well a kernel does, for those that choose one and those that optimise.
 */
#ifndef TESS_KERNEL_QUALITY_H
#define TESS_KERNEL_QUALITY_H

#include "tess_kernel.h"

/** φ(z) = exp(β((1−z²)^p − 1)), 0 for |z| > 1. */
double kernel_shape(double z, double beta, double exponent);

/** The rms error over the field, |x| ≤ edge, of the kernel itself, without polynomials,
 *  with the best correction. */
double kernel_exact_error(int support, double beta, double exponent, double edge);

/** β per cell of support, and p, with which that is smallest (kernel_optimise.c): what
 *  kernel_table.h is made of. */
void kernel_optimise(int support, double padding, double *beta_per_cell,
                     double *exponent);

#endif
