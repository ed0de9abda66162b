/* The grid correction of one instruction set; see correct.h. */
#include "correct.h"

#include <math.h>

#ifndef CORRECT_TABLE
#define CORRECT_TABLE correct_table_portable
#endif

/* The corrections of this many pixels are computed together, so that the loops
 * vectorise. */
enum { PIXELS = 64 };

/* Multiplies out[k] by Σ c_n T_n(y_k), by Clenshaw's recurrence. */
static void multiply_chebyshev(const double *c, int terms, const double y[PIXELS],
                               double out[PIXELS])
{
    double b1[PIXELS] = {0}, b2[PIXELS] = {0};
    for (int n = terms - 1; n > 0; --n)
        for (int k = 0; k < PIXELS; ++k) {
            const double b = c[n] + 2 * y[k] * b1[k] - b2[k];
            b2[k] = b1[k];
            b1[k] = b;
        }
    for (int k = 0; k < PIXELS; ++k)
        out[k] *= c[0] + y[k] * b1[k] - b2[k];
}

/* Computes y of the fit along w at squared radii r2; see tess_kernel_correction_fit,
 * tess_geom_nm1. */
static void fit_coordinate(const tess_grid_plan *plan, const double r2[PIXELS],
                           double y[PIXELS])
{
    const double center = plan->target.nm1_center,
                 per_range = 1.0 / plan->field.nm1_half;
    for (int k = 0; k < PIXELS; ++k) {
        const double inside = r2[k] < 1.0 ? r2[k] : 1.0;
        const double nm1 = -inside / (sqrt(1.0 - inside) + 1.0);
        const double x = (nm1 - center) * per_range;
        y[k] = 2 * x * x - 1;
    }
}

static void correct_row(const tess_grid_plan *plan, int64_t j, double *out)
{
    const tess_geom *geom = &plan->target.geom;
    const double m = tess_geom_m(geom, j), h_row = plan->target.correct_v[j];
    const double l0 = geom->l0, scale = geom->scale_rad;
    const int terms = correct_terms(plan->correction.w);
    for (int64_t first = 0; first < geom->nx; first += PIXELS) {
        const int64_t rest = geom->nx - first;
        const int count = rest < PIXELS ? (int)rest : PIXELS;
        const int32_t from_middle = (int32_t)(first - geom->nx / 2);
        double r2[PIXELS], y[PIXELS], h[PIXELS] = {0};
        for (int32_t k = 0; k < PIXELS; ++k) {
            const double l = l0 - (double)(from_middle + k) * scale;
            r2[k] = l * l + m * m;
        }
        for (int k = 0; k < count; ++k)
            h[k] = plan->target.correct_u[first + k] * h_row;
        if (plan->opts.do_w) {
            fit_coordinate(plan, r2, y);
            multiply_chebyshev(plan->correction.w, terms, y, h);
        }
        for (int k = 0; k < count; ++k)
            out[first + k] = r2[k] < 1.0 ? h[k] : (double)NAN;
    }
}

const correct_table CORRECT_TABLE = {.row = correct_row};
