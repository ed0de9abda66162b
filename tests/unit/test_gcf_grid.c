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

#include "gcf_scene.h"
#include "tess_const.h"
#include "tess_isa.h"

static bool is_there(int strategy, bool degrid)
{
    return strategy != TESS_STUDY_COMPUTED && /* of formulas alone */
           tess_study_there(TESS_GCF_CPU, (tess_study_strategy)strategy, degrid);
}

static void compare_strategies(order how, int num_pol)
{
    const int64_t count[2] = {2 * NU * NV * num_pol, 2 * POINTS * num_pol};
    scene s = make_scene(how, num_pol);
    tess_gcf *table[2] = {make_table(false), make_table(true)};
    for (int degrid = 0; degrid < 2; ++degrid) {
        tess_study_opts opts;
        tess_gcf_report first, report;
        tess_study_opts_default(&opts);
        opts.strategy = TESS_STUDY_SERIAL;
        double *expected = result_of(table[1], &opts, &s, degrid, &first);
        assert_int_equal(first.left_out, OUTSIDE);
        for (int strategy = 0; strategy < TESS_STUDY_NUM_STRATEGIES; ++strategy)
            for (int is_double = 0; is_double < 2; ++is_double)
                for (int threads = 1; threads <= 3; threads += 2) {
                    if (!is_there(strategy, degrid)) continue;
                    opts.strategy = (tess_study_strategy)strategy;
                    opts.threads = threads;
                    opts.factor_error = is_double ? 1e-10 : 1e-5;
                    opts.max_rank = 12;
                    opts.least_cells = 0;
                    void *found =
                        result_of(table[is_double], &opts, &s, degrid, &report);
                    const bool factored = strategy == TESS_STUDY_FACTORED;
                    /* taps rounded to single precision do not factor beyond that */
                    const double error = factored ? 1e-5 : 0;
                    const double most =
                        rounding(is_double, degrid ? 48 * 48 : POINTS) + error;
                    const double off =
                        difference(found, is_double, expected, count[degrid]);
                    if (off >= most)
                        print_message("%s %s %d pols, order %d, double %d, threads %d: "
                                      "%g, not %g\n",
                                      tess_study_name(opts.strategy),
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
    for (int how = 0; how <= TRACKS; ++how)
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
    tess_study_opts opts;
    tess_study_opts_default(&opts);
    opts.strategy = TESS_STUDY_SERIAL;
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

/* Leans to one side on either axis. */
static void leaning_kernel(const void *context, int plane, double x, double y,
                           double value[2])
{
    value[0] = exp(-0.02 * (x * x + y * y) + 0.05 * x - 0.03 * y) + 0.1 * plane;
    value[1] = sin(0.3 * x + 0.2 * y + plane);
}

static tess_gcf *leaning_table(int oversampling, bool is_double)
{
    const tess_gcf_layout layout = {.num_planes = 3,
                                    .w_max_lambda = 1000,
                                    .spacing = TESS_GCF_LINEAR,
                                    .oversampling = oversampling,
                                    .is_uneven = true,
                                    .is_double = is_double,
                                    .threads = 1};
    const int support[] = {8, 16, 40};
    tess_gcf *gcf = NULL;
    assert_int_equal(tess_gcf_create_from(&layout, support, leaning_kernel, NULL, &gcf),
                     TESS_OK);
    return gcf;
}

/* Kernels that are not even lie around their points as they are, those of w < 0 turned
 * by half a circle. */
static void uneven_kernels_keep_their_side(void **state)
{
    scene s = make_scene(RANDOM, 1);
    tess_study_opts opts;
    tess_study_opts_default(&opts);
    opts.strategy = TESS_STUDY_SERIAL;
    for (int k = 0; k < 24; ++k) {
        tess_gcf *gcf = leaning_table(k % 3 == 0 ? 1 : 6, true);
        const int q = gcf->layout.oversampling, sign = k & 1 ? -1 : 1;
        const double part[] = {0, 0.34, 0.5, 0.99}; /* the last is the next cell */
        memset(s.vis, 0, sizeof(double) * 2 * POINTS);
        s.vis[60] = 1;
        s.u[30] = 100 + part[k % 4];
        s.v[30] = 90 + part[k / 4 % 4];
        s.w[30] = sign * 500; /* plane 1 */
        double *found = result_of(gcf, &opts, &s, false, NULL);
        for (int x = 0; x < NU; ++x)
            for (int y = 0; y < NV; ++y) {
                const int du = q * x - (int)floor(q * s.u[30] + 0.5);
                const int dv = q * y - (int)floor(q * s.v[30] + 0.5);
                double g[2] = {0, 0};
                if (du > -8 * q && du <= 8 * q && dv > -8 * q && dv <= 8 * q)
                    leaning_kernel(NULL, 1, sign * du / (double)q,
                                   sign * dv / (double)q, g);
                const double *cell = found + 2 * (x * NV + y);
                assert_true(fabs(cell[0] - g[0]) < 1e-14);
                assert_true(fabs(cell[1] - sign * g[1]) < 1e-14);
            }
        free(found);
        tess_gcf_destroy(gcf);
    }
    free_scene(&s);
}

/* Every strategy, and the table read by value. */
static void uneven_kernels_by_all_strategies(void **state)
{
    tess_gcf *gcf = leaning_table(TESS_GCF_MAX_UNEVEN, true);
    const int q = gcf->layout.oversampling;
    scene s = make_scene(CROWDED, 2);
    tess_study_plan *plan = NULL;
    for (int x = -20 * q; x <= 20 * q; x += 37) {
        double found[2], expected[2];
        tess_gcf_value(gcf, 2, x, -x, found);
        leaning_kernel(NULL, 2, (double)x / q, (double)-x / q, expected);
        assert_true(fabs(found[0] - expected[0]) + fabs(found[1] - expected[1]) <
                    1e-14);
    }
    for (int k = 0; k < 2 * TESS_STUDY_NUM_STRATEGIES; ++k) {
        const bool degrid = k % 2;
        tess_study_opts opts;
        tess_study_opts_default(&opts);
        opts.strategy = TESS_STUDY_SERIAL;
        opts.threads = 2;
        opts.least_cells = 0;
        double *expected = result_of(gcf, &opts, &s, degrid, NULL);
        opts.strategy = (tess_study_strategy)(k / 2);
        if (is_there(k / 2, degrid)) {
            double *found = result_of(gcf, &opts, &s, degrid, NULL);
            assert_true(difference(found, true, expected,
                                   4 * (int64_t)(degrid ? POINTS : NU * NV)) <
                        rounding(true, 40 * 40));
            free(found);
            if (!degrid) check_adjoint(gcf, &opts, &s);
        }
        free(expected);
    }
    tess_study_opts opts;
    tess_study_opts_default(&opts);
    opts.strategy = TESS_STUDY_SERIAL;
    opts.probes.cube = true; /* of quarters */
    assert_int_equal(tess_study_plan_create(gcf, &opts, &plan), TESS_ERR_USAGE);
    tess_error_clear();
    free_scene(&s);
    tess_gcf_destroy(gcf);
}

/* ⟨G v, x⟩ = ⟨v, D x⟩, whatever the strategies on either side. */
static void degridding_is_the_adjoint(void **state)
{
    tess_gcf *gcf = make_table(true);
    scene s = make_adjoint_scene();
    for (int strategy = 0; strategy < TESS_STUDY_NUM_STRATEGIES; ++strategy) {
        tess_study_opts opts;
        tess_study_opts_default(&opts);
        opts.strategy = (tess_study_strategy)strategy;
        if (!is_there(strategy, false)) continue;
        opts.threads = 2;
        opts.least_cells = 0;
        check_adjoint(gcf, &opts, &s);
    }
    free_scene(&s);
    tess_gcf_destroy(gcf);
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
    tess_study_plan *plan = NULL;
    tess_study_opts opts;
    tess_gcf_report report;
    scene s = make_scene(CROWDED, 1);
    assert_int_equal(tess_gcf_create_from(&layout, support, mixed_kernel, NULL, &gcf),
                     TESS_OK);
    tess_study_opts_default(&opts);
    opts.strategy = TESS_STUDY_FACTORED;
    opts.least_cells = 0;
    opts.factor_error = 1e-7; /* of squares, whose sums are rounded to 1e-15 */
    assert_int_equal(tess_study_plan_create(gcf, &opts, &plan), TESS_OK);
    assert_int_equal(tess_gcf_plan_rank(tess_study_core(plan), 0), 1);
    assert_int_equal(tess_gcf_plan_rank(tess_study_core(plan), 1), 0);
    assert_int_equal(tess_gcf_plan_rank(tess_study_core(plan), 2), 2);
    /* 2 kinds of lines, terms, offsets, taps with zeros around them */
    assert_int_equal(tess_gcf_plan_factor_bytes(tess_study_core(plan)),
                     16 * 2 * 5 * (1 * (8 + 32) + 2 * (48 + 32)));
    tess_study_plan_destroy(plan);
    for (int degrid = 0; degrid < 2; ++degrid) {
        opts.strategy = TESS_STUDY_SERIAL;
        double *expected = result_of(gcf, &opts, &s, degrid, NULL);
        opts.strategy = TESS_STUDY_FACTORED;
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
        tess_study_plan *plan = NULL;
        tess_study_opts opts;
        tess_study_opts_default(&opts);
        opts.strategy = TESS_STUDY_FACTORED;
        opts.factor_error = error[k];
        opts.least_cells = 0;
        assert_int_equal(tess_study_plan_create(gcf, &opts, &plan), TESS_OK);
        const int rank = tess_gcf_plan_rank(tess_study_core(plan), 5);
        print_message("%g: rank %d of %d cells\n", error[k], rank, gcf->max_support);
        assert_true(rank >= before && rank >= 1 && rank <= 4);
        assert_true(tess_gcf_plan_factor_bytes(tess_study_core(plan)) <
                    tess_gcf_bytes(gcf) / 2);
        before = rank;
        tess_study_plan_destroy(plan);
        /* narrow kernels are left to their table */
        opts.least_cells = 41;
        assert_int_equal(tess_study_plan_create(gcf, &opts, &plan), TESS_OK);
        assert_int_equal(tess_gcf_plan_rank(tess_study_core(plan), 5), 0);
        tess_study_plan_destroy(plan);
    }
    tess_gcf_destroy(gcf);
}

/* Products of the widest plane of a field's w-kernels, for all offsets together, by the
 * error asked for; kilobytes where the table has megabytes. */
static void check_ranks(double field_deg, int half_support)
{
    enum { PLANES = 4, WIDEST = 84 };
    static const struct {
        double error;
        int most;
    } rank[] = {{1e-2, 1}, {1e-3, 2}, {1e-4, 2}, {1e-6, 3}};
    const double field = field_deg * TESS_RAD_PER_DEG;
    tess_gcf_opts opts;
    tess_gcf *gcf = NULL;
    tess_gcf_opts_default(&opts);
    opts.field_l = opts.field_m = field;
    opts.layout.num_planes = PLANES;
    opts.layout.is_double = true;
    /* fringes reach w·field²/2 cells, and more beyond the field, where T has not yet
     * fallen; the taper's own cells besides */
    opts.layout.w_max_lambda = 1.5 * (half_support - 4) / (field * field);
    assert_int_equal(tess_gcf_create(&opts, &gcf), TESS_OK);
    assert_in_range(gcf->max_support / 2, half_support - 4, WIDEST);
    assert_true(tess_gcf_bytes(gcf) > 1 << 20);
    for (size_t k = 0; k < sizeof rank / sizeof *rank; ++k) {
        tess_study_opts with;
        tess_study_plan *plan = NULL;
        tess_study_opts_default(&with);
        with.strategy = TESS_STUDY_FACTORED;
        with.factor_error = rank[k].error;
        with.least_cells = 0;
        assert_int_equal(tess_study_plan_create(gcf, &with, &plan), TESS_OK);
        const int found = tess_gcf_plan_rank(tess_study_core(plan), PLANES - 1);
        print_message("%g deg, half-support %d, to %g: rank %d, %lld KiB of %lld\n",
                      field_deg, gcf->max_support / 2, rank[k].error, found,
                      (long long)tess_gcf_plan_factor_bytes(tess_study_core(plan)) /
                          1024,
                      (long long)tess_gcf_bytes(gcf) / 1024);
        assert_in_range(found, 1, rank[k].most);
        assert_true(tess_gcf_plan_factor_bytes(tess_study_core(plan)) < 300 << 10);
        assert_true(tess_gcf_plan_factor_bytes(tess_study_core(plan)) <
                    tess_gcf_bytes(gcf) / 10);
        tess_study_plan_destroy(plan);
    }
    tess_gcf_destroy(gcf);
}

/* Half-supports of 24 to 83 cells, fields of 5° to 10°. */
static void ranks_are_low(void **state)
{
    static const double field_deg[] = {5, 7, 10};
    static const int half_support[] = {24, 48, 83};
    for (int f = 0; f < 3; ++f)
        for (int s = 0; s < 3; ++s)
            check_ranks(field_deg[f], half_support[s]);
}

/* Planes of small w are narrower than their table, as far as the error allows; the
 * result keeps to it. */
static void factors_end_where_little_is_left(void **state)
{
    const double error[] = {1e-2, 1e-3, 1e-5};
    tess_gcf_opts wide;
    tess_gcf *gcf = NULL;
    scene s = make_scene(RANDOM, 1);
    tess_gcf_opts_default(&wide);
    wide.field_l = wide.field_m = 0.15;
    wide.layout.num_planes = 6;
    wide.layout.w_max_lambda = 1000;
    wide.layout.is_double = true;
    wide.min_support = wide.max_support = 48;
    assert_int_equal(tess_gcf_create(&wide, &gcf), TESS_OK);
    for (int degrid = 0; degrid < 2; ++degrid) {
        int before = 0;
        tess_study_opts opts;
        tess_study_opts_default(&opts);
        opts.strategy = TESS_STUDY_SERIAL;
        double *expected = result_of(gcf, &opts, &s, degrid, NULL);
        for (int k = 0; k < 3; ++k) {
            tess_study_plan *plan = NULL;
            opts.strategy = TESS_STUDY_FACTORED;
            opts.least_cells = 0;
            opts.threads = 2;
            opts.factor_error = error[k];
            assert_int_equal(tess_study_plan_create(gcf, &opts, &plan), TESS_OK);
            const int first = tess_gcf_plan_support(tess_study_core(plan), 0);
            assert_true(first >= 8 && first < 48 && first >= before && first % 8 == 0);
            assert_true(tess_gcf_plan_support(tess_study_core(plan), 5) > first);
            before = first;
            tess_study_plan_destroy(plan);
            double *found = result_of(gcf, &opts, &s, degrid, NULL);
            assert_true(difference(found, true, expected,
                                   degrid ? 2 * POINTS : 2 * NU * NV) < error[k]);
            free(found);
        }
        free(expected);
    }
    free_scene(&s);
    tess_gcf_destroy(gcf);
}

/* However much of kernels is left out, it is the same cells of them wherever tiles and
 * blocks begin, by buffers (near to the end of the grid) or without, and both ways. */
static void what_is_left_out_is_the_same_both_ways(void **state)
{
    const double error[] = {1e-2, 1e-3, 1e-5};
    tess_gcf *gcf = make_table(true);
    scene s = make_adjoint_scene();
    for (int isa = 0; isa < TESS_NUM_ISA; ++isa)
        for (int k = 0; k < 3; ++k) {
            tess_study_opts opts;
            setenv("TESS_ISA", tess_isa_name((tess_isa)isa), 1);
            tess_study_opts_default(&opts);
            opts.strategy = TESS_STUDY_FACTORED;
            opts.factor_error = error[k];
            opts.least_cells = 0;
            opts.threads = 1 + k;
            check_adjoint(gcf, &opts, &s);
        }
    unsetenv("TESS_ISA");
    free_scene(&s);
    tess_gcf_destroy(gcf);
}

/* Points of one plane, cell and offset along v have their columns added, where these
 * meet: here points of a row meet, but for one that is far away. */
static void rows_in_common_are_the_same(void **state)
{
    enum { TIMES = 5 };
    scene s = make_scene(CROWDED, 2);
    for (int k = 15; k < POINTS; ++k) {
        const int first = k - k % TIMES;
        s.v[k] = s.v[first];
        s.w[k] = s.w[first];
        s.u[k] = k % TIMES == 4 ? 35 : s.u[first] + 7.3 * (k % TIMES);
    }
    for (int isa = 0; isa < TESS_NUM_ISA; ++isa)
        for (int is_double = 0; is_double < 2; ++is_double) {
            setenv("TESS_ISA", tess_isa_name((tess_isa)isa), 1);
            tess_gcf *gcf = make_table(is_double);
            tess_study_opts opts;
            tess_study_opts_default(&opts);
            opts.strategy = TESS_STUDY_SERIAL;
            void *serial = result_of(gcf, &opts, &s, false, NULL);
            double *expected = malloc(sizeof *expected * 4 * NU * NV);
            for (int k = 0; k < 4 * NU * NV; ++k)
                expected[k] = value_of(serial, is_double, k);
            opts.strategy = TESS_STUDY_FACTORED;
            opts.factor_error = is_double ? 1e-10 : 1e-5;
            opts.max_rank = 12;
            opts.least_cells = 0;
            void *found = result_of(gcf, &opts, &s, false, NULL);
            assert_true(difference(found, is_double, expected, 4 * NU * NV) <
                        rounding(is_double, POINTS) + 1e-5);
            free(found);
            free(expected);
            free(serial);
            tess_gcf_destroy(gcf);
        }
    unsetenv("TESS_ISA");
    free_scene(&s);
}

/* Points of one offset, cell, plane and sign of w are gridded as one, and read off as
 * one; w of another sign, or another offset, is not. */
static void merged_points_are_the_same(void **state)
{
    enum { TIMES = 4, TURNED = 100, ASIDE = 101 };
    scene s = make_scene(RANDOM, 2);
    for (int k = 0; k < POINTS; ++k)
        if (k % TIMES != 0 && k / TIMES != 3) { /* 12 to 14: outside */
            const int first = k - k % TIMES;
            s.u[k] = s.u[first];
            s.v[k] = s.v[first];
            s.w[k] = s.w[first];
        }
    s.w[TURNED + 1] = -s.w[TURNED];
    s.u[ASIDE + 1] += 0.5;
    /* a group less, of which one lies inside; and two that are apart */
    const int64_t expected = POINTS / TIMES - 1 + 1 + 2;
    for (int strategy = 0; strategy < TESS_STUDY_NUM_STRATEGIES; ++strategy)
        for (int degrid = 0; degrid < 2; ++degrid) {
            if (!is_there(strategy, degrid)) continue;
            tess_gcf *gcf = make_table(true);
            tess_study_opts opts;
            tess_gcf_report plain, report;
            tess_study_opts_default(&opts);
            opts.strategy = (tess_study_strategy)strategy;
            double *apart = result_of(gcf, &opts, &s, degrid, &plain);
            opts.merge = true;
            double *merged = result_of(gcf, &opts, &s, degrid, &report);
            assert_int_equal(report.left_out, plain.left_out);
            assert_int_equal(plain.merged, POINTS - plain.left_out);
            assert_int_equal(report.merged, expected);
            assert_true(report.point_cells < plain.point_cells / 2);
            assert_int_equal(report.all_cells, plain.point_cells);
            assert_int_equal(plain.all_cells, plain.point_cells);
            assert_true(
                difference(merged, true, apart,
                           2 * s.num_pol * (int64_t)(degrid ? POINTS : NU * NV)) <
                rounding(true, POINTS));
            free(apart);
            free(merged);
            tess_gcf_destroy(gcf);
        }
    free_scene(&s);
}

/* Points of one tile are added in the order in which they came, by however many threads
 * they are sorted: sums are the same to the last bit. */
static void sorting_is_stable(void **state)
{
    tess_gcf *gcf = make_table(false);
    scene s = make_scene(RANDOM, 1);
    tess_study_opts opts;
    for (int k = 0; k < POINTS; ++k) { /* footprints start at cells 64 to 127 */
        s.u[k] = 90 + fmod(s.u[k], 37);
        s.v[k] = 90 + fmod(s.v[k], 37);
    }
    tess_study_opts_default(&opts);
    opts.probes.sort = TESS_GCF_SORT_TILE;
    opts.probes.pieces = 1;
    float *once = result_of(gcf, &opts, &s, false, NULL);
    for (opts.threads = 2; opts.threads < 8; ++opts.threads) {
        float *again = result_of(gcf, &opts, &s, false, NULL);
        assert_memory_equal(again, once, 2 * NU * NV * sizeof *once);
        free(again);
    }
    /* which is not so in another order */
    for (int k = 0; k < POINTS; ++k)
        s.w[k] = 1;
    float *one_plane = result_of(gcf, &opts, &s, false, NULL);
    for (int k = 0; k < POINTS / 2; ++k)
        for (int part = 0; part < 2; ++part) {
            const double vis = s.vis[2 * k + part];
            s.vis[2 * k + part] = s.vis[2 * (POINTS - 1 - k) + part];
            s.vis[2 * (POINTS - 1 - k) + part] = vis;
        }
    for (int k = 0; k < POINTS / 2; ++k) {
        const double u = s.u[k], v = s.v[k];
        s.u[k] = s.u[POINTS - 1 - k];
        s.v[k] = s.v[POINTS - 1 - k];
        s.u[POINTS - 1 - k] = u;
        s.v[POINTS - 1 - k] = v;
    }
    float *backwards = result_of(gcf, &opts, &s, false, NULL);
    assert_memory_not_equal(backwards, one_plane, 2 * NU * NV * sizeof *once);
    free(once);
    free(one_plane);
    free(backwards);
    free_scene(&s);
    tess_gcf_destroy(gcf);
}

/* One thread has nothing to sort for where tables and grids stay in cache. */
static void small_grids_are_not_sorted(void **state)
{
    const tess_gcf_layout layout = {.num_planes = 3,
                                    .w_max_lambda = 1000,
                                    .oversampling = 4,
                                    .is_double = true,
                                    .threads = 1};
    const int support[] = {8, 16, 24};
    tess_gcf *gcf = NULL;
    scene s = make_scene(CROWDED, 1);
    assert_int_equal(tess_gcf_create_from(&layout, support, mixed_kernel, NULL, &gcf),
                     TESS_OK);
    for (int k = 0; k < 8; ++k) {
        const bool degrid = k % 2;
        tess_study_opts opts;
        tess_gcf_report report;
        tess_study_opts_default(&opts);
        opts.strategy = TESS_STUDY_SERIAL;
        double *expected = result_of(gcf, &opts, &s, degrid, NULL);
        opts.strategy = k & 2 ? TESS_STUDY_FACTORED : TESS_STUDY_TILED;
        opts.threads = k & 4 ? 2 : 1;
        double *found = result_of(gcf, &opts, &s, degrid, &report);
        assert_true(
            difference(found, true, expected, degrid ? 2 * POINTS : 2 * NU * NV) <
            rounding(true, POINTS));
        assert_true((report.sort_s > 0) == (opts.threads == 2));
        assert_int_equal(report.left_out, OUTSIDE);
        free(expected);
        free(found);
    }
    free_scene(&s);
    tess_gcf_destroy(gcf);
}

static void wrong_options_are_refused(void **state)
{
    tess_gcf *gcf = make_table(false);
    tess_study_plan *plan = NULL;
    for (int k = 0; k < 5; ++k) {
        tess_study_opts opts;
        tess_study_opts_default(&opts);
        opts.strategy = TESS_STUDY_FACTORED;
        if (k == 0) opts.strategy = TESS_STUDY_NUM_STRATEGIES;
        if (k == 1) opts.threads = 0;
        if (k == 2) opts.factor_error = 0;
        if (k == 3) opts.max_rank = 13;
        if (k == 4) opts.strategy = TESS_STUDY_GATHER; /* not on a CPU */
        assert_int_equal(tess_study_plan_create(gcf, &opts, &plan), TESS_ERR_USAGE);
        assert_null(plan);
        tess_error_clear();
    }
    tess_study_opts opts;
    tess_study_opts_default(&opts);
    assert_int_equal(tess_study_plan_create(gcf, &opts, &plan), TESS_OK);
    const tess_gcf_points three = {.num_pol = 3}, none = {.num_pol = 1};
    tess_gcf_cells cells = {.nu = 8, .nv = 8}, empty = {.nu = 0, .nv = 8};
    tess_gcf_report report;
    assert_int_equal(tess_study_grid(plan, &three, &cells, NULL), TESS_ERR_USAGE);
    tess_error_clear();
    assert_int_equal(tess_study_grid(plan, &none, &empty, NULL), TESS_ERR_USAGE);
    tess_error_clear();
    assert_int_equal(tess_study_grid(plan, &none, &cells, &report), TESS_OK);
    assert_int_equal(report.left_out, 0);
    tess_study_plan_destroy(plan);
    tess_study_plan_destroy(NULL);
    tess_gcf_destroy(gcf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_point_is_its_kernel),
        cmocka_unit_test(strategies_agree),
        cmocka_unit_test(instruction_sets_agree),
        cmocka_unit_test(uneven_kernels_keep_their_side),
        cmocka_unit_test(uneven_kernels_by_all_strategies),
        cmocka_unit_test(degridding_is_the_adjoint),
        cmocka_unit_test(what_does_not_factor_is_taken_from_the_table),
        cmocka_unit_test(w_kernels_factor),
        cmocka_unit_test(ranks_are_low),
        cmocka_unit_test(factors_end_where_little_is_left),
        cmocka_unit_test(what_is_left_out_is_the_same_both_ways),
        cmocka_unit_test(rows_in_common_are_the_same),
        cmocka_unit_test(merged_points_are_the_same),
        cmocka_unit_test(sorting_is_stable),
        cmocka_unit_test(small_grids_are_not_sorted),
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
