/* The largest part of brick sums is what one visibility of 2 Jy makes there, on every
 * backend: 2 · the kernel's peak along each axis, and no more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "core_backend.h"
#include "tess_grid.h"
#include "tess_samples.h"

static void make_sample(tess_samples *samples, const double *inv_lambda, float re)
{
    *samples = (tess_samples){.num_pol = 1, .num_weight = 1, .inv_lambda = inv_lambda};
    assert_int_equal(tess_samples_reserve(samples, 1, 1), TESS_OK);
    samples->num_rows = samples->num_vis = 1;
    samples->chan_base[0] = 0;
    samples->num_chan[0] = 1;
    samples->vis_first[0] = 0;
    memcpy(samples->uvw_m, (double[3]){100, 200, 0}, 3 * sizeof(double));
    memcpy(samples->vis, (float[2]){re, 0}, 2 * sizeof(float));
    memcpy(samples->weight, &(float){1}, sizeof(float));
}

static double peak_of(const tess_grid_plan *plan, float re)
{
    const double inv_lambda = 1;
    tess_samples samples;
    tess_brick_list list = {0};
    tess_brick_sums sums = {0};
    tess_grid_report report = {.busy_share = 1};
    double peak = 0;
    make_sample(&samples, &inv_lambda, re);
    assert_int_equal(tess_brick_list_make(plan, &samples, true, &list), TESS_OK);
    const tess_brick_range all = {&list, 0, list.num_bricks};
    assert_int_equal(tess_grid_execute(plan, &samples, &all, false, &sums, &report),
                     TESS_OK);
    assert_int_equal(tess_grid_peak(plan, &sums, &peak), TESS_OK);
    tess_brick_sums_free(&sums);
    tess_brick_list_free(&list);
    tess_samples_free(&samples);
    return peak;
}

static void test_peak(void **state)
{
    const tess_backend *backend;
    const tess_geom geom = {.nx = 64, .ny = 64, .scale_rad = 1e-4};
    tess_grid_opts opts;
    tess_grid_plan *plan = NULL;
    (void)state;
    tess_grid_opts_default(&opts);
    opts.do_w = false;
    opts.num_vis = 1;
    opts.accuracy = 1e-3;
    assert_int_equal(tess_backend_find(test_backend(), &backend), TESS_OK);
    if (backend->start) assert_int_equal(backend->start(NULL, 0, 1), TESS_OK);
    assert_int_equal(tess_grid_plan_create(&geom, &opts, backend, &plan), TESS_OK);
    const double one = peak_of(plan, 1), two = peak_of(plan, -2);
    assert_true(one > 0.1 && one <= 1.001);
    assert_float_equal(two / one, 2, 1e-6);
    tess_grid_plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_peak)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
