/* A MeasurementSet written by several ranks: every row arrives, ranks without rows take
 * part, and a failure on the rank that writes reaches all. Skipped without casacore. */
#define _GNU_SOURCE
#include <ftw.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "rank_tests.h"
#include "tess_vis.h"

enum {
    NUM_ROWS = 101,
    BLOCK_ROWS = 7,
    NUM_CHAN = 3,
    NUM_CORR = 2,
    NUM_ANT = 4,
    SKIP = 77
};

typedef struct fixture {
    tess_comm *comm;
    char folder[64], path[128];
    tess_vis_block block;
} fixture;

static fixture shared; /* of all tests: communicators start once */

static int remove_entry(const char *path, const struct stat *info, int type,
                        struct FTW *where)
{
    (void)info, (void)type, (void)where;
    return remove(path);
}

static void make_folder(void)
{
    if (tess_comm_rank(shared.comm) == 0) {
        strcpy(shared.folder, "test_ms_ranks_XXXXXX");
        if (!mkdtemp(shared.folder)) shared.folder[0] = '\0';
    }
    tess_comm_bcast(shared.comm, shared.folder, sizeof shared.folder, 0);
    snprintf(shared.path, sizeof shared.path, "%s/set.ms", shared.folder);
}

static void remove_folder(void)
{
    tess_comm_barrier(shared.comm);
    if (tess_comm_rank(shared.comm) == 0)
        nftw(shared.folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void fill_block(int64_t row_first, int64_t num_rows)
{
    tess_vis_block *block = &shared.block;
    assert_int_equal(tess_vis_block_resize(block, num_rows, NUM_CHAN, NUM_CORR),
                     TESS_OK);
    block->segment = 0;
    block->row_first = row_first;
    for (int64_t k = 0; k < num_rows; ++k) {
        const int64_t row = row_first + k;
        for (int axis = 0; axis < 3; ++axis)
            block->uvw_m[3 * k + axis] = cos((double)(row + axis));
        block->time_mjd_s[k] = 5.0e9 + (double)row;
        block->integration_s[k] = 1.0;
        block->antenna1[k] = (int32_t)(row % NUM_ANT);
        block->antenna2[k] = (int32_t)((row + 1) % NUM_ANT);
        for (int64_t cell = 0; cell < NUM_CHAN * NUM_CORR; ++cell) {
            const int64_t at = k * NUM_CHAN * NUM_CORR + cell;
            block->vis[2 * at] = (float)(100 * row + cell);
            block->vis[2 * at + 1] = (float)-row;
            block->weight[at] =
                cell == row % 9 ? TESS_WEIGHT_FLAGGED : (float)(1 + cell);
        }
    }
}

/* Every rank writes each size-th block; the last rounds find some without rows. */
static tess_status write_set(const char *path, bool overwrite, int64_t num_rows)
{
    double freq_hz[NUM_CHAN] = {1e9, 1.1e9, 1.2e9},
           width_hz[NUM_CHAN] = {1e8, 1e8, 1e8};
    int32_t spw[NUM_CHAN] = {0};
    tess_vis_antenna antenna[NUM_ANT] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
    tess_vis_segment segment = {.num_rows = num_rows,
                                .num_chan = NUM_CHAN,
                                .freq_hz = freq_hz,
                                .chan_width_hz = width_hz,
                                .chan_spw = spw,
                                .num_corr = NUM_CORR,
                                .corr = {-1, -2}};
    const tess_vis_meta meta = {.telescope = "VLA",
                                .num_segments = 1,
                                .segment = &segment,
                                .num_antennas = NUM_ANT,
                                .antenna = antenna};
    tess_vis_writer *writer = NULL;
    const int64_t rank = tess_comm_rank(shared.comm),
                  size = tess_comm_size(shared.comm);
    tess_status status = tess_vis_create(shared.comm, path, &meta, overwrite, &writer);
    for (int64_t row = 0; status == TESS_OK && row < NUM_ROWS;
         row += BLOCK_ROWS * size) {
        const int64_t first = row + rank * BLOCK_ROWS;
        const int64_t left = first < NUM_ROWS ? NUM_ROWS - first : 0;
        fill_block(first, left < BLOCK_ROWS ? left : BLOCK_ROWS);
        status = tess_vis_write(writer, &shared.block);
    }
    if (status == TESS_OK) status = tess_vis_finish(writer);
    tess_vis_writer_destroy(writer);
    return status;
}

/* All ranks read all rows at once; the data are `factor` times what was written. */
static void check_set(const char *column, float factor)
{
    const tess_vis_select select = {.data_column = column};
    tess_vis_reader *reader = NULL;
    tess_vis_block block = {0};
    assert_int_equal(tess_vis_open(shared.path, &select, &reader), TESS_OK);
    assert_int_equal(tess_vis_reader_meta(reader)->segment->num_rows, NUM_ROWS);
    assert_int_equal(tess_vis_read(reader, 0, 0, NUM_ROWS, 1, &block), TESS_OK);
    fill_block(0, NUM_ROWS);
    assert_memory_equal(block.uvw_m, shared.block.uvw_m, NUM_ROWS * 3 * sizeof(double));
    assert_memory_equal(block.time_mjd_s, shared.block.time_mjd_s,
                        NUM_ROWS * sizeof(double));
    assert_memory_equal(block.antenna2, shared.block.antenna2,
                        NUM_ROWS * sizeof(int32_t));
    for (int k = 0; k < NUM_ROWS * NUM_CHAN * NUM_CORR; ++k) {
        assert_true(block.vis[2 * k] == factor * shared.block.vis[2 * k]);
        assert_true(block.vis[2 * k + 1] == factor * shared.block.vis[2 * k + 1]);
        assert_true(block.weight[k] == shared.block.weight[k]);
    }
    tess_vis_block_free(&block);
    tess_vis_close(reader);
}

static void rows_of_all_ranks_arrive(void **state)
{
    (void)state;
    assert_int_equal(write_set(shared.path, true, NUM_ROWS), TESS_OK);
    check_set(NULL, 1.0F);
}

static void column_of_all_ranks_arrives(void **state)
{
    (void)state;
    tess_vis_reader *reader = NULL;
    tess_vis_writer *writer = NULL;
    const int64_t rank = tess_comm_rank(shared.comm),
                  size = tess_comm_size(shared.comm);
    assert_int_equal(write_set(shared.path, true, NUM_ROWS), TESS_OK);
    assert_int_equal(tess_vis_open(shared.path, NULL, &reader), TESS_OK);
    assert_int_equal(
        tess_vis_create_column(shared.comm, reader, "MODEL_DATA", NULL, false, &writer),
        TESS_OK);
    for (int64_t row = 0; row < NUM_ROWS; row += BLOCK_ROWS * size) {
        const int64_t first = row + rank * BLOCK_ROWS;
        const int64_t left = first < NUM_ROWS ? NUM_ROWS - first : 0;
        fill_block(first, left < BLOCK_ROWS ? left : BLOCK_ROWS);
        for (int64_t k = 0; k < shared.block.num_rows * NUM_CHAN * NUM_CORR * 2; ++k)
            shared.block.vis[k] *= 3.0F;
        assert_int_equal(tess_vis_write(writer, &shared.block), TESS_OK);
    }
    assert_int_equal(tess_vis_finish(writer), TESS_OK);
    tess_vis_writer_destroy(writer);
    tess_vis_close(reader);
    check_set("MODEL_DATA", 3.0F);
    check_set("DATA", 1.0F);
}

/* Only rank 0 sees these failures. The other ranks are told, and no rank hangs. */
static void failures_reach_all_ranks(void **state)
{
    (void)state;
    char path[256];
    const bool first = tess_comm_rank(shared.comm) == 0;
    assert_int_equal(write_set(shared.path, true, NUM_ROWS), TESS_OK);
    assert_int_equal(write_set(shared.path, false, NUM_ROWS),
                     first ? TESS_ERR_IO : TESS_ERR_PEER);
    snprintf(path, sizeof path, "%s/absent/set.ms", shared.folder);
    assert_int_equal(write_set(path, false, NUM_ROWS),
                     first ? TESS_ERR_IO : TESS_ERR_PEER);
    /* more rows come than were announced: a write fails */
    snprintf(path, sizeof path, "%s/short.ms", shared.folder);
    assert_int_equal(write_set(path, false, NUM_ROWS - 20),
                     first ? TESS_ERR_INTERNAL : TESS_ERR_PEER);
    struct stat info;
    assert_int_not_equal(stat(path, &info), 0);
    check_set(NULL, 1.0F);
}

static void test_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_all_ranks_arrive),
        cmocka_unit_test(column_of_all_ranks_arrives),
        cmocka_unit_test(failures_reach_all_ranks),
    };
    TEST_ON_RANKS(shared.comm, tests);
}

int main(int argc, char **argv)
{
    if (tess_comm_start(&argc, &argv, &shared.comm) != TESS_OK) return 1;
    make_folder();
    const tess_status trial = write_set(shared.path, false, NUM_ROWS);
    int64_t absent = trial == TESS_ERR_RESOURCE;
    tess_comm_allreduce_i64(shared.comm, &absent, 1, TESS_MAX);
    if (!absent) test_all();
    remove_folder();
    tess_vis_block_free(&shared.block);
    tess_comm_finish(shared.comm);
    return absent ? SKIP : 0;
}
