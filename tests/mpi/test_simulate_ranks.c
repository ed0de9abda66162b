/* A simulated set is the same on any number of ranks, noise included; a bad sky is one
 * failure on all of them. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rank_tests.h"
#include "tess_comm.h"
#include "tess_subcommands.h"
#include "tess_vis.h"

typedef struct fixture {
    tess_comm *comm;
    char folder[64];
} fixture;

static tess_status simulate(tess_comm *comm, const fixture *at, const char *sky,
                            const char *name)
{
    char sky_path[128], path[128];
    snprintf(sky_path, sizeof sky_path, "%s/%s", at->folder, sky);
    snprintf(path, sizeof path, "%s/%s", at->folder, name);
    const char *const words[] = {
        "simulate",   "--quiet", "--layout",    "vla-a",  "--ra",
        "60deg",      "--dec",   "40deg",       "--freq", "1.4GHz",
        "--channels", "5",       "--duration",  "5min",   "--integration",
        "30s",        "--noise", "0.1Jy",       "--seed", "4",
        "--threads",  "1",       "--overwrite", "--sky",  sky_path,
        "-o",         path};
    enum { NUM_WORDS = sizeof words / sizeof words[0] };
    char text[NUM_WORDS][128], *argv[NUM_WORDS + 1] = {0};
    for (int k = 0; k < NUM_WORDS; ++k) {
        snprintf(text[k], sizeof text[k], "%s", words[k]);
        argv[k] = text[k];
    }
    tess_error_clear();
    return tess_cmd_simulate(comm, NUM_WORDS, argv);
}

static void read_all(const fixture *at, const char *name, tess_vis_block *block)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", at->folder, name);
    tess_vis_reader *reader = NULL;
    const tess_vis_select select = {0};
    assert_int_equal(tess_vis_open(path, &select, &reader), TESS_OK);
    const int64_t rows = tess_vis_reader_meta(reader)->segment->num_rows;
    assert_int_equal(rows, 10 * 27 * 26 / 2);
    assert_int_equal(tess_vis_read(reader, 0, 0, rows, 1, block), TESS_OK);
    tess_vis_close(reader);
}

static void test_same_rows(void **state)
{
    const fixture *at = *state;
    assert_int_equal(simulate(at->comm, at, "sky.csv", "many.uvfits"), TESS_OK);
    if (tess_comm_rank(at->comm) == 0) {
        tess_comm *self = NULL;
        tess_vis_block many = {0}, one = {0};
        assert_int_equal(tess_comm_self(&self), TESS_OK);
        assert_int_equal(simulate(self, at, "sky.csv", "one.uvfits"), TESS_OK);
        read_all(at, "many.uvfits", &many);
        read_all(at, "one.uvfits", &one);
        const size_t rows = (size_t)one.num_rows;
        assert_memory_equal(many.uvw_m, one.uvw_m, rows * 3 * sizeof(double));
        assert_memory_equal(many.antenna2, one.antenna2, rows * sizeof(int32_t));
        assert_memory_equal(many.vis, one.vis, rows * 5 * 2 * 2 * sizeof(float));
        assert_memory_equal(many.weight, one.weight, rows * 5 * 2 * sizeof(float));
        tess_vis_block_free(&many);
        tess_vis_block_free(&one);
        tess_comm_free(self);
    }
    assert_int_equal(tess_comm_barrier(at->comm), TESS_OK);
}

static void test_bad_sky(void **state)
{
    const fixture *at = *state;
    assert_int_equal(simulate(at->comm, at, "bad.csv", "bad.uvfits"), TESS_ERR_INPUT);
    tess_status status = simulate(at->comm, at, "none.csv", "bad.uvfits");
    assert_int_equal(status,
                     tess_comm_rank(at->comm) == 0 ? TESS_ERR_IO : TESS_ERR_PEER);
    char path[128];
    snprintf(path, sizeof path, "%s/bad.uvfits", at->folder);
    assert_int_not_equal(access(path, F_OK), 0);
    tess_error_clear();
}

static int write_file(const fixture *at, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", at->folder, name);
    FILE *file = fopen(path, "w");
    if (!file) return -1;
    fputs(text, file);
    return fclose(file);
}

int main(int argc, char **argv)
{
    fixture at = {.folder = "/tmp/tess_test_ranks_XXXXXX"};
    if (tess_comm_start(&argc, &argv, &at.comm) != TESS_OK) return 1;
    const bool first = tess_comm_rank(at.comm) == 0;
    int failed = 0;
    if (first)
        failed = !mkdtemp(at.folder) ||
                 write_file(&at, "sky.csv", "l,m,flux_jy\n1e-3,0,1\n0,-2e-3,2\n") ||
                 write_file(&at, "bad.csv", "l,m,flux_jy\n1e-3,0,one\n");
    tess_status status = tess_comm_agree(at.comm, failed ? TESS_ERR_IO : TESS_OK);
    if (status == TESS_OK) status = tess_comm_bcast(at.comm, at.folder, 64, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_same_rows, &at),
        cmocka_unit_test_prestate(test_bad_sky, &at),
    };
    if (status == TESS_OK) TEST_ON_RANKS(at.comm, tests);
    if (first) {
        char command[128];
        snprintf(command, sizeof command, "rm -rf %s", at.folder);
        if (system(command) != 0) failed = 1;
    }
    tess_comm_finish(at.comm);
    return failed || status != TESS_OK;
}
