/* Other ways of gridding on a CPU, as studies have compared them: all give the same
 * sums; and what is refused. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gcf_scene.h"
#include "tess_const.h"
#include "tess_isa.h"

/* Against the serial strategy, in double precision. */
static void compare(const tess_gcf *gcf, const tess_study_opts *opts, const scene *s,
                    bool degrid, tess_gcf_report *report)
{
    tess_study_opts serial;
    tess_study_opts_default(&serial);
    serial.strategy = TESS_STUDY_SERIAL;
    double *expected = result_of(gcf, &serial, s, degrid, NULL);
    double *found = result_of(gcf, opts, s, degrid, report);
    assert_true(difference(found, true, expected,
                           2 * s->num_pol * (int64_t)(degrid ? POINTS : NU * NV)) <
                rounding(true, degrid ? 48 * 48 : POINTS));
    free(expected);
    free(found);
}

static void all_ways_lead_to_the_same(void **state)
{
    const struct {
        tess_study_strategy strategy;
        tess_study_probes probes;
        int threads;
    } way[] = {
        {TESS_STUDY_PRIVATE, {0}, 1},
        {TESS_STUDY_PRIVATE, {0}, 3},
        {TESS_STUDY_ATOMIC, {.atomics = TESS_STUDY_CAS}, 2},
        {TESS_STUDY_ATOMIC, {.atomics = TESS_STUDY_PLAIN}, 1}, /* alone it is right */
        {TESS_STUDY_SERIAL, {.cube = true}, 1},
        {TESS_STUDY_TILED, {.sort = TESS_GCF_SORT_TILE}, 2},
        {TESS_STUDY_TILED, {.sort = TESS_GCF_SORT_LAYER}, 2},
        {TESS_STUDY_TILED, {.sort = TESS_GCF_SORT_KERNEL}, 2},
        {TESS_STUDY_TILED, {.pieces = 5}, 2},
        {TESS_STUDY_TILED, {.pieces = 7, .center_radius = 60}, 2},
    };
    tess_gcf *gcf = make_table(true);
    scene s = make_scene(CROWDED, 2);
    for (size_t k = 0; k < sizeof way / sizeof *way; ++k)
        for (int degrid = 0; degrid < 2; ++degrid) {
            tess_study_opts opts;
            tess_gcf_report report;
            tess_study_opts_default(&opts);
            opts.strategy = way[k].strategy;
            opts.probes = way[k].probes;
            opts.threads = way[k].threads;
            if (degrid &&
                (opts.probes.atomics != TESS_STUDY_NATIVE || opts.probes.cube))
                continue;
            compare(gcf, &opts, &s, degrid, &report);
            assert_true(report.left_out >= OUTSIDE);
        }
    free_scene(&s);
    tess_gcf_destroy(gcf);
}

/* Taps are those of single precision anyhow (make_table()), and are read as such:
 * changes that single precision does not see show it. */
static void taps_are_read_in_single(void **state)
{
    const tess_study_strategy strategy[] = {TESS_STUDY_SERIAL, TESS_STUDY_ATOMIC,
                                            TESS_STUDY_TILED, TESS_STUDY_PRIVATE};
    tess_gcf *gcf = make_table(true), *changed = make_table(true);
    scene s = make_scene(CROWDED, 2);
    for (int64_t t = 0; t < 2 * gcf->num_values; ++t)
        ((double *)changed->data)[t] *= 1 + 1e-9;
    for (int isa = 0; isa < TESS_NUM_ISA; ++isa)
        for (int k = 0; k < 8; ++k) {
            const bool degrid = k % 2;
            const int64_t count = 2 * s.num_pol * (int64_t)(degrid ? POINTS : NU * NV);
            tess_study_opts opts;
            tess_gcf_report report;
            tess_study_opts_default(&opts);
            setenv("TESS_ISA", tess_isa_name((tess_isa)isa), 1);
            opts.strategy = strategy[k / 2];
            opts.single_taps = true;
            opts.threads = 2;
            compare(gcf, &opts, &s, degrid, &report);
            double *single = result_of(gcf, &opts, &s, degrid, NULL);
            double *again = result_of(changed, &opts, &s, degrid, NULL);
            opts.single_taps = false;
            double *as_it_is = result_of(changed, &opts, &s, degrid, NULL);
            assert_true(difference(again, true, single, count) < 1e-12);
            assert_true(difference(as_it_is, true, single, count) > 5e-10);
            free(single);
            free(again);
            free(as_it_is);
        }
    unsetenv("TESS_ISA");
    free_scene(&s);
    tess_gcf_destroy(gcf);
    tess_gcf_destroy(changed);
}

/* Crowded points: 1 in 8 lies anywhere, in tiles of few. */
static void sparse_tiles_go_by_atomics(void **state)
{
    tess_gcf *gcf = make_table(true);
    scene s = make_scene(CROWDED, 1);
    tess_study_opts opts;
    tess_gcf_report report;
    tess_study_opts_default(&opts);
    opts.threads = 2;
    opts.probes.tile_factor = 0.5;
    compare(gcf, &opts, &s, false, &report);
    assert_true(report.points_atomic > POINTS / 32 &&
                report.points_atomic < POINTS / 4);
    opts.probes.tile_factor = 1e6; /* all of them */
    compare(gcf, &opts, &s, false, &report);
    assert_int_equal(report.points_atomic, POINTS - report.left_out);
    free_scene(&s);
    tess_gcf_destroy(gcf);
}

/* A grid of ones is read off as ones, from every plane and offset. */
static void normalised_kernels_sum_to_one(void **state)
{
    for (int is_double = 0; is_double < 2; ++is_double) {
        tess_gcf *gcf = make_table(is_double > 0);
        scene s = make_scene(RANDOM, 1);
        tess_study_opts opts;
        tess_gcf_report report;
        int64_t ones = 0;
        for (int64_t k = 0; k < 2 * NU * NV; ++k)
            s.cells[k] = k % 2 == 0;
        assert_int_equal(tess_study_normalise(gcf), TESS_OK);
        tess_study_opts_default(&opts);
        void *found = result_of(gcf, &opts, &s, true, &report);
        for (int k = 0; k < POINTS; ++k) {
            const double re = value_of(found, is_double, 2 * k);
            const double im = value_of(found, is_double, 2 * k + 1);
            ones += hypot(re - 1, im) < 10 * rounding(is_double, 48 * 48);
        }
        assert_int_equal(ones, POINTS - report.left_out);
        free(found);
        free_scene(&s);
        tess_gcf_destroy(gcf);
    }
}

static void nothing_cannot_be_normalised(void **state)
{
    tess_gcf *gcf = make_table(true);
    memset(gcf->data, 0, (size_t)gcf->num_values * 2 * sizeof(double));
    assert_int_equal(tess_study_normalise(gcf), TESS_ERR_USAGE);
    tess_error_clear();
    tess_gcf_destroy(gcf);
}

/* Against gridding ones with kernels of ones. */
static void box_kernel(const void *context, int plane, double x, double y,
                       double value[2])
{
    value[0] = 1;
    value[1] = 0;
}

static void updates_are_counted(void **state)
{
    const tess_gcf_layout layout = {.num_planes = 3,
                                    .w_max_lambda = 1000,
                                    .oversampling = 4,
                                    .is_double = true,
                                    .threads = 1};
    const int support[] = {8, 24, 16};
    tess_gcf *gcf = NULL;
    tess_study_opts opts;
    scene s = make_scene(CROWDED, 1);
    float *map = malloc(NU * NV * sizeof *map);
    double most = 0;
    assert_int_equal(tess_gcf_create_from(&layout, support, box_kernel, NULL, &gcf),
                     TESS_OK);
    for (int k = 0; k < 2 * POINTS; ++k)
        s.vis[k] = k % 2 == 0;
    const tess_gcf_points points = {
        .count = POINTS, .u = s.u, .v = s.v, .w = s.w, .num_pol = 1};
    assert_int_equal(tess_study_updates(gcf, &points, NU, NV, map), TESS_OK);
    tess_study_opts_default(&opts);
    opts.strategy = TESS_STUDY_SERIAL;
    double *found = result_of(gcf, &opts, &s, false, NULL);
    for (int k = 0; k < NU * NV; ++k) {
        assert_true((double)map[k] == found[2 * k]);
        most = fmax(most, found[2 * k]);
    }
    assert_true(most > 100);
    free(found);
    free(map);
    free_scene(&s);
    tess_gcf_destroy(gcf);
}

/* exp(−0.1 r) with a phase of 0.01 r² turns and 1 + ½ sin(2π 0.05 r), at w = 0. */
static void formulas_have_an_extra_phase_and_sine(void **state)
{
    const tess_gcf_layout layout = {
        .num_planes = 1, .oversampling = 2, .is_double = true, .threads = 1};
    const tess_gcf_formula formula = {
        .decay = 0.1, .step = 0.01, .turns = 0.01, .ripple = 0.05};
    const int support = 16;
    tess_gcf *gcf = NULL;
    assert_int_equal(tess_gcf_create_formula(&layout, &support, &formula, &gcf),
                     TESS_OK);
    for (int x = 0; x <= 16; x += 3)
        for (int y = 0; y <= 16; y += 5) {
            const double r = hypot(0.5 * x, 0.5 * y);
            const double size = exp(-0.1 * r) * (1 + 0.5 * sin(TESS_TWO_PI * 0.05 * r));
            double value[2];
            tess_gcf_value(gcf, 0, x, y, value);
            assert_true(hypot(value[0] - size * cos(TESS_TWO_PI * 0.01 * r * r),
                              value[1] - size * sin(TESS_TWO_PI * 0.01 * r * r)) <
                        1e-14);
        }
    tess_gcf_destroy(gcf);
}

/* Kernels of a formula, computed and not, on a scene in one direction: by fast
 * functions in single precision, too, each with one thread and with several. A phase of
 * up to 41 turns is rounded as well. */
static void try_formula(tess_gcf *const table[2], const scene *s, bool degrid)
{
    const int64_t count = 2 * s->num_pol * (int64_t)(degrid ? POINTS : NU * NV);
    tess_study_opts opts;
    tess_gcf_report first, report;
    tess_study_opts_default(&opts);
    opts.strategy = TESS_STUDY_SERIAL;
    double *expected = result_of(table[1], &opts, s, degrid, &first);
    opts.strategy = TESS_STUDY_COMPUTED;
    for (int k = 0; k < 4; ++k) {
        const bool is_double = k & 1;
        opts.fast_math = k & 2;
        opts.threads = opts.fast_math ? 3 : 1;
        void *found = result_of(table[is_double], &opts, s, degrid, &report);
        const double epsilon = is_double ? DBL_EPSILON : (double)FLT_EPSILON;
        const double off = difference(found, is_double, expected, count);
        const double most =
            rounding(is_double, degrid ? 40 * 40 : POINTS) + 4 * 260 * epsilon;
        if (!(off < most))
            print_message("degrid %d, %d pols, double %d, fast %d: %g, not %g\n",
                          degrid, s->num_pol, is_double, opts.fast_math, off, most);
        assert_true(off < most);
        assert_int_equal(report.left_out, first.left_out);
        assert_int_equal(report.point_cells, first.point_cells);
        free(found);
    }
    free(expected);
}

/* With an extra phase (1), an extra sine (2), neither or both. */
static void try_extra(int extra, int num_pol)
{
    const int support[] = {16, 40};
    const tess_gcf_formula formula = {.log_peak = 0.3,
                                      .decay = 0.05,
                                      .step = 0.01,
                                      .turns = extra & 1 ? 0.01 : 0,
                                      .ripple = extra & 2 ? 0.1 : 0};
    tess_gcf *table[2] = {NULL};
    scene s = make_scene((order)(extra % NUM_ORDERS), num_pol);
    for (int is_double = 0; is_double < 2; ++is_double) {
        const tess_gcf_layout layout = {.num_planes = 2,
                                        .w_max_lambda = 1000,
                                        .oversampling = extra == 1 ? 5 : 8,
                                        .is_double = is_double > 0,
                                        .threads = 1};
        assert_int_equal(
            tess_gcf_create_formula(&layout, support, &formula, &table[is_double]),
            TESS_OK);
    }
    try_formula(table, &s, false);
    try_formula(table, &s, true);
    free_scene(&s);
    for (int is_double = 0; is_double < 2; ++is_double)
        tess_gcf_destroy(table[is_double]);
}

static void formulas_are_computed(void **state)
{
    for (int extra = 0; extra < 4; ++extra)
        for (int num_pol = 1; num_pol <= 4; num_pol *= 2)
            try_extra(extra, num_pol);
    for (int isa = 0; isa < TESS_NUM_ISA; ++isa) {
        setenv("TESS_ISA", tess_isa_name((tess_isa)isa), 1);
        try_extra(3, 2);
    }
    unsetenv("TESS_ISA");
}

/* Kernels that are no formula's are refused. */
static void tables_are_not_computed(void **state)
{
    tess_gcf *gcf = make_table(false);
    tess_study_plan *plan = NULL;
    tess_study_opts opts;
    tess_study_opts_default(&opts);
    opts.strategy = TESS_STUDY_COMPUTED;
    assert_int_equal(tess_study_plan_create(gcf, &opts, &plan), TESS_ERR_USAGE);
    assert_null(plan);
    tess_error_clear();
    tess_gcf_destroy(gcf);
}

static void count_calls(void *context, bool is_over)
{
    int *calls = context;
    ++calls[is_over];
}

/* Work that is repeated for a meter has its report first. */
static void repetitions_are_metered(void **state)
{
    tess_gcf *gcf = make_table(false);
    float vis[2] = {1, 0}, *cells = calloc(2 * NU * NV, sizeof *cells);
    const double u = 100, v = 90, w = 0;
    const tess_gcf_points points = {
        .count = 1, .u = &u, .v = &v, .w = &w, .vis = vis, .num_pol = 1};
    tess_gcf_cells grid = {.nu = NU, .nv = NV, .data = cells};
    tess_study_plan *plan = NULL;
    tess_study_opts opts;
    double once = 0, sum = 0;
    int calls[2] = {0, 0};
    tess_study_opts_default(&opts);
    assert_int_equal(tess_study_plan_create(gcf, &opts, &plan), TESS_OK);
    assert_int_equal(tess_study_grid(plan, &points, &grid, NULL), TESS_OK);
    for (int k = 0; k < 2 * NU * NV; ++k)
        once += (double)cells[k];
    tess_study_plan_repeat(plan, 3, count_calls, calls);
    assert_int_equal(tess_study_grid(plan, &points, &grid, NULL), TESS_OK);
    for (int k = 0; k < 2 * NU * NV; ++k)
        sum += (double)cells[k];
    assert_true(calls[0] == 1 && calls[1] == 1);
    assert_true(fabs(sum - 5 * once) < 1e-4 * fabs(sum)); /* 1, then 1 + 3 */
    tess_study_plan_destroy(plan);
    tess_gcf_destroy(gcf);
    free(cells);
}

static void what_means_nothing_is_refused(void **state)
{
    const struct {
        tess_gcf_backend backend;
        tess_study_strategy strategy;
        bool degrid;
        tess_study_probes probes;
    } wrong[] = {
        {TESS_GCF_CPU, TESS_STUDY_SERIAL, false, {.atomics = TESS_STUDY_CAS}},
        {TESS_GCF_CPU, TESS_STUDY_ATOMIC, true, {.atomics = TESS_STUDY_PLAIN}},
        {TESS_GCF_CPU, TESS_STUDY_FACTORED, false, {.sort = TESS_GCF_SORT_TILE}},
        {TESS_GCF_CPU, TESS_STUDY_TILED, true, {.tile_factor = 1}},
        {TESS_GCF_CPU, TESS_STUDY_TILED, false, {.cube = true}},
        {TESS_GCF_CPU, TESS_STUDY_SERIAL, true, {.cube = true}},
        {TESS_GCF_CPU, TESS_STUDY_TILED, false, {.active_box = true}},
        {TESS_GCF_CPU, TESS_STUDY_TILED, false, {.managed = true}},
        {TESS_GCF_CPU, TESS_STUDY_TILED, false, {.arrays = true}},
        {TESS_GCF_CPU, TESS_STUDY_TILED, false, {.center_radius = 10}},
        {TESS_GCF_DEVICE, TESS_STUDY_GATHER, false, {.atomics = TESS_STUDY_CAS}},
        {TESS_GCF_DEVICE, TESS_STUDY_SCATTER, false, {.sort = TESS_GCF_SORT_TILE}},
        {TESS_GCF_DEVICE, TESS_STUDY_WARP, false, {.pieces = 2}},
        {TESS_GCF_DEVICE, TESS_STUDY_FACTORED, false, {.arrays = true}},
        {TESS_GCF_DEVICE, TESS_STUDY_GATHER, false, {.divergent = true}},
        {TESS_GCF_DEVICE, TESS_STUDY_WINDOW, false, {.serial_tiles = true}},
        {TESS_GCF_DEVICE, TESS_STUDY_TILED, false, {.bin = 64}},
        {TESS_GCF_DEVICE, TESS_STUDY_SCATTER, false, {.block = 48}},
        {TESS_GCF_DEVICE, TESS_STUDY_SCATTER, false, {.block = 1024}},
        {TESS_GCF_DEVICE, TESS_STUDY_TILED, false, {.block = 128}},
        {TESS_GCF_DEVICE, TESS_STUDY_WINDOW, true, {.block = 128}},
        {TESS_GCF_DEVICE,
         TESS_STUDY_WINDOW,
         false,
         {.block = 64, .atomics = TESS_STUDY_CAS}},
        {TESS_GCF_DEVICE, TESS_STUDY_COARSE, false, {.block = 64, .cells = 2}},
        {TESS_GCF_DEVICE, TESS_STUDY_GATHER, false, {.block = 96}},
        {TESS_GCF_DEVICE, TESS_STUDY_GATHER, false, {.block = 512}},
        {TESS_GCF_DEVICE, TESS_STUDY_GATHER, false, {.stripes = 3}},
        {TESS_GCF_DEVICE, TESS_STUDY_GATHER, false, {.stripes = 16}},
        {TESS_GCF_DEVICE, TESS_STUDY_GATHER, false, {.stripes = -2}},
        {TESS_GCF_DEVICE, TESS_STUDY_GATHER, false, {.stripes = 8, .cells = 8}},
        {TESS_GCF_DEVICE, TESS_STUDY_GATHER, true, {.stripes = 2}},
        {TESS_GCF_DEVICE, TESS_STUDY_WINDOW, false, {.stripes = 2}},
        {TESS_GCF_DEVICE, TESS_STUDY_GATHER, false, {.bounds = 2}},
        {TESS_GCF_DEVICE, TESS_STUDY_GATHER, false, {.bounds = 4, .cells = 2}},
        {TESS_GCF_DEVICE, TESS_STUDY_GATHER, true, {.bounds = 4}},
        {TESS_GCF_DEVICE, TESS_STUDY_TILED, false, {.bounds = 4}},
        {TESS_GCF_DEVICE, TESS_STUDY_GATHER, false, {.cells = 1}},
        {TESS_GCF_DEVICE, TESS_STUDY_GATHER, true, {.cells = 8}},
        {TESS_GCF_DEVICE, TESS_STUDY_COARSE, false, {.cells = 8}},
        {TESS_GCF_DEVICE,
         TESS_STUDY_COARSE,
         false,
         {.cells = 2, .atomics = TESS_STUDY_CAS}},
        {TESS_GCF_DEVICE, TESS_STUDY_GATHER, false, {.points = 32}},
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; ++k) {
        tess_study_opts opts;
        tess_study_opts_default(&opts);
        opts.backend = wrong[k].backend;
        opts.strategy = wrong[k].strategy;
        assert_int_equal(tess_study_check_probes(&opts, wrong[k].degrid), TESS_OK);
        opts.probes = wrong[k].probes;
        assert_int_equal(tess_study_check_probes(&opts, wrong[k].degrid),
                         TESS_ERR_USAGE);
        tess_error_clear();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ways_lead_to_the_same),
        cmocka_unit_test(taps_are_read_in_single),
        cmocka_unit_test(sparse_tiles_go_by_atomics),
        cmocka_unit_test(normalised_kernels_sum_to_one),
        cmocka_unit_test(nothing_cannot_be_normalised),
        cmocka_unit_test(updates_are_counted),
        cmocka_unit_test(formulas_have_an_extra_phase_and_sine),
        cmocka_unit_test(formulas_are_computed),
        cmocka_unit_test(tables_are_not_computed),
        cmocka_unit_test(repetitions_are_metered),
        cmocka_unit_test(what_means_nothing_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
