/* Other ways of gridding and degridding on a GPU (or an emulated one), as studies have
 * compared them, against the serial strategy on the CPU in double precision. Exits with
 * 77 where there is no device. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gcf_device_tests.h"
#include "gcf_scene.h"

typedef struct way {
    tess_study_strategy strategy;
    bool degrid, single_taps;
    tess_study_probes probes;
} way;

static const way all_ways[] = {
    {TESS_STUDY_SCATTER, false, false, {.atomics = TESS_STUDY_CAS}},
    {TESS_STUDY_WARP, false, false, {.atomics = TESS_STUDY_CAS}},
    {TESS_STUDY_WINDOW, false, false, {.atomics = TESS_STUDY_CAS}},
    {TESS_STUDY_COARSE, false, false, {.atomics = TESS_STUDY_CAS}},
    {TESS_STUDY_GATHER, false, false, {.sort = TESS_GCF_SORT_KERNEL}},
    {TESS_STUDY_WINDOW, false, false, {.sort = TESS_GCF_SORT_LAYER}},
    {TESS_STUDY_COARSE, false, false, {.sort = TESS_GCF_SORT_KERNEL}},
    {TESS_STUDY_TILED, false, false, {.sort = TESS_GCF_SORT_TILE}},
    {TESS_STUDY_TILED, false, false, {.sort = TESS_GCF_SORT_LAYER}},
    {TESS_STUDY_TILED, true, false, {.sort = TESS_GCF_SORT_TILE}},
    {TESS_STUDY_SCATTER, true, false, {.sort = TESS_GCF_SORT_LAYER}},
    {TESS_STUDY_TILED, false, false, {.pieces = 3}},
    {TESS_STUDY_TILED, false, false, {.pieces = 9, .center_radius = 70}},
    {TESS_STUDY_TILED, false, false, {.divergent = true}},
    {TESS_STUDY_COARSE, false, false, {.serial_tiles = true}},
    {TESS_STUDY_COARSE, false, false, {.bin = 64, .points = 100}},
    {TESS_STUDY_WINDOW, false, false, {.bin = 61, .points = 33}},
    {TESS_STUDY_WINDOW, true, false, {.bin = 61, .points = 33}},
    {TESS_STUDY_TILED, true, false, {.points = 50}},
    {TESS_STUDY_SCATTER, false, false, {.block = 64}},
    {TESS_STUDY_WARP, false, false, {.block = 512}},
    {TESS_STUDY_GATHER, true, false, {.block = 32}},
    {TESS_STUDY_WINDOW, false, false, {.block = 32}},
    {TESS_STUDY_WINDOW, false, false, {.block = 480}},
    {TESS_STUDY_COARSE, false, false, {.block = 32}},
    {TESS_STUDY_COARSE, false, false, {.block = 416}},
    {TESS_STUDY_GATHER, false, false, {.block = 32}},
    {TESS_STUDY_GATHER, false, false, {.block = 128, .cells = 2}},
    {TESS_STUDY_GATHER, false, false, {.stripes = 1}},
    {TESS_STUDY_GATHER, false, false, {.stripes = 2}},
    {TESS_STUDY_GATHER, false, false, {.stripes = 8}},
    {TESS_STUDY_GATHER, false, false, {.stripes = 4, .cells = 8}},
    {TESS_STUDY_GATHER, false, false, {.stripes = 2, .cells = 2, .block = 64}},
    {TESS_STUDY_GATHER, false, false, {.bounds = 4}},
    {TESS_STUDY_GATHER, false, false, {.bounds = 8}},
    {TESS_STUDY_WINDOW, false, false, {.bounds = 4}},
    {TESS_STUDY_WINDOW, false, false, {.bounds = 8}},
    {TESS_STUDY_COARSE, false, false, {.bounds = 4}},
    {TESS_STUDY_COARSE, false, false, {.bounds = 8}},
    {TESS_STUDY_GATHER, false, false, {.cells = 2}},
    {TESS_STUDY_GATHER, false, false, {.cells = 8}},
    {TESS_STUDY_GATHER, true, false, {.cells = 1}},
    {TESS_STUDY_GATHER, true, false, {.cells = 4}},
    {TESS_STUDY_COARSE, false, false, {.cells = 1}},
    {TESS_STUDY_COARSE, false, false, {.cells = 2}},
    {TESS_STUDY_COARSE, false, false, {.cells = 4}},
    {TESS_STUDY_GATHER, true, true, {.block = 0}},
    {TESS_STUDY_TILED, true, true, {.block = 0}},
    {TESS_STUDY_WINDOW, true, true, {.block = 0}},
    {TESS_STUDY_SCATTER, true, true, {.block = 0}},
    {TESS_STUDY_SCATTER, false, true, {.block = 0}},
    {TESS_STUDY_GATHER, false, true, {.block = 0}},
    {TESS_STUDY_WINDOW, false, true, {.block = 0}},
    {TESS_STUDY_COARSE, false, true, {.block = 0}},
    {TESS_STUDY_WARP, false, true, {.block = 0}},
    {TESS_STUDY_TILED, false, true, {.block = 0}},
};

static tess_study_opts options(const way *of)
{
    tess_study_opts opts;
    tess_study_opts_default(&opts);
    opts.backend = TESS_GCF_DEVICE;
    opts.strategy = of->strategy;
    opts.single_taps = of->single_taps;
    opts.probes = of->probes;
    opts.factor_error = 1e-5;
    opts.least_cells = 0;
    return opts;
}

/* Both precisions, whose taps are the same (make_table()). */
static void compare(tess_gcf *const table[2], const way *of, const scene *s,
                    tess_gcf_report *report)
{
    const int64_t count = 2 * s->num_pol * (of->degrid ? POINTS : NU * NV);
    const tess_study_opts opts = options(of);
    tess_study_opts serial;
    tess_gcf_report first;
    tess_study_opts_default(&serial);
    serial.strategy = TESS_STUDY_SERIAL;
    double *expected = result_of(table[1], &serial, s, of->degrid, &first);
    for (int is_double = 0; is_double < 2; ++is_double) {
        void *found = result_of(table[is_double], &opts, s, of->degrid, report);
        const bool factored = of->strategy == TESS_STUDY_FACTORED;
        const double off = difference(found, is_double, expected, count);
        const double most =
            rounding(is_double, of->degrid ? 48 * 48 : POINTS) + (factored ? 3e-5 : 0);
        if (!(off < most))
            print_message("%s, degrid %d, %d pols, double %d: %g, not %g\n",
                          tess_study_name(of->strategy), of->degrid, s->num_pol,
                          is_double, off, most);
        assert_true(off < most);
        assert_int_equal(report->left_out, first.left_out);
        free(found);
    }
    free(expected);
}

/* A function for both tables and a crowded scene. */
static void with_scene(int num_pol,
                       void (*function)(tess_gcf *const table[2], const scene *s))
{
    tess_gcf *const table[2] = {make_table(false), make_table(true)};
    scene s = make_scene(CROWDED, num_pol);
    function(table, &s);
    free_scene(&s);
    for (int k = 0; k < 2; ++k)
        tess_gcf_destroy(table[k]);
}

static void try_all_ways(tess_gcf *const table[2], const scene *s)
{
    tess_gcf_report report;
    for (size_t k = 0; k < sizeof all_ways / sizeof *all_ways; ++k)
        compare(table, &all_ways[k], s, &report);
}

static void all_ways_lead_to_the_same(void **state)
{
    with_scene(1, try_all_ways);
    with_scene(4, try_all_ways);
}

/* What every strategy has. */
static void try_common_ways(tess_gcf *const table[2], const scene *s)
{
    const tess_study_probes probes[] = {
        {.arrays = true},
        {.managed = true},
        {.active_box = true},
        {.arrays = true, .managed = true, .active_box = true}};
    for (size_t p = 0; p < sizeof probes / sizeof *probes; ++p)
        for (int k = 0; k < 2 * TESS_STUDY_NUM_STRATEGIES; ++k) {
            tess_gcf_report report;
            const way of = {.strategy = (tess_study_strategy)(k / 2),
                            .degrid = k % 2,
                            .probes = probes[p]};
            if (of.strategy != TESS_STUDY_COMPUTED &&
                tess_study_there(TESS_GCF_DEVICE, of.strategy, of.degrid) &&
                !(of.strategy == TESS_STUDY_FACTORED && of.probes.arrays))
                compare(table, &of, s, &report);
        }
}

static void memory_makes_no_difference(void **state)
{
    with_scene(2, try_common_ways);
}

static void try_sparse(tess_gcf *const table[2], const scene *s)
{
    tess_gcf_report report;
    const way some = {TESS_STUDY_TILED, false, false, {.tile_factor = 0.5}};
    const way all = {TESS_STUDY_TILED, false, false, {.tile_factor = 1e6}};
    compare(table, &some, s, &report);
    assert_true(report.points_atomic > 0);
    const int64_t few = report.points_atomic;
    compare(table, &all, s, &report);
    assert_true(report.points_atomic > 2 * few);
    assert_true(report.points_atomic >= POINTS - report.left_out);
}

static void sparse_tiles_go_by_atomics(void **state)
{
    with_scene(2, try_sparse);
}

/* Narrow kernels are added atomically, and all others by tile. A scene has some of
 * each. */
static void try_narrow(tess_gcf *const table[2], const scene *s)
{
    way of = {TESS_STUDY_TILED, false, false, {.narrow = -1}};
    tess_gcf_report report;
    int64_t before = 0;
    compare(table, &of, s, &report);
    assert_int_equal(report.points_atomic, 0);
    for (of.probes.narrow = TESS_GCF_STEP; of.probes.narrow <= table[0]->max_support;
         of.probes.narrow += TESS_GCF_STEP) {
        compare(table, &of, s, &report);
        assert_true(report.points_atomic >= before);
        if (of.probes.narrow == 24)
            assert_in_range(report.points_atomic, 1, POINTS - 50);
        before = report.points_atomic;
    }
    assert_int_equal(before, POINTS - report.left_out);
    of.probes.narrow = 0; /* few points */
    compare(table, &of, s, &report);
    assert_int_equal(report.points_atomic, POINTS - report.left_out);
    of.probes.pieces = 3; /* what is asked about tiles is about tiles alone */
    compare(table, &of, s, &report);
    assert_int_equal(report.points_atomic, 0);
}

static void narrow_kernels_go_by_atomics(void **state)
{
    with_scene(1, try_narrow);
    with_scene(4, try_narrow);
}

/* The box is that of all cells that are met; cells beyond keep what they had. */
static void try_box(tess_gcf *const table[2], const scene *s)
{
    const way of = {TESS_STUDY_TILED, false, false, {.active_box = true}};
    const tess_study_opts opts = options(&of);
    const tess_gcf_points points = {.count = POINTS,
                                    .u = s->u,
                                    .v = s->v,
                                    .w = s->w,
                                    .vis = s->vis,
                                    .num_pol = s->num_pol};
    const int64_t values = (int64_t)NU * NV * s->num_pol;
    double *cells = malloc((size_t)values * 2 * sizeof *cells);
    float *map = malloc(NU * NV * sizeof *map);
    tess_gcf_cells grid = {.nu = NU, .nv = NV, .data = cells};
    tess_study_box box = {NU, NV, 0, 0};
    tess_study_plan *plan = NULL;
    assert_int_equal(tess_study_updates(table[1], &points, NU, NV, map), TESS_OK);
    for (int64_t k = 0; k < NU * NV; ++k) {
        if (map[k] == 0) continue;
        if (k / NV < box.u) box.u = k / NV;
        if (k % NV < box.v) box.v = k % NV;
        if (k / NV >= box.lines) box.lines = k / NV + 1;
        if (k % NV >= box.cells) box.cells = k % NV + 1;
    }
    memcpy(cells, s->cells, (size_t)values * 2 * sizeof *cells);
    assert_int_equal(tess_study_plan_create(table[1], &opts, &plan), TESS_OK);
    assert_int_equal(tess_study_grid(plan, &points, &grid, NULL), TESS_OK);
    const tess_study_copies copies = tess_study_plan_copies(plan);
    assert_int_equal(copies.box.u, box.u);
    assert_int_equal(copies.box.v, box.v);
    assert_int_equal(copies.box.lines, box.lines - box.u);
    assert_int_equal(copies.box.cells, box.cells - box.v);
    assert_true(copies.box.lines < NU && copies.box.cells < NV);
    double *added = result_of(table[1], &opts, s, false, NULL);
    for (int64_t k = 0; k < 2 * values; ++k)
        assert_true(fabs(cells[k] - (s->cells[k] + added[k])) <
                    1e-12 * (1 + fabs(added[k])));
    free(added);
    free(cells);
    free(map);
    tess_study_plan_destroy(plan);
}

static void only_the_active_box_is_touched(void **state)
{
    with_scene(2, try_box);
}

/* Kernels of a formula on a scene, in both precisions and by fast functions: a phase of
 * up to 41 turns is rounded as well. */
static void try_formula(const tess_gcf_formula *formula, int block, const scene *s)
{
    const int support[] = {16, 40};
    const way of = {TESS_STUDY_COMPUTED, true, false, {.block = block}};
    tess_gcf *table[2] = {NULL};
    tess_study_opts opts;
    for (int is_double = 0; is_double < 2; ++is_double) {
        const tess_gcf_layout layout = {.num_planes = 2,
                                        .w_max_lambda = 1000,
                                        .oversampling = 8,
                                        .is_double = is_double > 0,
                                        .threads = 1};
        assert_int_equal(
            tess_gcf_create_formula(&layout, support, formula, &table[is_double]),
            TESS_OK);
    }
    tess_study_opts_default(&opts);
    opts.strategy = TESS_STUDY_SERIAL;
    double *expected = result_of(table[1], &opts, s, true, NULL);
    for (int k = 0; k < 3; ++k) {
        const bool is_double = k == 1;
        opts = options(&of);
        opts.fast_math = k == 2;
        void *found = result_of(table[is_double], &opts, s, true, NULL);
        const double epsilon = is_double ? DBL_EPSILON : (double)FLT_EPSILON;
        const double off =
            difference(found, is_double, expected, 2 * POINTS * s->num_pol);
        assert_true(off < rounding(is_double, 40 * 40) + 4 * 260 * epsilon);
        free(found);
    }
    free(expected);
    for (int k = 0; k < 2; ++k)
        tess_gcf_destroy(table[k]);
}

/* All there is in formulas, orders and polarisations. */
static void extras_are_computed(void **state)
{
    for (int how = 0; how < NUM_ORDERS; ++how)
        for (int num_pol = 1; num_pol <= 4; num_pol *= 2) {
            scene s = make_scene((order)how, num_pol);
            for (int extra = 0; extra < 4; ++extra) {
                const tess_gcf_formula formula = {.decay = 0.05,
                                                  .step = 0.01,
                                                  .turns = extra & 1 ? 0.01 : 0,
                                                  .ripple = extra & 2 ? 0.1 : 0};
                try_formula(&formula, 64 * (extra & 1), &s);
            }
            free_scene(&s);
        }
}

/* On the host, before: every point twice, gridded once, read off for both. */
static void merged_points_are_the_same(void **state)
{
    tess_gcf *gcf = make_table(true);
    scene s = make_scene(CROWDED, 2);
    for (int k = 21; k < POINTS; k += 2) {
        s.u[k] = s.u[k - 1];
        s.v[k] = s.v[k - 1];
        s.w[k] = s.w[k - 1];
    }
    for (int degrid = 0; degrid < 2; ++degrid) {
        const way of = {TESS_STUDY_TILED, degrid > 0, false, {.block = 0}};
        tess_study_opts opts = options(&of);
        tess_gcf_report plain, report;
        double *apart = result_of(gcf, &opts, &s, degrid, &plain);
        opts.merge = true;
        double *merged = result_of(gcf, &opts, &s, degrid, &report);
        assert_int_equal(report.left_out, plain.left_out);
        assert_int_equal(plain.merged, POINTS - plain.left_out);
        assert_true(report.merged <= POINTS / 2 + 10);
        assert_int_equal(report.all_cells, plain.point_cells);
        assert_true(report.point_cells < plain.point_cells * 11 / 20);
        assert_true(difference(merged, true, apart,
                               2 * s.num_pol * (int64_t)(degrid ? POINTS : NU * NV)) <
                    rounding(true, POINTS));
        free(apart);
        free(merged);
    }
    free_scene(&s);
    tess_gcf_destroy(gcf);
}

static void too_much_managed_memory_is_refused(void **state)
{
    const way of = {TESS_STUDY_SCATTER, false, false, {.managed = true}};
    const tess_study_opts opts = options(&of);
    tess_gcf *gcf = make_table(false);
    double u = 100;
    float vis[2] = {1, 1};
    const tess_gcf_points points = {
        .count = 1, .u = &u, .v = &u, .vis = vis, .num_pol = 1};
    /* never looked at: 8 TB */
    tess_gcf_cells grid = {.nu = 1 << 20, .nv = 1 << 20, .data = vis};
    tess_study_plan *plan = NULL;
    assert_int_equal(tess_study_plan_create(gcf, &opts, &plan), TESS_OK);
    assert_int_equal(tess_study_grid(plan, &points, &grid, NULL), TESS_ERR_RESOURCE);
    assert_non_null(strstr(tess_error_message(), "half"));
    tess_error_clear();
    tess_study_plan_destroy(plan);
    tess_gcf_destroy(gcf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ways_lead_to_the_same),
        cmocka_unit_test(memory_makes_no_difference),
        cmocka_unit_test(sparse_tiles_go_by_atomics),
        cmocka_unit_test(narrow_kernels_go_by_atomics),
        cmocka_unit_test(only_the_active_box_is_touched),
        cmocka_unit_test(extras_are_computed),
        cmocka_unit_test(merged_points_are_the_same),
        cmocka_unit_test(too_much_managed_memory_is_refused),
    };
    return RUN_ON_DEVICE(tests);
}
