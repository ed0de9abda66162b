/* Sets of samples in a scratch file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "spool.h"
#include "tess_mem.h"
#include "tess_samples.h"

enum { SETS = 3, CHANNELS = 5 };

/* Set k of k rows: the first one is empty. */
static void fill(int k, tess_samples *samples)
{
    samples->num_rows = samples->num_vis = 0;
    assert_int_equal(tess_samples_reserve(samples, k, k * CHANNELS), TESS_OK);
    samples->num_rows = k;
    samples->num_vis = k * CHANNELS;
    for (int row = 0; row < k; ++row) {
        for (int axis = 0; axis < 3; ++axis)
            samples->uvw_m[3 * row + axis] = 100 * k + 10 * row + axis;
        samples->chan_base[row] = 7 * k + row;
        samples->num_chan[row] = CHANNELS;
        samples->vis_first[row] = row * CHANNELS;
        if (samples->origins) samples->origin[row] = 5 * k + row;
    }
    const int64_t values = samples->num_vis * samples->num_pol;
    if (k > 0)
        memset(samples->vis, k, (size_t)(values * (samples->is_double ? 16 : 8)));
    for (int64_t s = 0; s < samples->num_vis * samples->num_weight; ++s)
        if (samples->is_double)
            ((double *)samples->weight)[s] = (double)(k + s);
        else
            ((float *)samples->weight)[s] = (float)(k + s);
}

static void check_equal(const tess_samples *a, const tess_samples *b)
{
    assert_int_equal(a->num_rows, b->num_rows);
    assert_int_equal(a->num_vis, b->num_vis);
    if (a->num_rows == 0) return;
    const size_t rows = (size_t)a->num_rows, element = a->is_double ? 8 : 4;
    const size_t vis = (size_t)a->num_vis;
    assert_memory_equal(a->uvw_m, b->uvw_m, rows * 3 * sizeof *a->uvw_m);
    assert_memory_equal(a->chan_base, b->chan_base, rows * sizeof *a->chan_base);
    assert_memory_equal(a->num_chan, b->num_chan, rows * sizeof *a->num_chan);
    assert_memory_equal(a->vis_first, b->vis_first, rows * sizeof *a->vis_first);
    if (a->origins)
        assert_memory_equal(a->origin, b->origin, rows * sizeof *a->origin);
    else
        assert_null(b->origin);
    assert_memory_equal(a->vis, b->vis, vis * 2 * element * (size_t)a->num_pol);
    assert_memory_equal(a->weight, b->weight, vis * element * (size_t)a->num_weight);
}

static int files_here(void)
{
    int count = 0;
    DIR *folder = opendir(".");
    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder));)
        count += strstr(entry->d_name, "tessera-scratch") != NULL;
    closedir(folder);
    return count;
}

static void test_again_and_again(void **state)
{
    for (int is_double = 0; is_double < 2; ++is_double) {
        const tess_origins origins = {3, 4, 1, 3, .interval_s = 1, .num_stretches = 1};
        tess_samples put = {.is_double = is_double,
                            .num_pol = 2,
                            .num_weight = 1,
                            .origins = is_double ? &origins : NULL};
        tess_samples got = put;
        tess_spool *spool = NULL;
        assert_int_equal(tess_spool_create(".", &spool), TESS_OK);
        for (int k = 0; k < SETS; ++k) {
            fill(k, &put);
            assert_int_equal(tess_spool_write(spool, &put, NULL), TESS_OK);
        }
        assert_int_equal(tess_spool_records(spool), SETS);
        assert_int_equal(files_here(), 0);
        for (int k = 2 * SETS - 1; k >= 0; --k) {
            fill(k % SETS, &put);
            assert_int_equal(tess_spool_read(spool, k % SETS, &got, NULL), TESS_OK);
            check_equal(&put, &got);
        }
        tess_samples_free(&put);
        tess_samples_free(&got);
        tess_spool_destroy(spool);
    }
    tess_spool_destroy(NULL);
}

/* Passes have bricks, too: pass k has k of them, and twice as many runs. */
static void fill_bricks(int k, tess_brick_list *bricks)
{
    assert_int_equal(tess_brick_list_make_counts(k, false, bricks), TESS_OK);
    bricks->num_bricks = k;
    bricks->num_runs = 2 * k;
    bricks->run = tess_alloc_zero(2 * k, sizeof *bricks->run);
    assert_non_null(bricks->run);
    for (int b = 0; b <= k; ++b)
        bricks->first_run[b] = 2 * b;
    for (int b = 0; b < k; ++b) {
        bricks->key[b] = 100 * k + b;
        bricks->num_vis[b] = 10 * k + b;
    }
    for (int r = 0; r < 2 * k; ++r)
        bricks->run[r] = (tess_run){.brick = r, .first = 3 * r, .row = k, .count = 3};
}

static void check_bricks(const tess_brick_list *a, const tess_brick_list *b)
{
    assert_int_equal(a->num_bricks, b->num_bricks);
    assert_int_equal(a->num_runs, b->num_runs);
    const size_t num = (size_t)a->num_bricks, runs = (size_t)a->num_runs;
    assert_memory_equal(a->first_run, b->first_run, (num + 1) * sizeof *a->first_run);
    assert_memory_equal(a->key, b->key, num * sizeof *a->key);
    assert_memory_equal(a->num_vis, b->num_vis, num * sizeof *a->num_vis);
    assert_memory_equal(a->run, b->run, runs * sizeof *a->run);
}

static void test_passes(void **state)
{
    const double inv_lambda[1] = {1};
    tess_samples put = {.num_pol = 1, .num_weight = 2, .inv_lambda = inv_lambda};
    tess_spool *spool = NULL;
    assert_int_equal(tess_spool_create(".", &spool), TESS_OK);
    for (int k = 0; k < SETS; ++k) {
        tess_brick_list bricks = {0};
        fill(k, &put);
        fill_bricks(k, &bricks);
        assert_int_equal(tess_spool_write(spool, &put, &bricks), TESS_OK);
        tess_brick_list_free(&bricks);
    }
    tess_samples got = tess_spool_samples(spool);
    tess_brick_list got_bricks = {0};
    assert_true(got.num_weight == 2 && got.inv_lambda == inv_lambda && !got.vis);
    for (int k = 2 * SETS - 1; k >= 0; --k) {
        tess_brick_list bricks = {0};
        fill(k % SETS, &put);
        fill_bricks(k % SETS, &bricks);
        assert_int_equal(tess_spool_read(spool, k % SETS, &got, &got_bricks), TESS_OK);
        check_equal(&put, &got);
        check_bricks(&bricks, &got_bricks);
        tess_brick_list_free(&bricks);
    }
    tess_samples_free(&put);
    tess_samples_free(&got);
    tess_brick_list_free(&got_bricks);
    tess_spool_destroy(spool);
}

/* A limit on the size of files stands in for a full disk. */
static void test_full(void **state)
{
    struct rlimit before, limit;
    tess_samples put = {.num_pol = 1, .num_weight = 1};
    tess_spool *spool = NULL;
    tess_error_clear();
    assert_int_equal(tess_spool_create("./no/such/folder", &spool), TESS_ERR_IO);
    assert_non_null(strstr(tess_error_message(), "./no/such/folder"));
    assert_null(spool);
    tess_error_clear();
    assert_int_equal(tess_spool_create(".", &spool), TESS_OK);
    fill(2, &put);
    assert_int_equal(tess_spool_write(spool, &put, NULL), TESS_OK);
    const int64_t bytes = tess_spool_bytes(spool);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = (rlim_t)(bytes + 100);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    const tess_status status = tess_spool_write(spool, &put, NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, TESS_ERR_IO);
    assert_true(tess_error_message()[0] != '\0');
    assert_int_equal(tess_spool_records(spool), 1); /* what there was stays */
    assert_int_equal(tess_spool_bytes(spool), bytes);
    tess_error_clear();
    tess_samples_free(&put);
    tess_spool_destroy(spool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_again_and_again),
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
