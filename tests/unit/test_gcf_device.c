/* Strategies of gridding and degridding on a GPU (or an emulated one): every one, in
 * both precisions, with 1, 2 and 4 polarisations, on random, crowded and sorted points,
 * against the serial one on the CPU in double precision. Exits with 77 where there is
 * no device. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gcf_device_tests.h"
#include "gcf_scene.h"

/* In place of a shape: chosen, no points by atomics. */
enum { TILES_ALONE = -1 };

/* One strategy in one direction on a scene. */
static void compare(const tess_gcf *gcf, tess_study_strategy strategy, int shape,
                    const scene *s, bool degrid, const double *expected,
                    const tess_gcf_report *first)
{
    const bool is_double = gcf->layout.is_double;
    const int64_t count = 2 * s->num_pol * (degrid ? POINTS : NU * NV);
    const bool factored = strategy == TESS_STUDY_FACTORED;
    tess_study_opts opts;
    tess_gcf_report report;
    tess_study_opts_default(&opts);
    opts.backend = TESS_GCF_DEVICE;
    opts.strategy = strategy;
    opts.factor_error = is_double ? 1e-10 : 1e-5;
    opts.max_rank = 12;
    opts.least_cells = 0;
    opts.shape = shape;
    opts.single_taps = shape == 2; /* the same taps, see make_table() */
    if (shape == TILES_ALONE) {
        opts.shape = 0;
        opts.probes.narrow = -1;
    }
    void *found = result_of(gcf, &opts, s, degrid, &report);
    /* taps rounded to single precision do not factor beyond that */
    const double most =
        rounding(is_double, degrid ? 48 * 48 : POINTS) + (factored ? 1e-5 : 0);
    const double off = difference(found, is_double, expected, count);
    if (!(off < most))
        print_message("%s %s, %d pols, double %d: %g, not %g\n",
                      tess_study_name(strategy), degrid ? "degrid" : "grid", s->num_pol,
                      is_double, off, most);
    assert_true(off < most);
    assert_int_equal(report.left_out, first->left_out);
    assert_int_equal(report.point_cells, first->point_cells);
    free(found);
}

static void compare_all(const tess_gcf *const table[2], const scene *s)
{
    for (int degrid = 0; degrid < 2; ++degrid) {
        tess_study_opts opts;
        tess_gcf_report first;
        tess_study_opts_default(&opts);
        opts.strategy = TESS_STUDY_SERIAL;
        double *expected = result_of(table[1], &opts, s, degrid, &first);
        assert_true(first.left_out >= OUTSIDE);
        for (int k = 0; k < TESS_STUDY_NUM_STRATEGIES; ++k)
            for (int is_double = 0; is_double < 2; ++is_double)
                if (k != TESS_STUDY_COMPUTED && /* of formulas alone */
                    tess_study_there(TESS_GCF_DEVICE, (tess_study_strategy)k, degrid))
                    compare(table[is_double], (tess_study_strategy)k, 0, s, degrid,
                            expected, &first);
        for (int is_double = 0; is_double < 2 && !degrid; ++is_double)
            compare(table[is_double], TESS_STUDY_TILED, TILES_ALONE, s, degrid,
                    expected, &first);
        free(expected);
    }
}

/* Sanitizers, which are slow, get each order with one number of polarisations. */
static bool is_left_out(int how, int num_pol)
{
#if defined(__SANITIZE_ADDRESS__)
    return num_pol != 1 << how % 3;
#else
    (void)how;
    (void)num_pol;
    return false;
#endif
}

static void strategies_agree(void **state)
{
    const tess_gcf *const table[2] = {make_table(false), make_table(true)};
    for (int how = 0; how < NUM_ORDERS; ++how)
        for (int num_pol = 1; num_pol <= 4; num_pol *= 2) {
            if (is_left_out(how, num_pol)) continue;
            scene s = make_scene((order)how, num_pol);
            compare_all(table, &s);
            free_scene(&s);
        }
    for (int k = 0; k < 2; ++k)
        tess_gcf_destroy((tess_gcf *)(uintptr_t)table[k]);
}

/* Every shape of the blocks that grid tiles. */
static void shapes_agree(void **state)
{
    tess_gcf *const table[2] = {make_table(false), make_table(true)};
    for (int num_pol = 1; num_pol <= 4; num_pol *= 2) {
        scene s = make_scene(CROWDED, num_pol);
        tess_study_opts opts;
        tess_gcf_report first;
        tess_study_opts_default(&opts);
        opts.strategy = TESS_STUDY_SERIAL;
        double *expected = result_of(table[1], &opts, &s, false, &first);
        for (int shape = 1; shape <= TESS_GCF_SHAPES; ++shape)
            for (int is_double = 0; is_double < 2; ++is_double)
                compare(table[is_double], TESS_STUDY_TILED, shape, &s, false, expected,
                        &first);
        free(expected);
        free_scene(&s);
    }
    for (int k = 0; k < 2; ++k)
        tess_gcf_destroy(table[k]);
}

/* Windows follow tracks as they come, and only these. */
static void compare_windows(const tess_gcf *const table[2], order how, int num_pol)
{
    static const tess_study_strategy follows[] = {TESS_STUDY_WINDOW, TESS_STUDY_COARSE};
    scene s = make_scene(how, num_pol);
    tess_study_opts opts;
    tess_gcf_report first;
    tess_study_opts_default(&opts);
    opts.strategy = TESS_STUDY_SERIAL;
    double *expected = result_of(table[1], &opts, &s, false, &first);
    for (int k = 0; k < 2; ++k)
        for (int is_double = 0; is_double < 2; ++is_double) {
            tess_gcf_report report;
            compare(table[is_double], follows[k], 0, &s, false, expected, &first);
            opts.backend = TESS_GCF_DEVICE;
            opts.strategy = follows[k];
            free(result_of(table[is_double], &opts, &s, false, &report));
            assert_int_equal(report.kept_order, how == TRACKS);
        }
    free(expected);
    free_scene(&s);
}

static void tracks_keep_their_order(void **state)
{
    tess_gcf *const table[2] = {make_table(false), make_table(true)};
    for (int num_pol = 1; num_pol <= 4; num_pol *= 2)
        for (int tracks = 0; tracks < 2; ++tracks)
            compare_windows((const tess_gcf *const *)table, tracks ? TRACKS : RANDOM,
                            num_pol);
    for (int k = 0; k < 2; ++k)
        tess_gcf_destroy(table[k]);
}

/* All strategies on tracks, in both directions. */
static void strategies_agree_on_tracks(void **state)
{
    tess_gcf *const table[2] = {make_table(false), make_table(true)};
    for (int num_pol = 1; num_pol <= 4; num_pol *= 2) {
        scene s = make_scene(TRACKS, num_pol);
        compare_all((const tess_gcf *const *)table, &s);
        free_scene(&s);
    }
    for (int k = 0; k < 2; ++k)
        tess_gcf_destroy(table[k]);
}

/* Not symmetric about a diagonal: axes that are mixed up show. */
static void oblong_kernel(const void *context, int plane, double x, double y,
                          double value[2])
{
    const bool uneven = x < 0 || y < 0;
    value[0] = cos(0.3 * x * x + 0.1 * y * y + plane + uneven) * exp(-0.02 * x * x);
    value[1] = sin(0.2 * x * x - 0.07 * y * y) * exp(-0.01 * y * y);
}

/* Tables of one plane and of kernels as narrow and as wide as they come here; odd
 * numbers of offsets. */
static void any_table_will_do(void **state)
{
    const int width[][3] = {{8, 8, 8}, {32, 32, 32}, {128, 128, 128}, {8, 136, 40}};
    for (size_t k = 0; k < sizeof width / sizeof *width; ++k)
        for (int planes = 1; planes <= 3; planes += 2) {
            tess_gcf *table[2] = {NULL};
            for (int is_double = 0; is_double < 2; ++is_double) {
                const tess_gcf_layout layout = {.num_planes = planes,
                                                .w_max_lambda = 1000,
                                                .spacing = TESS_GCF_LINEAR,
                                                .oversampling = planes == 1 ? 1 : 5,
                                                .is_uneven = k % 2 > 0,
                                                .is_double = is_double > 0,
                                                .threads = 1};
                assert_int_equal(tess_gcf_create_from(&layout, width[k], oblong_kernel,
                                                      NULL, &table[is_double]),
                                 TESS_OK);
            }
            for (int64_t at = 0; at < 2 * table[1]->num_values; ++at)
                ((double *)table[1]->data)[at] = (double)((float *)table[0]->data)[at];
            scene s = make_scene(k % 2 == 0 ? CROWDED : RANDOM, planes == 1 ? 1 : 2);
            compare_all((const tess_gcf *const *)table, &s);
            free_scene(&s);
            for (int is_double = 0; is_double < 2; ++is_double)
                tess_gcf_destroy(table[is_double]);
        }
}

/* What is no number stays near its footprint, here in the grid's last corner;
 * sanitizers see whether it is written beyond. */
static void overflows_stay_inside(void **state)
{
    tess_gcf *gcf = make_table(false);
    const int last = gcf->plane[0].support / 2 + 1;
    const double u = NU - last, v = NV - last;
    float vis[8] = {INFINITY, 1, 1, -INFINITY};
    for (tess_study_strategy k = 0; k < TESS_STUDY_NUM_STRATEGIES; ++k)
        for (int num_pol = 1; num_pol <= 4; num_pol *= 2) {
            static float cells[2 * NU * NV * 4];
            tess_study_plan *plan = NULL;
            tess_gcf_report report;
            tess_study_opts opts;
            const tess_gcf_points points = {
                .count = 1, .u = &u, .v = &v, .vis = vis, .num_pol = num_pol};
            tess_gcf_cells grid = {.nu = NU, .nv = NV, .data = cells};
            tess_study_opts_default(&opts);
            opts.backend = TESS_GCF_DEVICE;
            opts.strategy = k;
            if (!tess_study_there(TESS_GCF_DEVICE, k, false) ||
                k == TESS_STUDY_FACTORED)
                continue;
            memset(cells, 0, sizeof cells);
            assert_int_equal(tess_study_plan_create(gcf, &opts, &plan), TESS_OK);
            assert_int_equal(tess_study_grid(plan, &points, &grid, &report), TESS_OK);
            assert_int_equal(report.left_out, 0);
            assert_false(isfinite(cells[2 * ((NU - 2) * NV + NV - 2)]));
            for (int p = 0; p < num_pol; ++p)
                assert_true(cells[2 * (int64_t)p * NU * NV] == 0);
            tess_study_plan_destroy(plan);
        }
    tess_gcf_destroy(gcf);
}

static void what_is_not_there_is_refused(void **state)
{
    tess_gcf *gcf = make_table(false);
    tess_study_plan *plan = NULL;
    tess_study_opts opts;
    tess_study_opts_default(&opts);
    opts.backend = TESS_GCF_DEVICE;
    opts.strategy = TESS_STUDY_SERIAL;
    assert_int_equal(tess_study_plan_create(gcf, &opts, &plan), TESS_ERR_USAGE);
    assert_null(plan);
    tess_error_clear();
    /* no points at all, and none inside */
    opts.strategy = TESS_STUDY_SCATTER;
    assert_int_equal(tess_study_plan_create(gcf, &opts, &plan), TESS_OK);
    double u = -100, v = 50;
    float vis[2] = {1, 1}, cells[2 * 64 * 64] = {3};
    tess_gcf_points points = {.count = 0, .u = &u, .v = &v, .vis = vis, .num_pol = 1};
    tess_gcf_cells grid = {.nu = 64, .nv = 64, .data = cells};
    tess_gcf_report report;
    assert_int_equal(tess_study_grid(plan, &points, &grid, &report), TESS_OK);
    assert_int_equal(report.left_out, 0);
    points.count = 1;
    assert_int_equal(tess_study_grid(plan, &points, &grid, &report), TESS_OK);
    assert_int_equal(report.left_out, 1);
    assert_true(cells[0] == 3 && cells[1] == 0);
    tess_study_plan_destroy(plan);
    tess_gcf_destroy(gcf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strategies_agree),
        cmocka_unit_test(shapes_agree),
        cmocka_unit_test(tracks_keep_their_order),
        cmocka_unit_test(strategies_agree_on_tracks),
        cmocka_unit_test(any_table_will_do),
        cmocka_unit_test(overflows_stay_inside),
        cmocka_unit_test(what_is_not_there_is_refused),
    };
    return RUN_ON_DEVICE(tests);
}
