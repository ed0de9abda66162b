/* The table of innermost loops of one instruction set. CMake compiles this file several
 * times, with TILE_TABLE naming the table and the compiler's flags the instructions. */
#include "tile.h"

#include <math.h>
#include <stddef.h>

#include "locate.h"
#include "tess_sincos.h"

#ifndef TILE_TABLE
#define TILE_TABLE tile_table_portable
#endif

#if defined(__AVX512F__)
enum { VECTOR_BYTES = 64 };
#elif defined(__AVX2__)
enum { VECTOR_BYTES = 32 };
#else
enum { VECTOR_BYTES = 16 };
#endif

/* Channels of a run whose positions and phases are worked out together. */
enum { BATCH = 32 };

/* Offset on one axis of a footprint's first cell in a buffer that begins at `origin`, and
 * the kernel fraction there. The clamp only acts when rounding here and in sorting fall
 * on different sides of a cell border; the fraction then lies 1e-12 outside [0,1). */
static inline int axis_offset(double coordinate, double support, double origin,
                              double period, int last, double *fraction)
{
    double d = coordinate - 0.5 * support - origin;
    d -= period * floor(d / period + 0.5);
    double start = ceil(d);
    start = start < 0 ? 0 : start > last ? last : start;
    *fraction = start - d;
    return (int)start;
}

/* Positions, kernel fractions and w-phases of up to BATCH channels of a run. */
typedef struct batch {
    int offset_u[BATCH], offset_v[BATCH], plane[BATCH];
    double fraction_u[BATCH], fraction_v[BATCH], fraction_w[BATCH];
    double phase_re[BATCH], phase_im[BATCH];
} batch;

static inline void place_batch(const tile_job *job, const tess_row_scale *row,
                               const double *inv_lambda, int n, batch *out)
{
    const tess_grid_plan *plan = job->plan;
    const double support = plan->kernel.support;
    const double period_u = (double)plan->nu, period_v = (double)plan->nv;
    const double cell_u = (double)job->cell_u, cell_v = (double)job->cell_v;
    for (int c = 0; c < n; ++c) {
        out->offset_u[c] = axis_offset(row->a * inv_lambda[c], support, cell_u, period_u,
                                       TESS_TILE - 1, &out->fraction_u[c]);
        out->offset_v[c] = axis_offset(row->b * inv_lambda[c], support, cell_v, period_v,
                                       TESS_TILE - 1, &out->fraction_v[c]);
    }
    for (int c = 0; c < n && tess_has_phase(plan); ++c)
        tess_sincos_turns(row->turns * inv_lambda[c], &out->phase_im[c], &out->phase_re[c]);
    for (int c = 0; c < n && !tess_has_phase(plan); ++c) {
        out->phase_im[c] = 0;
        out->phase_re[c] = 1;
    }
    if (!plan->opts.do_w) {
        for (int c = 0; c < n; ++c) {
            out->plane[c] = 0;
            out->fraction_w[c] = 0;
        }
        return;
    }
    const double first = plan->w_first_lambda, per_plane = 1.0 / plan->w_step_lambda;
    const double plane_first = job->plane_first, far = 4.0 * plan->num_planes + 64;
    const int last = job->num_planes - plan->w_support;
    for (int c = 0; c < n; ++c) {
        const double w = row->w * inv_lambda[c];
        out->plane[c] = axis_offset((w - first) * per_plane, plan->w_support, plane_first,
                                    far, last, &out->fraction_w[c]);
    }
}

#define REAL        float
#define NAME(x)     x##_single
#define TAPS        single
#define TAP_PAIRS   single_pairs
#include "tile_loops.inc.h"
#undef REAL
#undef NAME
#undef TAPS
#undef TAP_PAIRS

#define REAL        double
#define NAME(x)     x##_double
#define TAPS        full
#define TAP_PAIRS   full_pairs
#include "tile_loops.inc.h"

#define BY_SUPPORT(f)                                                                \
    {NULL, NULL, NULL, NULL, f##_4,  f##_5,  f##_6,  f##_7, f##_8,                   \
     f##_9, f##_10, f##_11, f##_12, f##_13, f##_14, f##_15, f##_16}

const tile_table TILE_TABLE = {
    .grid = {BY_SUPPORT(grid_single), BY_SUPPORT(grid_double)},
    .degrid = {BY_SUPPORT(degrid_single), BY_SUPPORT(degrid_double)},
};
