/** @file clean_small.h  (private to clean/)
 *  Small systems of equations, and polynomials, for processors and GPUs.
 */
#ifndef TESS_CLEAN_SMALL_H
#define TESS_CLEAN_SMALL_H

#include <math.h>
#include <stdbool.h>

#include "tess_shared_code.h"

/** Most rows of a system: TESS_CLEAN_MOST_TERMS. */
enum { CLEAN_SMALL_MOST = 16 };

/** Solve a x = b for a symmetric, positive definite a of n rows, by Cholesky's
 *  decomposition. False: a is not positive definite. Overwrites `a`, and `b` with the
 *  solution. Local. */
TESS_SHARED_FUNCTION bool clean_solve(double a[CLEAN_SMALL_MOST][CLEAN_SMALL_MOST],
                                      double *b, int n)
{
    for (int j = 0; j < n; ++j) {
        for (int k = 0; k < j; ++k)
            a[j][j] -= a[j][k] * a[j][k];
        if (!(a[j][j] > 0)) return false;
        a[j][j] = sqrt(a[j][j]);
        for (int i = j + 1; i < n; ++i) {
            for (int k = 0; k < j; ++k)
                a[i][j] -= a[i][k] * a[j][k];
            a[i][j] /= a[j][j];
        }
    }
    for (int i = 0; i < n; ++i) {
        for (int k = 0; k < i; ++k)
            b[i] -= a[i][k] * b[k];
        b[i] /= a[i][i];
    }
    for (int i = n - 1; i >= 0; --i) {
        for (int k = i + 1; k < n; ++k)
            b[i] -= a[k][i] * b[k];
        b[i] /= a[i][i];
    }
    return true;
}

/** term[0] + term[1] x + … of n terms. Local. */
TESS_SHARED_FUNCTION double clean_polynomial(const double *term, int n, double x)
{
    double sum = 0;
    for (int k = n - 1; k >= 0; --k)
        sum = sum * x + term[k];
    return sum;
}

/** power[n] := 1, x, x², … Local. */
TESS_SHARED_FUNCTION void clean_powers(double x, int n, double *power)
{
    for (int k = 0; k < n; ++k)
        power[k] = k == 0 ? 1 : power[k - 1] * x;
}

#endif
