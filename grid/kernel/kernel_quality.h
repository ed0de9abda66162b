/** @file kernel_quality.h  (private to grid/kernel/)
 *  The shape of a gridding kernel, and its error, for the choice of a kernel and for
 * the optimisation of its parameters.
 */
#ifndef TESS_KERNEL_QUALITY_H
#define TESS_KERNEL_QUALITY_H

/** φ(z) = exp(β((1−z²)^p − 1)), 0 for |z| > 1. */
double kernel_shape(double z, double beta, double exponent);

/** The rms error over the field, |x| ≤ edge, of a kernel that is evaluated exactly,
 * with the best grid correction. Polynomials for the kernel add to it. */
double kernel_exact_error(int support, double beta, double exponent, double edge);

#endif
