/* Costs measured on the machine: kept, taken again, and planned by. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tess_cache.h"
#include "tess_calibrate.h"
#include "tess_comm.h"
#include "tess_grid.h"
#include "tess_isa.h"

static char folder[] = "calibrate-XXXXXX";
static tess_comm *comm;

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder) || tess_comm_self(&comm) != TESS_OK) return -1;
    return setenv("TESS_CACHE_DIR", folder, 1);
}

static int tear_down(void **state)
{
    (void)state;
    char command[100];
    tess_comm_free(comm);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void path_of_costs(char *path, size_t size)
{
    char processor[200];
    tess_cache_processor(processor, sizeof processor);
    snprintf(path, size, "%s/costs-%s-%s.json", folder, processor,
             tess_isa_name(tess_isa_best()));
}

static tess_costs calibrated(void)
{
    tess_costs costs;
    assert_int_equal(tess_calibrate(comm, TESS_CALIBRATE_ONCE, 2, &costs), TESS_OK);
    return costs;
}

/* Every cost is a positive number, however busy the machine; gridding more is dearer.
 */
static void test_sizes(void **state)
{
    (void)state;
    const tess_costs c = calibrated();
    assert_true(c.measured);
    for (int d = 0; d < 2; ++d) {
        for (int w = TESS_MIN_SUPPORT; w <= TESS_MAX_SUPPORT; ++w) {
            const double vis = tess_costs_vis(&c, w, w, d, 1);
            assert_true(vis > 0 && isfinite(vis));
        }
        assert_true(tess_costs_vis(&c, 16, 16, d, 1) > tess_costs_vis(&c, 5, 5, d, 1));
        assert_true(c.fft_flop_s[d] > 0 && isfinite(c.fft_flop_s[d]));
        assert_true(c.line_s[d] >= 0 && c.pixel_s[d] >= 0);
    }
    assert_true(c.sort_s > 0 && c.correct_s > 0);
    assert_true(c.touch_bytes_s > 0 && c.copy_bytes_s > 0);
    for (int k = 0; k < TESS_NUM_TRAFFIC; ++k) {
        const int enough = c.enough_threads[k]; /* 0: the machine was too busy */
        assert_in_range(enough, 0, 2);
        assert_int_equal(tess_costs_threads(&c, k, 1), 1);
        assert_int_equal(tess_costs_threads(&c, k, 64), enough > 0 ? enough : 64);
        assert_int_equal(tess_costs_threads(&tess_costs_builtin, k, 64), 64);
    }
}

/* What was measured once is what every later run takes, digit by digit. */
static void test_kept(void **state)
{
    (void)state;
    const tess_costs first = calibrated(), second = calibrated();
    assert_memory_equal(first.vis_s, second.vis_s, sizeof first.vis_s);
    assert_memory_equal(first.update_s, second.update_s, sizeof first.update_s);
    assert_memory_equal(first.pixel_s, second.pixel_s, sizeof first.pixel_s);
    assert_true(first.touch_bytes_s == second.touch_bytes_s);
    assert_memory_equal(first.enough_threads, second.enough_threads,
                        sizeof first.enough_threads);
}

static long size_of(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 ? (long)about.st_size : -1;
}

/* A file that is damaged, or of another version, is measured anew and replaced. */
static void test_damaged(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "{\"key\": ", "[1, 2]",
                                      "{\"key\": \"tessera 0; other\"}"};
    char path[1200];
    path_of_costs(path, sizeof path);
    calibrated();
    const long whole = size_of(path);
    assert_true(whole > 500);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; ++k) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(bad[k], file);
        fclose(file);
        assert_true(calibrated().measured);
        assert_true(size_of(path) > 500);
    }
}

/* A number that is none cannot be taken. */
static void test_bad_number(void **state)
{
    (void)state;
    char path[1200], text[20000] = "";
    path_of_costs(path, sizeof path);
    calibrated();
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    char *value = strstr(text, "sort_s");
    assert_non_null(value);
    value = strchr(value, '[');
    memcpy(strpbrk(value, "0123456789"), "-", 1);
    rewind(file);
    fputs(text, file);
    fclose(file);
    assert_true(calibrated().sort_s > 0);
}

/* Without a folder costs are measured and nothing else happens. */
static void test_no_folder(void **state)
{
    (void)state;
    char kept[sizeof folder];
    memcpy(kept, folder, sizeof folder);
    setenv("TESS_CACHE_DIR", "/dev/null/nowhere", 1);
    const tess_costs costs = calibrated();
    setenv("TESS_CACHE_DIR", kept, 1);
    assert_true(costs.measured && costs.copy_bytes_s > 0);
}

static tess_grid_plan *plan_with(const tess_costs *costs)
{
    const tess_geom geom = {.nx = 1024, .ny = 1024, .scale_rad = 5e-6};
    const tess_backend *cpu;
    tess_grid_plan *plan = NULL;
    tess_grid_opts opts;
    tess_grid_opts_default(&opts);
    opts.w_max_lambda = 3e4;
    opts.num_vis = 1000000;
    opts.costs = costs;
    assert_int_equal(tess_backend_find("cpu", &cpu), TESS_OK);
    assert_int_equal(tess_grid_plan_create(&geom, &opts, cpu, &plan), TESS_OK);
    return plan;
}

/* Where transforms are dear, the plan has fewer cells to transform; where they cost
 * nothing, a narrower kernel. Without costs it is by the built-in ones. */
static void test_plan_follows(void **state)
{
    (void)state;
    tess_costs dear = tess_costs_builtin, cheap = tess_costs_builtin;
    for (int d = 0; d < 2; ++d) {
        dear.fft_flop_s[d] *= 30;
        cheap.fft_flop_s[d] /= 30;
        cheap.pixel_s[d] /= 30;
    }
    tess_grid_plan *plan[4] = {plan_with(&dear), plan_with(&cheap), plan_with(NULL),
                               plan_with(&tess_costs_builtin)};
    assert_true(plan[0]->nu < plan[1]->nu);
    assert_true(plan[0]->kernel.support > plan[1]->kernel.support);
    assert_true(plan[2]->nu == plan[3]->nu);
    assert_int_equal(plan[2]->kernel.support, plan[3]->kernel.support);
    for (int k = 0; k < 4; ++k) {
        assert_true(plan[k]->error_estimate <= plan[k]->opts.accuracy);
        tess_grid_plan_destroy(plan[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),     cmocka_unit_test(test_kept),
        cmocka_unit_test(test_damaged),   cmocka_unit_test(test_bad_number),
        cmocka_unit_test(test_no_folder), cmocka_unit_test(test_plan_follows),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
