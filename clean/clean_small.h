/** @file clean_small.h  (private to clean/)
 *  Small systems of equations, and polynomials.
 */
#ifndef TESS_CLEAN_SMALL_H
#define TESS_CLEAN_SMALL_H

#include <stdbool.h>

#include "tess_clean.h"

/** Solve a x = b for a symmetric, positive definite a of n rows, by Cholesky's
 *  decomposition. False: a is not positive definite. Overwrites `a`, and `b` with the
 *  solution. Local. */
bool clean_solve(double a[TESS_CLEAN_MOST_TERMS][TESS_CLEAN_MOST_TERMS], double *b,
                 int n);

/** term[0] + term[1] x + … of n terms. Local. */
double clean_polynomial(const double *term, int n, double x);

/** power[n] := 1, x, x², … Local. */
void clean_powers(double x, int n, double *power);

#endif
