/* Strategies of gridding and degridding with tables of convolution functions: every
 * one, in both precisions, with 1, 2 and 4 polarisations, on random, crowded and sorted
 * points, against the serial one in double precision, on every instruction set;
 * adjointness; what is left out, refused, and not factored. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "tess_gcf_grid.h"
#include "tess_isa.h"

enum { NU = 230, NV = 201, POINTS = 700, OUTSIDE = 5 };

typedef enum order {
    RANDOM,  /* anywhere, in any order */
    CROWDED, /* most in the middle */
    SORTED,  /* by w, then along u */
    NUM_ORDERS
} order;

/* The same points and grid in both precisions; taps of both are those of single
 * precision, so that what differs is the arithmetic. */
typedef struct scene {
    int num_pol;
    double u[POINTS], v[POINTS], w[POINTS];
    double *vis, *cells; /* inputs: of gridding, of degridding */
} scene;

static int by_w(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (x[2] > y[2]) - (x[2] < y[2]);
}

static scene make_scene(order how, int num_pol)
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

static void free_scene(scene *s)
{
    free(s->vis);
    free(s->cells);
}

/* W-kernels of 8 to 48 cells; in double precision with the taps of single. */
static tess_gcf *make_table(bool is_double)
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

static void *converted(const double *from, int64_t count, bool is_double)
{
    void *to = malloc((size_t)count * sizeof(double));
    for (int64_t k = 0; k < count; ++k)
        if (is_double)
            ((double *)to)[k] = from[k];
        else
            ((float *)to)[k] = (float)from[k];
    return to;
}

static double value_of(const void *array, bool is_double, int64_t at)
{
    return is_double ? ((const double *)array)[at] : (double)((const float *)array)[at];
}

/* Grid, or degrid, a scene; the result is the caller's. */
static void *result_of(const tess_gcf *gcf, const tess_gcf_grid_opts *opts,
                       const scene *s, bool degrid, tess_gcf_report *report)
{
    const bool is_double = gcf->layout.is_double;
    tess_gcf_plan *plan = NULL;
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
    assert_int_equal(tess_gcf_plan_create(gcf, opts, &plan), TESS_OK);
    if (degrid)
        assert_int_equal(tess_gcf_degrid(plan, &grid, &points, report), TESS_OK);
    else
        assert_int_equal(tess_gcf_grid(plan, &points, &grid, report), TESS_OK);
    tess_gcf_plan_destroy(plan);
    free(degrid ? cells : vis);
    return degrid ? vis : cells;
}

static double difference(const void *found, bool is_double, const double *expected,
                         int64_t count)
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
static double rounding(bool is_double, double terms)
{
    return 4 * (is_double ? DBL_EPSILON : (double)FLT_EPSILON) * sqrt(terms);
}

static void compare_strategies(order how, int num_pol)
{
    const int64_t count[2] = {2 * NU * NV * num_pol, 2 * POINTS * num_pol};
    scene s = make_scene(how, num_pol);
    tess_gcf *table[2] = {make_table(false), make_table(true)};
    for (int degrid = 0; degrid < 2; ++degrid) {
        tess_gcf_grid_opts opts;
        tess_gcf_report first, report;
        tess_gcf_grid_opts_default(&opts);
        opts.strategy = TESS_GCF_SERIAL;
        double *expected = result_of(table[1], &opts, &s, degrid, &first);
        assert_int_equal(first.left_out, OUTSIDE);
        for (int strategy = 0; strategy < TESS_GCF_NUM_STRATEGIES; ++strategy)
            for (int is_double = 0; is_double < 2; ++is_double)
                for (int threads = 1; threads <= 3; threads += 2) {
                    opts.strategy = (tess_gcf_strategy)strategy;
                    opts.threads = threads;
                    opts.factor_error = is_double ? 1e-10 : 1e-5;
                    opts.max_rank = 12;
                    opts.least_cells = 0;
                    void *found =
                        result_of(table[is_double], &opts, &s, degrid, &report);
                    const bool factored = strategy == TESS_GCF_FACTORED;
                    /* taps rounded to single precision do not factor beyond that */
                    const double error = factored ? 1e-5 : 0;
                    const double most =
                        rounding(is_double, degrid ? 48 * 48 : POINTS) + error;
                    const double off =
                        difference(found, is_double, expected, count[degrid]);
                    if (off >= most)
                        print_message("%s %s %d pols, order %d, double %d, threads %d: "
                                      "%g, not %g\n",
                                      tess_gcf_strategy_name(opts.strategy),
                                      degrid ? "degrid" : "grid", num_pol, how,
                                      is_double, threads, off, most);
                    assert_true(off < most);
                    assert_int_equal(report.left_out, OUTSIDE);
                    assert_int_equal(report.point_cells, first.point_cells);
                    if (factored && !is_double)
                        assert_int_equal(report.points_factored, POINTS - OUTSIDE);
                    free(found);
                }
        free(expected);
    }
    for (int k = 0; k < 2; ++k)
        tess_gcf_destroy(table[k]);
    free_scene(&s);
}

static void strategies_agree(void **state)
{
    for (int how = 0; how < NUM_ORDERS; ++how)
        for (int num_pol = 1; num_pol <= 4; num_pol *= 2)
            compare_strategies((order)how, num_pol);
}

static void instruction_sets_agree(void **state)
{
    for (int isa = 0; isa < TESS_NUM_ISA; ++isa) {
        setenv("TESS_ISA", tess_isa_name((tess_isa)isa), 1);
        compare_strategies(CROWDED, 1);
        compare_strategies(RANDOM, 4);
    }
    unsetenv("TESS_ISA");
}

/* One point of which everything is known: the taps of its kernel lie around it. */
static void one_point_is_its_kernel(void **state)
{
    tess_gcf *gcf = make_table(true);
    scene s = make_scene(RANDOM, 1);
    tess_gcf_grid_opts opts;
    tess_gcf_grid_opts_default(&opts);
    opts.strategy = TESS_GCF_SERIAL;
    const double part[] = {0, 0.375, 0.5, 0.875, 0.99}; /* the last is the next cell */
    for (int k = 0; k < 20; ++k) {
        memset(s.vis, 0, sizeof(double) * 2 * POINTS);
        s.vis[2 * k + 60] = 2;
        s.vis[2 * k + 61] = -3;
        s.u[k + 30] = 100 + part[k % 5];
        s.v[k + 30] = 90 + part[k / 5 % 5];
        s.w[k + 30] = k % 2 ? -640 : 640; /* plane 4 */
        double *found = result_of(gcf, &opts, &s, false, NULL);
        const int support = gcf->plane[4].support;
        assert_true(gcf->plane[4].w_lambda == 640);
        for (int x = 0; x < NU; ++x)
            for (int y = 0; y < NV; ++y) {
                const int du = 8 * x - (int)floor(8 * s.u[k + 30] + 0.5);
                const int dv = 8 * y - (int)floor(8 * s.v[k + 30] + 0.5);
                double g[2] = {0, 0};
                /* taps lie in (−S/2, S/2] around the cell of the point */
                if (du > -4 * support && du <= 4 * support && dv > -4 * support &&
                    dv <= 4 * support)
                    tess_gcf_value(gcf, 4, du, dv, g);
                if (k % 2) g[1] = -g[1];
                const double *cell = found + 2 * (x * NV + y);
                assert_true(fabs(cell[0] - (2 * g[0] + 3 * g[1])) < 1e-14);
                assert_true(fabs(cell[1] - (2 * g[1] - 3 * g[0])) < 1e-14);
            }
        free(found);
    }
    free_scene(&s);
    tess_gcf_destroy(gcf);
}

/* ⟨G v, x⟩ = ⟨v, D x⟩, whatever the strategies on either side. */
static void degridding_is_the_adjoint(void **state)
{
    tess_gcf *gcf = make_table(true);
    scene s = make_scene(CROWDED, 2);
    for (int k = 10; k < 10 + OUTSIDE; ++k) /* left out of both */
        memset(s.vis + 4 * k, 0, 4 * sizeof *s.vis);
    for (int strategy = 0; strategy < TESS_GCF_NUM_STRATEGIES; ++strategy) {
        double sum[2][2] = {{0}}, norm = 0;
        tess_gcf_grid_opts opts;
        tess_gcf_grid_opts_default(&opts);
        opts.strategy = (tess_gcf_strategy)strategy;
        opts.threads = 2;
        opts.least_cells = 0;
        double *cells = result_of(gcf, &opts, &s, false, NULL);
        double *vis = result_of(gcf, &opts, &s, true, NULL);
        const double *pair[2][2] = {{cells, s.cells}, {s.vis, vis}};
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
    free_scene(&s);
    tess_gcf_destroy(gcf);
}

/* Kernels that products make up exactly, kernels that they do not, and a wide one. */
static void mixed_kernel(const void *context, int plane, double x, double y,
                         double value[2])
{
    const double r2 = x * x + y * y;
    value[0] = plane == 1 ? sin(17 * x * y + 3 * r2) : exp(-0.1 * r2);
    value[1] = plane == 2 ? cos(x) * cos(y) : 0;
}

static void what_does_not_factor_is_taken_from_the_table(void **state)
{
    const tess_gcf_layout layout = {.num_planes = 3,
                                    .w_max_lambda = 1000,
                                    .oversampling = 5,
                                    .is_double = true,
                                    .threads = 1};
    const int support[] = {8, 32, 48};
    tess_gcf *gcf = NULL;
    tess_gcf_plan *plan = NULL;
    tess_gcf_grid_opts opts;
    tess_gcf_report report;
    scene s = make_scene(CROWDED, 1);
    assert_int_equal(tess_gcf_create_from(&layout, support, mixed_kernel, NULL, &gcf),
                     TESS_OK);
    tess_gcf_grid_opts_default(&opts);
    opts.strategy = TESS_GCF_FACTORED;
    opts.least_cells = 0;
    opts.factor_error = 1e-7; /* of squares, whose sums are rounded to 1e-15 */
    assert_int_equal(tess_gcf_plan_create(gcf, &opts, &plan), TESS_OK);
    assert_int_equal(tess_gcf_plan_rank(plan, 0), 1);
    assert_int_equal(tess_gcf_plan_rank(plan, 1), 0);
    assert_int_equal(tess_gcf_plan_rank(plan, 2), 2);
    /* 3 kinds of lines, terms, offsets, taps with zeros around them */
    assert_int_equal(tess_gcf_plan_factor_bytes(plan),
                     16 * 3 * 5 * (1 * (8 + 48) + 2 * (48 + 48)));
    tess_gcf_plan_destroy(plan);
    for (int degrid = 0; degrid < 2; ++degrid) {
        opts.strategy = TESS_GCF_SERIAL;
        double *expected = result_of(gcf, &opts, &s, degrid, NULL);
        opts.strategy = TESS_GCF_FACTORED;
        double *found = result_of(gcf, &opts, &s, degrid, &report);
        assert_true(difference(found, true, expected,
                               degrid ? 2 * POINTS : 2 * NU * NV) < 1e-7);
        assert_true(report.points_factored > POINTS / 4 &&
                    report.points_factored < POINTS - POINTS / 8);
        free(found);
        free(expected);
    }
    free_scene(&s);
    tess_gcf_destroy(gcf);
}

/* Ranks of w-kernels grow slowly with accuracy; their products are as close as asked.
 */
static void w_kernels_factor(void **state)
{
    const double error[] = {1e-2, 1e-3, 1e-4, 1e-6};
    tess_gcf *gcf = make_table(true);
    int before = 0;
    for (size_t k = 0; k < sizeof error / sizeof *error; ++k) {
        tess_gcf_plan *plan = NULL;
        tess_gcf_grid_opts opts;
        tess_gcf_grid_opts_default(&opts);
        opts.strategy = TESS_GCF_FACTORED;
        opts.factor_error = error[k];
        opts.least_cells = 0;
        assert_int_equal(tess_gcf_plan_create(gcf, &opts, &plan), TESS_OK);
        const int rank = tess_gcf_plan_rank(plan, 5);
        print_message("%g: rank %d of %d cells\n", error[k], rank, gcf->max_support);
        assert_true(rank >= before && rank >= 1 && rank <= 4);
        assert_true(tess_gcf_plan_factor_bytes(plan) < tess_gcf_bytes(gcf) / 2);
        before = rank;
        tess_gcf_plan_destroy(plan);
        /* narrow kernels are left to their table */
        opts.least_cells = 41;
        assert_int_equal(tess_gcf_plan_create(gcf, &opts, &plan), TESS_OK);
        assert_int_equal(tess_gcf_plan_rank(plan, 5), 0);
        tess_gcf_plan_destroy(plan);
    }
    tess_gcf_destroy(gcf);
}

static void wrong_options_are_refused(void **state)
{
    tess_gcf *gcf = make_table(false);
    tess_gcf_plan *plan = NULL;
    for (int k = 0; k < 4; ++k) {
        tess_gcf_grid_opts opts;
        tess_gcf_grid_opts_default(&opts);
        opts.strategy = TESS_GCF_FACTORED;
        if (k == 0) opts.strategy = TESS_GCF_NUM_STRATEGIES;
        if (k == 1) opts.threads = 0;
        if (k == 2) opts.factor_error = 0;
        if (k == 3) opts.max_rank = 13;
        assert_int_equal(tess_gcf_plan_create(gcf, &opts, &plan), TESS_ERR_USAGE);
        assert_null(plan);
        tess_error_clear();
    }
    tess_gcf_grid_opts opts;
    tess_gcf_grid_opts_default(&opts);
    assert_int_equal(tess_gcf_plan_create(gcf, &opts, &plan), TESS_OK);
    const tess_gcf_points three = {.num_pol = 3}, none = {.num_pol = 1};
    tess_gcf_cells cells = {.nu = 8, .nv = 8}, empty = {.nu = 0, .nv = 8};
    tess_gcf_report report;
    assert_int_equal(tess_gcf_grid(plan, &three, &cells, NULL), TESS_ERR_USAGE);
    tess_error_clear();
    assert_int_equal(tess_gcf_grid(plan, &none, &empty, NULL), TESS_ERR_USAGE);
    tess_error_clear();
    assert_int_equal(tess_gcf_grid(plan, &none, &cells, &report), TESS_OK);
    assert_int_equal(report.left_out, 0);
    tess_gcf_plan_destroy(plan);
    tess_gcf_plan_destroy(NULL);
    tess_gcf_destroy(gcf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_point_is_its_kernel),
        cmocka_unit_test(strategies_agree),
        cmocka_unit_test(instruction_sets_agree),
        cmocka_unit_test(degridding_is_the_adjoint),
        cmocka_unit_test(what_does_not_factor_is_taken_from_the_table),
        cmocka_unit_test(w_kernels_factor),
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
