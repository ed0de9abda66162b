/** @file kernel_optimise.h  (private to grid/kernel/)
 *  Optimises the parameters of a gridding kernel.
 */
#ifndef TESS_KERNEL_OPTIMISE_H
#define TESS_KERNEL_OPTIMISE_H

/** β per cell of support, and the exponent p, that make kernel_exact_error() smallest.
 *  kernel_table.h consists of them. */
void kernel_optimise(int support, double padding, double *beta_per_cell,
                     double *exponent);

#endif
