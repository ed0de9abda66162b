/* Solves small systems of equations, and evaluates polynomials. */
#include "clean_small.h"

#include <math.h>

bool clean_solve(double a[TESS_CLEAN_MOST_TERMS][TESS_CLEAN_MOST_TERMS], double *b,
                 int n)
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

double clean_polynomial(const double *term, int n, double x)
{
    double sum = 0;
    for (int k = n - 1; k >= 0; --k)
        sum = sum * x + term[k];
    return sum;
}

void clean_powers(double x, int n, double *power)
{
    for (int k = 0; k < n; ++k)
        power[k] = k == 0 ? 1 : power[k - 1] * x;
}
