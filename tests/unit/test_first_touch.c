/* Memory is first touched by the threads that work on it: on a machine of several nodes
 * it then lies near them. Told by the page faults of the thread that asks for it. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "prepare.h"
#include "tess_grid.h"
#include "tess_keep.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_planes.h"
#include "tess_samples.h"

enum { SIDE = 3000, ROWS = 60000, CHANNELS = 40 };

static int64_t own_faults(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_minflt;
}

static const tess_backend *cpu(void)
{
    const tess_backend *backend;
    assert_int_equal(tess_backend_find("cpu", &backend), TESS_OK);
    return backend;
}

/* Page faults of this thread while two images of zeros are made. */
static int64_t faults_of_images(int threads)
{
    tess_comm *comm = NULL;
    tess_planes *planes = NULL;
    const int64_t slab[2] = {0, SIDE};
    const tess_planes_opts opts = {.nx = SIDE,
                                   .ny = SIDE,
                                   .nu = SIDE,
                                   .nv = SIDE,
                                   .scale_rad = 1e-5,
                                   .do_w = true,
                                   .forward = true,
                                   .num_images = 2,
                                   .threads = threads,
                                   .fft_ranks = 1,
                                   .slab_line = slab,
                                   .repeatable = true,
                                   .num_planes = 1};
    assert_int_equal(tess_comm_self(&comm), TESS_OK);
    const int64_t before = own_faults();
    assert_int_equal(tess_planes_create(comm, cpu()->planes, &opts, &planes), TESS_OK);
    const int64_t faults = own_faults() - before;
    tess_planes_destroy(planes);
    tess_comm_free(comm);
    return faults;
}

/* While the samples of a block are made. */
static int64_t faults_of_samples(int threads)
{
    static const tess_pol_mix first = {.num = 1, .index = {0}, .coefficient = {1}};
    double inv_lambda[CHANNELS];
    tess_vis_block block = {0};
    tess_profile profile;
    for (int c = 0; c < CHANNELS; ++c)
        inv_lambda[c] = 1 + 0.01 * c;
    tess_profile_start(&profile);
    assert_int_equal(tess_vis_block_resize(&block, ROWS, CHANNELS, 1), TESS_OK);
    for (int64_t row = 0; row < ROWS; ++row) {
        for (int k = 0; k < 3; ++k)
            block.uvw_m[3 * row + k] = (double)(row + k);
        block.time_mjd_s[row] = 1;
        block.antenna1[row] = 0;
        block.antenna2[row] = 1;
    }
    for (int64_t k = 0; k < (int64_t)ROWS * CHANNELS; ++k)
        block.vis[2 * k] = block.vis[2 * k + 1] = block.weight[k] = 1;
    const tess_recipe recipe = {.num_pol = 1,
                                .mix = {first},
                                .shared_weight = true,
                                .inv_lambda = inv_lambda,
                                .range = {0},
                                .time_first = -INFINITY,
                                .time_end = INFINITY};
    tess_samples samples = {.num_pol = 1, .num_weight = 1, .inv_lambda = inv_lambda};
    tess_keep_release(); /* pages that are kept have been touched before */
    const int64_t before = own_faults();
    assert_int_equal(
        tess_prepare_block(&recipe, &block, threads, &samples, NULL, &profile),
        TESS_OK);
    const int64_t faults = own_faults() - before;
    assert_int_equal(samples.num_rows, ROWS);
    tess_samples_free(&samples);
    tess_vis_block_free(&block);
    return faults;
}

/* Two threads share the pages, of 4 KiB each here; two thirds are less than all, and
 * leave room for what else the thread touches. */
static void check(int64_t (*faults)(int threads), int64_t bytes)
{
    const int64_t alone = faults(1), shared = faults(2);
    assert_true(alone >= bytes / 4096);
    assert_true(3 * shared < 2 * alone);
}

static void test_images(void **state)
{
    check(faults_of_images, 2 * (int64_t)SIDE * SIDE * 4);
}

static void test_samples(void **state)
{
    check(faults_of_samples, (int64_t)ROWS * CHANNELS * 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_images),
                                       cmocka_unit_test(test_samples)};
    tess_log_start(0, TESS_LOG_QUIET);
    /* pages of one size, or there is nothing to count */
    if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
