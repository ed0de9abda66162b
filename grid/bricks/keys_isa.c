/* Computes brick keys with one instruction set; see keys.h. All is computed in double
 * precision, so that the loop vectorises, and without FMA contraction, so that all
 * instruction sets and the functions of locate.h put a footprint into the same brick.
 */
#include "keys.h"

#include "tess_sincos.h"

#ifndef KEY_TABLE /* the portable loops, and the choice for this processor */
#define KEY_TABLE key_table_portable
#include "tess_isa.h"

const key_table *key_table_best(void)
{
    static const key_table *const table[TESS_NUM_ISA] = TESS_ISA_TABLES(key_table);
    return table[tess_isa_best()];
}
#endif

/* An axis of the grid. Footprints start between 0 and period − 1. */
typedef struct axis {
    double half_support, period, per_period;
} axis;

static inline double round_up(double x)
{
    const double near = tess_nearest(x);
    return near < x ? near + 1.0 : near;
}

/* Divides whole numbers, and rounds the quotient down. Adding a half to the dividend
 * keeps the quotient away from whole numbers. */
static inline double divide(double x, double per_divisor)
{
    return tess_nearest((x + 0.5) * per_divisor - 0.5);
}

static inline double start_on(const axis *on, double coordinate)
{
    const double start = round_up(coordinate - on->half_support);
    return start - on->period * divide(start, on->per_period);
}

static void keys_of_row(const tess_grid_plan *plan, const tess_row_scale *row,
                        const double *restrict inv_lambda, int count,
                        double *restrict key)
{
    const double half = 0.5 * plan->footprint, per_tile = 1.0 / plan->tile;
    const axis u = {half, (double)plan->nu, 1.0 / (double)plan->nu};
    const axis v = {half, (double)plan->nv, 1.0 / (double)plan->nv};
    const double tiles_v = (double)plan->tiles_v;
    const double a = row->a, b = row->b, w = row->w;
    for (int k = 0; k < count; ++k)
        key[k] = divide(start_on(&u, a * inv_lambda[k]), per_tile) * tiles_v +
                 divide(start_on(&v, b * inv_lambda[k]), per_tile);
    if (plan->num_blocks == 1) return;
    const double half_w = 0.5 * plan->w_support, per_block = 1.0 / plan->block_planes;
    const double first = plan->w_first_lambda, step = plan->w_step_lambda;
    const double last = plan->num_planes - plan->w_support;
    const double tiles = (double)plan->tiles_u * tiles_v;
    for (int k = 0; k < count; ++k) {
        double plane = round_up((w * inv_lambda[k] - first) / step - half_w);
        plane = plane < 0 ? 0 : plane;
        plane = plane > last ? last : plane;
        key[k] += divide(plane, per_block) * tiles;
    }
}

const key_table KEY_TABLE = {.row = keys_of_row};
