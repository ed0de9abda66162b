/* The grid correction of image rows in device memory; correct_isa.c has the same for
 * host memory. Two reads and a write a pixel would take 30 µs of a 4096² image at
 * 4 TB/s; some 50 double-precision operations a pixel, most of them the fit along w,
 * take as long at 33 TFLOP/s. */
#include "correct.h"
#include "correct_cuda.h"
#include "tess_cuda.h"
#include "tess_device.h"

enum { THREADS = 256, MOST_ROWS = 65535 };

/* The parts of a pixel's correction; see tess_grid_plan. */
struct correction {
    tess_geom geom;
    double nm1_center, nm1_range, factor;
    double along_w[TESS_CORRECTION_TERMS];
    int terms; /* of along_w; 0: none */
    bool is_model;
    const double *along_u, *along_v; /* [nx], [ny] */
    unsigned long long *bad;         /* pixels above the horizon that are not finite */
};

/* Computes Σ c_n T_n(2x² − 1) by Clenshaw's recurrence, at the n − 1 of squared radius
 * r2; see tess_kernel_correction_fit. */
__device__ inline double correct_w(const correction &with, double r2)
{
    const double nm1 = -r2 / (sqrt(1.0 - r2) + 1.0);
    const double x = (nm1 - with.nm1_center) / with.nm1_range, y = 2 * x * x - 1;
    double b1 = 0, b2 = 0;
    for (int n = with.terms - 1; n > 0; --n) {
        const double b = with.along_w[n] + 2 * y * b1 - b2;
        b2 = b1;
        b1 = b;
    }
    return with.along_w[0] + y * b1 - b2;
}

/* A thread corrects a pixel, and a block a part of a row. */
template <typename real>
__global__ void correct_kernel(const __grid_constant__ correction with,
                               int64_t row_first, real *rows)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int64_t j = row_first + blockIdx.y;
    if (i >= with.geom.nx) return;
    const double l =
        with.geom.l0 - (double)(i - with.geom.nx / 2) * with.geom.scale_rad;
    const double m =
        with.geom.m0 + (double)(j - with.geom.ny / 2) * with.geom.scale_m_rad;
    const double r2 = l * l + m * m;
    real *pixel = rows + (int64_t)blockIdx.y * with.geom.nx + i;
    double out = NAN;
    if (r2 < 1.0) {
        out = (double)*pixel * with.factor * with.along_u[i] * with.along_v[j];
        if (with.terms > 0) out *= correct_w(with, r2);
        if (!isfinite((real)out)) atomicAdd(with.bad, 1ull);
    }
    *pixel = with.is_model && !isfinite(out) ? (real)0 : (real)out;
}

static void fill(const tess_grid_plan *plan, double factor, bool is_model,
                 correction *with)
{
    *with = correction();
    with->geom = plan->target.geom;
    if (with->geom.scale_m_rad <= 0)
        with->geom.scale_m_rad = plan->target.geom.scale_rad;
    with->nm1_center = plan->target.nm1_center;
    with->nm1_range = plan->field.nm1_half;
    with->factor = factor;
    with->is_model = is_model;
    if (!plan->opts.do_w) return;
    with->terms = correct_terms(plan->correction.w);
    for (int k = 0; k < with->terms; ++k)
        with->along_w[k] = plan->correction.w[k];
}

template <typename real>
static tess_status launch(const correction *with, int64_t row_first, int64_t num_rows,
                          real *rows)
{
    tess_status status = TESS_OK;
    const int64_t nx = with->geom.nx;
    for (int64_t k = 0; k < num_rows; k += MOST_ROWS) {
        const int64_t here =
            num_rows - k < MOST_ROWS ? num_rows - k : (int64_t)MOST_ROWS;
        const dim3 blocks((unsigned)((nx + THREADS - 1) / THREADS), (unsigned)here);
        correct_kernel<real><<<blocks, THREADS, 0, tess_device_stream()>>>(
            *with, row_first + k, rows + k * nx);
        TESS_CUDA_LAUNCHED();
    }
cleanup:
    return status;
}

tess_status correct_cuda(const tess_grid_plan *plan, double factor, bool is_model,
                         int64_t row_first, int64_t num_rows, void *rows,
                         int64_t *num_bad)
{
    tess_status status = TESS_OK;
    const int64_t element = (int64_t)sizeof(double);
    const void *along_u = NULL, *along_v = NULL;
    unsigned long long bad = 0;
    void *count = NULL;
    correction with;
    fill(plan, factor, is_model, &with);
    TESS_TRY(tess_device_copy_of(plan->target.correct_u, plan->target.geom.nx * element,
                                 "grid correction", &along_u));
    TESS_TRY(tess_device_copy_of(plan->target.correct_v, plan->target.geom.ny * element,
                                 "grid correction", &along_v));
    with.along_u = (const double *)along_u;
    with.along_v = (const double *)along_v;
    TESS_TRY(tess_device_alloc(sizeof bad, "grid correction", &count));
    TESS_TRY(tess_device_zero(count, sizeof bad));
    with.bad = (unsigned long long *)count;
    if (plan->is_double)
        TESS_TRY(launch(&with, row_first, num_rows, (double *)rows));
    else
        TESS_TRY(launch(&with, row_first, num_rows, (float *)rows));
    TESS_TRY(tess_device_download(&bad, count, sizeof bad));
    *num_bad = (int64_t)bad;
cleanup:
    tess_device_free(count);
    tess_device_free((void *)along_u);
    tess_device_free((void *)along_v);
    return status;
}
