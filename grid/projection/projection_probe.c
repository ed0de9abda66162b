/* Measures the error of w-projection against the direct sum, on visibilities of a run.
 */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "locate.h"
#include "projection_plan.h"
#include "tess_const.h"
#include "tess_mem.h"
#include "tess_samples.h"

enum {
    SIDE = 16,      /* pixels along each axis */
    MOST_VIS = 256, /* visibilities */
    AT_ONCE = 16    /* of these, gridded together */
};

/* The number of cells of footprints that are looked at, times SIDE, stays below this.
 * The work takes a second or so. */
static const double MOST_WORK = 3e8;

typedef double complex value;

/* Visibilities, each on cells of its own, one below the other: their places in their
 * cells, and their w. */
typedef struct probe_set {
    int count;
    double u[AT_ONCE], v[AT_ONCE], w[AT_ONCE];
} probe_set;

/* Pixels, and what visibilities make of them. */
typedef struct probe {
    const tess_grid_plan *plan;
    double p[2][SIDE];     /* pixel coordinates, in fields */
    double taper[2][SIDE]; /* T */
    int64_t lines;
    void *cells;    /* [AT_ONCE][lines][lines] of the plan's precision */
    value *partial; /* [lines][SIDE] */
} probe;

static tess_status probe_begin(const tess_grid_plan *plan, probe *of)
{
    tess_status status = TESS_OK;
    const int64_t size[2] = {plan->target.geom.nx, plan->target.geom.ny},
                  grid[2] = {plan->nu, plan->nv};
    of->plan = plan;
    of->lines = plan->footprint;
    for (int axis = 0; axis < 2; ++axis) {
        for (int k = 0; k < SIDE; ++k) {
            /* there is one in each of SIDE parts, and they are not at the same place in
             * all parts */
            const int64_t pixel =
                (size[axis] * (8 * k + (5 * k + 3 * axis) % 8)) / (8 * SIDE);
            of->p[axis][k] = (double)(pixel - size[axis] / 2) / (double)grid[axis];
        }
        projection_taper(plan->projection, axis, SIDE, of->p[axis], of->taper[axis]);
    }
    of->cells = tess_alloc(AT_ONCE * of->lines * of->lines, plan->is_double ? 16 : 8);
    of->partial = tess_alloc(of->lines * SIDE, sizeof *of->partial);
    if (!of->cells || !of->partial)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory to measure w-projection's error");
cleanup:
    return status;
}

static void probe_end(probe *of)
{
    tess_free(of->cells);
    tess_free(of->partial);
}

static value cell_at(const probe *of, int64_t k)
{
    return of->plan->is_double ? ((const value *)of->cells)[k]
                               : (value)((const float complex *)of->cells)[k];
}

/* Computes exp(−2πi turns). */
static value turn_of(double turns)
{
    return CMPLX(cos(TESS_TWO_PI * turns), -sin(TESS_TWO_PI * turns));
}

/* Computes the sum over cells of exp(−2πi (x p + y q)), with x and y counted from the
 * visibility's own cell. */
static void transform(probe *of, int number, value out[SIDE][SIDE])
{
    const int64_t first = number * of->lines * of->lines;
    value turn[SIDE];
    const int64_t middle = of->lines / 2 - 1;
    for (int64_t x = 0; x < of->lines; ++x)
        for (int j = 0; j < SIDE; ++j)
            of->partial[x * SIDE + j] = 0;
    for (int64_t y = 0; y < of->lines; ++y) {
        for (int j = 0; j < SIDE; ++j)
            turn[j] = turn_of((double)(y - middle) * of->p[1][j]);
        for (int64_t x = 0; x < of->lines; ++x) {
            const value cell = cell_at(of, first + x * of->lines + y);
            if (cell == 0) continue;
            for (int j = 0; j < SIDE; ++j)
                of->partial[x * SIDE + j] += cell * turn[j];
        }
    }
    memset(out, 0, SIDE * sizeof *out);
    for (int64_t x = 0; x < of->lines; ++x)
        for (int i = 0; i < SIDE; ++i) {
            const value along = turn_of((double)(x - middle) * of->p[0][i]);
            for (int j = 0; j < SIDE; ++j)
                out[i][j] += along * of->partial[x * SIDE + j];
        }
}

static double middle_of(const probe *of)
{
    return (double)(of->lines / 2 - 1);
}

/* Grids a set. */
static tess_status grid_set(probe *of, const probe_set *set)
{
    tess_status status = TESS_OK;
    const tess_grid_plan *plan = of->plan;
    double u[AT_ONCE], v[AT_ONCE], vis[2 * AT_ONCE];
    float single[2 * AT_ONCE];
    for (int k = 0; k < set->count; ++k) {
        u[k] = set->u[k] + middle_of(of) + (double)(k * of->lines);
        v[k] = set->v[k] + middle_of(of);
        projection_phase(plan->projection, set->w[k], vis + 2 * k);
        single[2 * k] = (float)vis[2 * k];
        single[2 * k + 1] = (float)vis[2 * k + 1];
    }
    const tess_gcf_points points = {.count = set->count,
                                    .u = u,
                                    .v = v,
                                    .w = set->w,
                                    .vis =
                                        plan->is_double ? (void *)vis : (void *)single,
                                    .num_pol = 1};
    tess_gcf_cells cells = {
        .nu = set->count * of->lines, .nv = of->lines, .data = of->cells};
    memset(of->cells, 0, (size_t)(cells.nu * cells.nv) * (plan->is_double ? 16 : 8));
    TESS_TRY(tess_gcf_grid(plan->projection->gridder, &points, &cells, NULL));
cleanup:
    return status;
}

/* Computes the error of a visibility of a set that was gridded. */
static void probe_one(probe *of, const probe_set *set, int number,
                      tess_projection_error *error)
{
    const tess_grid_plan *plan = of->plan;
    value found[SIDE][SIDE];
    transform(of, number, found);
    for (int i = 0; i < SIDE; ++i)
        for (int j = 0; j < SIDE; ++j) {
            const double l =
                of->p[0][i] * (double)plan->nu * plan->target.geom.scale_rad;
            const double m =
                of->p[1][j] * (double)plan->nv * tess_geom_scale_m(&plan->target.geom);
            const double r2 = l * l + m * m;
            if (r2 >= 1) continue;
            const value exact =
                turn_of(set->u[number] * of->p[0][i] + set->v[number] * of->p[1][j] +
                        set->w[number] * tess_geom_nm1(r2));
            const value is = found[i][j] / (of->taper[0][i] * of->taper[1][j]);
            error->error += pow(cabs(is - exact), 2);
            error->norm += 1;
        }
    ++error->num_vis;
}

/* Computes the errors of a set, which is empty afterwards. */
static tess_status probe_all(probe *of, probe_set *set, tess_projection_error *error)
{
    tess_status status = TESS_OK;
    if (set->count == 0) return TESS_OK;
    TESS_TRY(grid_set(of, set));
    for (int k = 0; k < set->count; ++k)
        probe_one(of, set, k, error);
    set->count = 0;
cleanup:
    return status;
}

static bool counts(const tess_samples *samples, int64_t sample)
{
    const int64_t at = sample * samples->num_weight;
    return tess_samples_weight(samples, at) > 0;
}

static tess_status measure(const tess_grid_plan *plan, const tess_samples *samples,
                           int most, bool weighted, tess_projection_error *error)
{
    tess_status status = TESS_OK;
    probe of = {0};
    probe_set set = {0};
    TESS_TRY(probe_begin(plan, &of));
    for (int k = 0; k < most; ++k) {
        const int64_t row = samples->num_rows * k / most;
        if (samples->num_chan[row] == 0) continue;
        const int32_t chan = (int32_t)((k * 7919) % samples->num_chan[row]);
        if (weighted && !counts(samples, samples->vis_first[row] + chan)) continue;
        const tess_row_scale scale = tess_row_scale_of(plan, samples->uvw_m + 3 * row);
        const double inv = samples->inv_lambda[samples->chan_base[row] + chan];
        const double a = scale.a * inv, b = scale.b * inv;
        set.u[set.count] = a - floor(a);
        set.v[set.count] = b - floor(b);
        set.w[set.count++] = scale.w * inv;
        if (set.count == AT_ONCE) TESS_TRY(probe_all(&of, &set, error));
    }
    TESS_TRY(probe_all(&of, &set, error));
cleanup:
    probe_end(&of);
    return status;
}

tess_status tess_projection_measure(const tess_grid_plan *plan,
                                    const tess_samples *samples, bool weighted,
                                    tess_projection_error *error)
{
    tess_status status = TESS_OK;
    tess_samples some = {0};
    const double each = (double)plan->footprint * plan->footprint * SIDE;
    const int most = (int)fmin(fmax(MOST_WORK / each, 8), MOST_VIS);
    *error = (tess_projection_error){0};
    if (samples->num_rows == 0) return TESS_OK;
    if (samples->resident) {
        TESS_TRY(samples->resident->excerpt(samples->resident, most, &some));
        samples = &some;
    }
    TESS_TRY(measure(plan, samples, most, weighted, error));
cleanup:
    tess_samples_free(&some);
    return status;
}
