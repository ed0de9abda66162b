/** @file gcf_scene.h
 *  Points, grids and tables that strategies of gridding are compared on; what they
 * find, and how far that may be off.
 */
#ifndef TESS_TEST_GCF_SCENE_H
#define TESS_TEST_GCF_SCENE_H

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "tess_study.h"

enum { NU = 230, NV = 201, POINTS = 700, OUTSIDE = 5 };

typedef enum order {
    RANDOM,  /* anywhere, in any order */
    CROWDED, /* most in the middle */
    SORTED,  /* by w, then along u */
    NUM_ORDERS,
    TRACKS = NUM_ORDERS /* seven, one after another */
} order;

/* The same points and grid in both precisions; taps of both are those of single
 * precision, so that what differs is the arithmetic. */
typedef struct scene {
    int num_pol;
    double u[POINTS], v[POINTS], w[POINTS];
    double *vis, *cells; /* inputs: of gridding, of degridding */
} scene;

/* Three planes, of which the middle one is no sum of a few products. */
static inline void mixed_kernel(const void *context, int plane, double x, double y,
                                double value[2])
{
    const double r2 = x * x + y * y;
    (void)context;
    value[0] = plane == 1 ? sin(17 * x * y + 3 * r2) : exp(-0.1 * r2);
    value[1] = plane == 2 ? cos(x) * cos(y) : 0;
}

static inline int by_w(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (x[2] > y[2]) - (x[2] < y[2]);
}

static inline scene make_scene(order how, int num_pol)
{
    draw random = {.state = 7 + (uint64_t)how};
    scene s = {.num_pol = num_pol};
    double point[POINTS][3];
    for (int k = 0; k < POINTS; ++k) {
        const bool near = how == CROWDED && k % 8 != 0;
        point[k][0] =
            near ? 110 + 5 * draw_normal(&random) : draw_uniform(&random, 30, 200);
        point[k][1] =
            near ? 100 + 5 * draw_normal(&random) : draw_uniform(&random, 30, 170);
        point[k][2] = draw_uniform(&random, -1000, 1000);
        if (how == TRACKS) {
            const double along = k % 100 * 0.01, radius = 20 + 10 * (k / 100);
            point[k][0] = 115 + radius * cos(along);
            point[k][1] = 100 + 0.8 * radius * sin(along);
            point[k][2] = 100 * (k / 100) + 50 * along;
        }
    }
    if (how == SORTED) qsort(point, POINTS, sizeof *point, by_w);
    for (int k = 0; k < POINTS; ++k) {
        s.u[k] = point[k][0];
        s.v[k] = point[k][1];
        s.w[k] = point[k][2];
    }
    /* footprints over each edge, far away, and no numbers at all */
    s.u[10] = 1;
    s.u[11] = NU - 1;
    s.v[12] = -3;
    s.v[13] = 1e300;
    s.w[14] = NAN;
    s.vis = malloc(sizeof(double) * 2 * POINTS * (size_t)num_pol);
    s.cells = malloc(sizeof(double) * 2 * NU * NV * (size_t)num_pol);
    for (int k = 0; k < 2 * POINTS * num_pol; ++k)
        s.vis[k] = (float)draw_uniform(&random, -1, 1);
    for (int k = 0; k < 2 * NU * NV * num_pol; ++k)
        s.cells[k] = (float)draw_uniform(&random, -1, 1);
    return s;
}

static inline void free_scene(scene *s)
{
    free(s->vis);
    free(s->cells);
}

/* W-kernels of 8 to 48 cells; in double precision with the taps of single. */
static inline tess_gcf *make_table(bool is_double)
{
    tess_gcf_opts opts;
    tess_gcf *gcf = NULL;
    tess_gcf_opts_default(&opts);
    opts.field_l = 0.15;
    opts.field_m = 0.12;
    opts.layout.num_planes = 6;
    opts.layout.w_max_lambda = 1000;
    opts.layout.is_double = is_double;
    assert_int_equal(tess_gcf_create(&opts, &gcf), TESS_OK);
    for (int64_t k = 0; is_double && k < 2 * gcf->num_values; ++k)
        ((double *)gcf->data)[k] = (double)(float)((double *)gcf->data)[k];
    return gcf;
}

static inline void *converted(const double *from, int64_t count, bool is_double)
{
    void *to = malloc((size_t)count * sizeof(double));
    for (int64_t k = 0; k < count; ++k)
        if (is_double)
            ((double *)to)[k] = from[k];
        else
            ((float *)to)[k] = (float)from[k];
    return to;
}

static inline double value_of(const void *array, bool is_double, int64_t at)
{
    return is_double ? ((const double *)array)[at] : (double)((const float *)array)[at];
}

/* Grid, or degrid, a scene; the result is the caller's. */
static inline void *result_of(const tess_gcf *gcf, const tess_study_opts *opts,
                              const scene *s, bool degrid, tess_gcf_report *report)
{
    const bool is_double = gcf->layout.is_double;
    tess_study_plan *plan = NULL;
    void *vis = converted(s->vis, 2 * POINTS * s->num_pol, is_double);
    void *cells = converted(s->cells, 2 * NU * NV * s->num_pol, is_double);
    if (!degrid) memset(cells, 0, sizeof(double) * 2 * NU * NV * (size_t)s->num_pol);
    const tess_gcf_points points = {.count = POINTS,
                                    .u = s->u,
                                    .v = s->v,
                                    .w = s->w,
                                    .vis = vis,
                                    .num_pol = s->num_pol};
    tess_gcf_cells grid = {.nu = NU, .nv = NV, .data = cells};
    assert_int_equal(tess_study_plan_create(gcf, opts, &plan), TESS_OK);
    if (degrid)
        assert_int_equal(tess_study_degrid(plan, &grid, &points, report), TESS_OK);
    else
        assert_int_equal(tess_study_grid(plan, &points, &grid, report), TESS_OK);
    tess_study_plan_destroy(plan);
    free(degrid ? cells : vis);
    return degrid ? vis : cells;
}

static inline double difference(const void *found, bool is_double,
                                const double *expected, int64_t count)
{
    double square = 0, norm = 0;
    for (int64_t k = 0; k < count; ++k) {
        const double d = value_of(found, is_double, k) - expected[k];
        square += d * d;
        norm += expected[k] * expected[k];
    }
    return sqrt(square / norm);
}

/* Relative rms of rounding: every result is a sum of at most `terms` products, each
 * rounded a few times, errors adding up like a random walk; with sums formed in one go
 * (and not in blocks) they grow with the root of the number of terms again. The factors
 * are rounded once more. */
static inline double rounding(bool is_double, double terms)
{
    return 4 * (is_double ? DBL_EPSILON : (double)FLT_EPSILON) * sqrt(terms);
}

/* Points that no strategy takes, of a crowded scene of two polarisations, are zero:
 * they are left out on both sides of an adjoint. */
static inline scene make_adjoint_scene(void)
{
    scene s = make_scene(CROWDED, 2);
    for (int k = 10; k < 10 + OUTSIDE; ++k)
        memset(s.vis + 4 * k, 0, 4 * sizeof *s.vis);
    return s;
}

/* ⟨G v, x⟩ = ⟨v, D x⟩ to rounding, of a table in double and such a scene. */
static inline void check_adjoint(const tess_gcf *gcf, const tess_study_opts *opts,
                                 const scene *s)
{
    double sum[2][2] = {{0}}, norm = 0;
    double *cells = result_of(gcf, opts, s, false, NULL);
    double *vis = result_of(gcf, opts, s, true, NULL);
    const double *pair[2][2] = {{cells, s->cells}, {s->vis, vis}};
    const int64_t count[2] = {NU * NV * 2, POINTS * 2};
    for (int side = 0; side < 2; ++side)
        for (int64_t k = 0; k < 2 * count[side]; k += 2) {
            const double *a = pair[side][0] + k, *b = pair[side][1] + k;
            sum[side][0] += a[0] * b[0] + a[1] * b[1];
            sum[side][1] += a[0] * b[1] - a[1] * b[0];
            norm += a[0] * a[0] + a[1] * a[1] + b[0] * b[0] + b[1] * b[1];
        }
    const double most = rounding(true, (double)NU * NV * 2) * norm;
    assert_true(fabs(sum[0][0] - sum[1][0]) < most);
    assert_true(fabs(sum[0][1] - sum[1][1]) < most);
    free(cells);
    free(vis);
}

#endif
