/** @file kernel_quality.h  (private to grid/kernel/)
 *  The error of a gridding kernel, for the optimisation of its parameters.
 */
#ifndef TESS_KERNEL_QUALITY_H
#define TESS_KERNEL_QUALITY_H

/** The rms error over the field, |x| ≤ edge, of a kernel that is evaluated exactly,
 * with the best grid correction. Polynomials for the kernel add to it. */
double kernel_exact_error(int support, double beta, double exponent, double edge);

#endif
