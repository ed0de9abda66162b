#include "tess_beam.h"

#include <math.h>

#include "tess_const.h"

enum { MAX_ITERATIONS = 500 };

static const double BOX_BEAMS = 10.0;

/* FWHM = √(8 ln 2) σ */
static double fwhm_per_sigma(void)
{
    return sqrt(8.0 * log(2.0));
}

int64_t tess_beam_box(double beam, int64_t limit)
{
    int64_t side = (int64_t)ceil(fmin(beam * BOX_BEAMS, (double)limit));
    if (side < 10) side = 10;
    side += side % 2;
    return side < limit ? side : limit;
}

/* The Gaussian is exp(−(a x² + 2 b x y + c y²)/2); fitted are the Cholesky factors
 * a = p², b = p q, c = q² + r², which keep it positive definite. */
typedef struct normal_equations {
    double matrix[3][3], vector[3], chi2;
} normal_equations;

static void accumulate(const double *psf, int64_t nx, int64_t ny, const double param[3],
                       normal_equations *sums)
{
    *sums = (normal_equations){0};
    const double p = param[0], q = param[1], r = param[2];
    for (int64_t j = ny / 2; j < ny; ++j)
        for (int64_t i = nx / 2; i < nx; ++i) {
            const double x = (double)(i - nx / 2), y = (double)(j - ny / 2);
            const double first = p * x + q * y, second = r * y;
            const double model = exp(-0.5 * (first * first + second * second));
            const double slope[3] = {-model * first * x, -model * first * y,
                                     -model * second * y};
            const double residual = psf[j * nx + i] - model;
            if (!isfinite(residual)) continue;
            sums->chi2 += residual * residual;
            for (int k = 0; k < 3; ++k) {
                sums->vector[k] += slope[k] * residual;
                for (int m = 0; m < 3; ++m) sums->matrix[k][m] += slope[k] * slope[m];
            }
        }
}

static double determinant(const double m[3][3])
{
    return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
           m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
           m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
}

/* Cramer's rule on the damped normal equations; false when singular. */
static bool solve(const normal_equations *sums, double damping, double step[3])
{
    double matrix[3][3];
    for (int k = 0; k < 3; ++k)
        for (int m = 0; m < 3; ++m)
            matrix[k][m] = sums->matrix[k][m] * (k == m ? 1 + damping : 1);
    const double whole = determinant((const double (*)[3])matrix);
    if (!(fabs(whole) > 0)) return false;
    for (int k = 0; k < 3; ++k) {
        double replaced[3][3];
        for (int row = 0; row < 3; ++row)
            for (int m = 0; m < 3; ++m)
                replaced[row][m] = m == k ? sums->vector[row] : matrix[row][m];
        step[k] = determinant((const double (*)[3])replaced) / whole;
    }
    return isfinite(step[0]) && isfinite(step[1]) && isfinite(step[2]);
}

/* Eigenvalues of the quadratic form give the axes; x runs to the West, so the position
 * angle, from North through East, is that of (−x, y). */
static bool to_beam(const double param[3], tess_beam *beam)
{
    const double a = param[0] * param[0], b = param[0] * param[1];
    const double c = param[1] * param[1] + param[2] * param[2];
    const double mean = 0.5 * (a + c), spread = hypot(0.5 * (a - c), b);
    const double smallest = mean - spread, largest = mean + spread;
    if (!(smallest > 0) || !isfinite(largest)) return false;
    beam->major = fwhm_per_sigma() / sqrt(smallest);
    beam->minor = fwhm_per_sigma() / sqrt(largest);
    /* direction of the major axis: eigenvector of the smallest eigenvalue */
    double x = b, y = smallest - a;
    if (fabs(x) + fabs(y) < 1e-12 * mean) {
        x = a <= c ? 1 : 0;
        y = a <= c ? 0 : 1;
    }
    double angle = atan2(-x, y);
    if (angle < 0) angle += TESS_PI;
    if (angle >= TESS_PI) angle -= TESS_PI;
    beam->angle = angle;
    return true;
}

bool tess_beam_fit(const double *psf, int64_t nx, int64_t ny, double start,
                   tess_beam *beam)
{
    const double inverse = fwhm_per_sigma() / start;
    double param[3] = {inverse, 0, inverse}, damping = 1e-3;
    normal_equations sums, trial_sums;
    accumulate(psf, nx, ny, param, &sums);
    for (int k = 0; k < MAX_ITERATIONS; ++k) {
        double step[3], trial[3], moved = 0;
        if (!solve(&sums, damping, step)) return false;
        for (int m = 0; m < 3; ++m) {
            trial[m] = param[m] + step[m];
            moved = fmax(moved, fabs(step[m]));
        }
        accumulate(psf, nx, ny, trial, &trial_sums);
        if (trial_sums.chi2 <= sums.chi2) {
            for (int m = 0; m < 3; ++m) param[m] = trial[m];
            sums = trial_sums;
            damping = fmax(damping / 10, 1e-12);
            if (moved < 1e-9 * (fabs(param[0]) + fabs(param[2]))) break;
        } else if (damping < 1e12)
            damping *= 10;
        else
            break;
    }
    return to_beam(param, beam);
}
