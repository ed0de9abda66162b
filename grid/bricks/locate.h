/** @file locate.h  (private to grid/ and degrid/)
 *  From baseline to grid coordinates, in the conventions of tess_geom.h.
 */
#ifndef TESS_LOCATE_H
#define TESS_LOCATE_H

#include <math.h>

#include "tess_grid.h"

/** Grid coordinates of one row at 1/λ = 1: those of a channel are a·inv_lambda and so
 *  on. The row is folded to w ≥ 0; `conjugate` says that its visibilities must be
 *  conjugated. `turns` is the phase of the image's centre (tess_geom_phase): a
 *  visibility is gridded times exp(−2πi turns), and degridded times exp(+2πi turns). */
typedef struct tess_row_scale {
    double a, b, w;
    double turns;
    bool conjugate;
} tess_row_scale;

/** Whether visibilities have such a phase. */
static inline bool tess_has_phase(const tess_grid_plan *plan)
{
    const tess_geom *geom = &plan->target.geom;
    return plan->opts.do_w || geom->l0 != geom->turned_l || geom->m0 != geom->turned_m;
}

static inline tess_row_scale tess_row_scale_of(const tess_grid_plan *plan,
                                               const double uvw_m[3])
{
    const tess_geom *geom = &plan->target.geom;
    const bool conjugate = uvw_m[2] < 0;
    const double sign = conjugate ? -1.0 : 1.0, scale_m = tess_geom_scale_m(geom);
    const tess_geom_phase *phase = &plan->target.phase;
    return (tess_row_scale){
        .a = -sign * uvw_m[0] * (geom->scale_rad * (double)plan->nu),
        .b = sign * uvw_m[1] * (scale_m * (double)plan->nv),
        .w = sign * uvw_m[2],
        .turns =
            sign * (uvw_m[0] * phase->l + uvw_m[1] * phase->m + uvw_m[2] * phase->nm1),
        .conjugate = conjugate};
}

/** w coordinate [planes] of w in wavelengths. */
static inline double tess_plane_coordinate(const tess_grid_plan *plan, double w_lambda)
{
    return (w_lambda - plan->w_first_lambda) / plan->w_step_lambda;
}

/** First cell of the footprint around coordinate g on a periodic axis of n cells, in
 *  [0, n). An image on pixels is periodic in u and v, so coordinates beyond the grid
 *  wrap around exactly (prediction needs that; imaging ignores such samples). */
static inline int64_t tess_footprint_start(double g, int support, int64_t n)
{
    const double start = ceil(g - 0.5 * support), period = (double)n;
    return (int64_t)(start - period * floor(start / period));
}

/** First plane of the footprint around plane coordinate g, within the plan's planes. */
static inline int64_t tess_plane_start(const tess_grid_plan *plan, double g)
{
    if (!plan->opts.do_w) return 0;
    const int64_t start = (int64_t)ceil(g - 0.5 * plan->w_support);
    const int64_t last = plan->num_planes - plan->w_support;
    return start < 0 ? 0 : start > last ? last : start;
}

#endif
