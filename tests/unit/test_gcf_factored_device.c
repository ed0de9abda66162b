/* Factored gridding and degridding on a GPU (or an emulated one): kernels to several
 * errors, on tensor cores and off them, against whole ones on the CPU in double
 * precision; visibilities of any size; kernels that do not factor; kernels that are
 * computed; adjointness of every strategy. Exits with 77 where there is no device. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gcf_device_tests.h"
#include "gcf_scene.h"
#include "tess_const.h"

static tess_study_opts options(tess_gcf_backend backend, tess_study_strategy strategy,
                               double error)
{
    tess_study_opts opts;
    tess_study_opts_default(&opts);
    opts.backend = backend;
    opts.strategy = strategy;
    opts.factor_error = error;
    opts.max_rank = 8;
    opts.least_cells = 0;
    return opts;
}

/* `table` in both precisions; whole kernels on the CPU are what to expect. */
static void compare_errors(tess_gcf *const table[2], const scene *s,
                           const double *error, int num_errors)
{
    for (int degrid = 0; degrid < 2; ++degrid) {
        const int64_t count = 2 * s->num_pol * (degrid ? POINTS : NU * NV);
        const tess_study_opts serial = options(TESS_GCF_CPU, TESS_STUDY_SERIAL, 1e-4);
        double *expected = result_of(table[1], &serial, s, degrid, NULL);
        for (int k = 0; k < num_errors; ++k) {
            tess_gcf_report report, same;
            const tess_study_opts opts =
                options(TESS_GCF_DEVICE, TESS_STUDY_FACTORED, error[k]);
            void *found = result_of(table[0], &opts, s, degrid, &report);
            const double most = error[k] + rounding(false, degrid ? 48 * 48 : POINTS);
            const double off = difference(found, false, expected, count);
            print_message("%s to %g: %.2g, %lld products\n", degrid ? "degrid" : "grid",
                          error[k], off, (long long)report.point_ranks);
            assert_true(off < most);
            free(found);
            /* the CPU's ranks, but for what fp16 takes of the error */
            tess_study_opts cpu = options(TESS_GCF_CPU, TESS_STUDY_FACTORED, error[k]);
            free(result_of(table[0], &cpu, s, degrid, &same));
            assert_true(report.point_ranks >= same.point_ranks &&
                        report.point_ranks <= same.point_ranks + POINTS);
            assert_int_equal(report.points_factored, same.points_factored);
        }
        free(expected);
    }
}

static void kernels_are_as_close_as_asked(void **state)
{
    const double error[] = {1e-2, 1e-3, 1e-4, 3e-5, 1e-5};
    tess_gcf *table[2] = {make_table(false), make_table(true)};
    scene s = make_scene(CROWDED, 1);
    compare_errors(table, &s, error, sizeof error / sizeof *error);
    free_scene(&s);
    s = make_scene(RANDOM, 4);
    compare_errors(table, &s, error + 1, 2);
    free_scene(&s);
    for (int k = 0; k < 2; ++k)
        tess_gcf_destroy(table[k]);
}

/* Halves reach from 6e-8 to 65504: what is multiplied is brought into their range. */
static void visibilities_may_have_any_size(void **state)
{
    const double error[] = {1e-3, 1e-4}, unit[] = {0x1p-60, 0x1p60, 0};
    tess_gcf *table[2] = {make_table(false), make_table(true)};
    for (int k = 0; k < 3; ++k) {
        scene s = make_scene(SORTED, 2);
        for (int i = 0; i < 4 * POINTS; ++i)
            s.vis[i] *= unit[k];
        for (int i = 0; i < 4 * NU * NV; ++i)
            s.cells[i] *= unit[k];
        s.vis[7] = s.cells[4 * 100 * NV + 200] = k == 2; /* not all of them 0 */
        compare_errors(table, &s, error, k == 2 ? 1 : 2);
        free_scene(&s);
    }
    for (int k = 0; k < 2; ++k)
        tess_gcf_destroy(table[k]);
}

static void what_does_not_factor_is_taken_from_the_table(void **state)
{
    const double error[] = {1e-3, 1e-4, 1e-6};
    const int support[] = {8, 32, 48};
    tess_gcf *table[2] = {NULL};
    for (int k = 0; k < 2; ++k) {
        const tess_gcf_layout layout = {.num_planes = 3,
                                        .w_max_lambda = 1000,
                                        .oversampling = 5,
                                        .is_double = k > 0,
                                        .threads = 1};
        assert_int_equal(
            tess_gcf_create_from(&layout, support, mixed_kernel, NULL, &table[k]),
            TESS_OK);
    }
    for (int num_pol = 1; num_pol <= 4; num_pol *= 4) {
        scene s = make_scene(CROWDED, num_pol);
        compare_errors(table, &s, error, num_pol == 1 ? 3 : 1);
        free_scene(&s);
    }
    for (int k = 0; k < 2; ++k)
        tess_gcf_destroy(table[k]);
}

/* Kernels of a formula, computed, are those of their table. Turns are products of some
 * rounded values; the device's fast functions are off by 2^−21 and by some roundings of
 * an exponent of up to 3. */
static void formulas_are_computed(void **state)
{
    const int support[] = {8, 24, 40};
    const tess_gcf_formula formula = {.log_peak = 0.5, .decay = 0.1, .step = 0.02};
    for (int is_double = 0; is_double < 2; ++is_double) {
        tess_gcf *gcf = NULL;
        const tess_gcf_layout layout = {.num_planes = 3,
                                        .w_max_lambda = 1000,
                                        .spacing = TESS_GCF_LINEAR,
                                        .oversampling = 6,
                                        .is_double = is_double > 0,
                                        .threads = 1};
        assert_int_equal(tess_gcf_create_formula(&layout, support, &formula, &gcf),
                         TESS_OK);
        /* |l| ≤ 0.02 · 20 · √2 = 0.57: up to 1000 · 0.175 turns in the corners */
        const double turns = 175, bits = is_double ? DBL_EPSILON : (double)FLT_EPSILON;
        for (int num_pol = 1; num_pol <= 4; num_pol *= 2)
            for (int fast = 0; fast < 2; ++fast) {
                scene s = make_scene(RANDOM, num_pol);
                tess_gcf_report report;
                tess_study_opts opts = options(TESS_GCF_CPU, TESS_STUDY_SERIAL, 1e-4);
                void *table = result_of(gcf, &opts, &s, true, NULL);
                opts = options(TESS_GCF_DEVICE, TESS_STUDY_COMPUTED, 1e-4);
                opts.fast_math = fast > 0;
                void *found = result_of(gcf, &opts, &s, true, &report);
                double *expected =
                    malloc(sizeof(double) * 2 * POINTS * (size_t)num_pol);
                for (int k = 0; k < 2 * POINTS * num_pol; ++k)
                    expected[k] = value_of(table, is_double, k);
                const double off =
                    difference(found, is_double, expected, 2 * POINTS * num_pol);
                const double most = rounding(is_double, 40 * 40) +
                                    TESS_TWO_PI * turns * 3 * bits +
                                    (fast && !is_double ? 0x1p-20 : 0);
                print_message("computed, double %d, fast %d: %.2g of %.2g\n", is_double,
                              fast, off, most);
                assert_true(off < most);
                assert_int_equal(report.left_out, OUTSIDE);
                free(table);
                free(found);
                free(expected);
                free_scene(&s);
            }
        tess_gcf_destroy(gcf);
    }
}

static void only_formulas_are_computed(void **state)
{
    const int support = 64;
    const tess_gcf_layout layout = {.num_planes = 1, .oversampling = 1, .threads = 1};
    const tess_gcf_formula beyond = {.step = 0.03};
    const tess_study_opts opts = options(TESS_GCF_DEVICE, TESS_STUDY_COMPUTED, 1e-4);
    tess_gcf *gcf = NULL;
    tess_study_plan *plan = NULL;
    assert_int_equal(tess_gcf_create_formula(&layout, &support, &beyond, &gcf),
                     TESS_ERR_USAGE);
    assert_null(gcf);
    tess_error_clear();
    gcf = make_table(false);
    assert_int_equal(tess_study_plan_create(gcf, &opts, &plan), TESS_ERR_USAGE);
    assert_null(plan);
    tess_error_clear();
    tess_gcf_destroy(gcf);
}

/* ⟨G v, x⟩ = ⟨v, D x⟩ to rounding, for strategies that are there in both directions. */
static void degridding_is_the_adjoint(void **state)
{
    tess_gcf *gcf = make_table(true);
    scene s = make_adjoint_scene();
    for (int strategy = 0; strategy < TESS_STUDY_NUM_STRATEGIES; ++strategy) {
        const tess_study_opts opts =
            options(TESS_GCF_DEVICE, (tess_study_strategy)strategy, 1e-4);
        if (!tess_study_there(opts.backend, opts.strategy, false) ||
            !tess_study_there(opts.backend, opts.strategy, true) ||
            strategy == TESS_STUDY_COMPUTED)
            continue;
        check_adjoint(gcf, &opts, &s);
    }
    free_scene(&s);
    tess_gcf_destroy(gcf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_as_close_as_asked),
        cmocka_unit_test(visibilities_may_have_any_size),
        cmocka_unit_test(what_does_not_factor_is_taken_from_the_table),
        cmocka_unit_test(formulas_are_computed),
        cmocka_unit_test(only_formulas_are_computed),
        cmocka_unit_test(degridding_is_the_adjoint),
    };
    return RUN_ON_DEVICE(tests);
}
