/* Visibilities on their way to the owners of their bricks: each arrives once, where the
 * partition says, in the order of ranks and rows; predicted ones come back to where
 * they were asked for. Bricks are split, and data come in several sets and passes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "exchange.h"
#include "memory_mover.h"
#include "rank_tests.h"
#include "tess_mem.h"
#include "tess_samples.h"

enum { ROWS = 150, CHANS = 6, VIS = ROWS * CHANS, NUM_POL = 2, CHUNK = 8 };

static tess_comm *world;
static int rank, size;

/* All rows, known to all; rank r reads rows [ROWS r/size, ROWS (r+1)/size), but rank 1
 * none of its (the last rank reads them as well) when there are three or more. */
typedef struct scene {
    double uvw_m[ROWS][3], inv_lambda[CHANS];
    tess_origins origins; /* row k comes from origin ROWS − k */
    tess_grid_plan *plan;
    int64_t first, end;   /* rows of this rank */
    tess_samples samples; /* of this rank */
    tess_partition *partition;
    int64_t key[VIS], ordinal[VIS]; /* of all samples */
} scene;

static int64_t row_of_rank(int r)
{
    if (size > 2 && r == 2) r = 1; /* nothing between 1 and 2 */
    return (int64_t)ROWS * r / size;
}

/* A sample's number is its value, so that it can be told wherever it turns up. */
static void fill(scene *s)
{
    tess_samples *samples = &s->samples;
    *samples = (tess_samples){.is_double = true,
                              .num_pol = NUM_POL,
                              .num_weight = 1,
                              .inv_lambda = s->inv_lambda,
                              .origins = &s->origins};
    const int64_t rows = s->end - s->first;
    assert_int_equal(tess_samples_reserve(samples, rows, rows * CHANS), TESS_OK);
    for (int64_t row = 0; row < rows; ++row) {
        memcpy(samples->uvw_m + 3 * row, s->uvw_m[s->first + row], sizeof s->uvw_m[0]);
        samples->chan_base[row] = 0;
        samples->num_chan[row] = CHANS;
        samples->vis_first[row] = row * CHANS;
        samples->origin[row] = (int32_t)(ROWS - (s->first + row));
    }
    samples->num_rows = rows;
    samples->num_vis = rows * CHANS;
    for (int64_t k = 0; k < samples->num_vis; ++k) {
        const double number = (double)(s->first * CHANS + k);
        ((double *)samples->weight)[k] = number + 0.5;
        for (int part = 0; part < 2 * NUM_POL; ++part)
            ((double *)samples->vis)[2 * NUM_POL * k + part] = number + 0.25 * part;
    }
}

static void make_plan(scene *s, int64_t chunk)
{
    const tess_geom geom = {.nx = 64, .ny = 64, .scale_rad = 0.005};
    const tess_backend *backend;
    tess_grid_opts opts;
    tess_grid_opts_default(&opts);
    opts.accuracy = 1e-6;
    opts.w_max_lambda = 700;
    opts.num_vis = VIS;
    opts.num_pol = NUM_POL;
    opts.chunk = chunk;
    opts.block_planes = 2;
    opts.threads = 3;
    assert_int_equal(tess_backend_find("cpu", &backend), TESS_OK);
    assert_int_equal(tess_grid_plan_create(&geom, &opts, backend, &s->plan), TESS_OK);
}

static tess_brick_list sorted_runs(const scene *s, int64_t first, int64_t end)
{
    tess_brick_list runs = {0};
    assert_int_equal(
        tess_brick_list_append(s->plan, &s->samples, first, end, false, 1, &runs),
        TESS_OK);
    assert_int_equal(tess_brick_list_sort(&runs, 1), TESS_OK);
    return runs;
}

/* Some of the rows; borrowed. */
static tess_samples rows_of(const scene *s, int64_t first, int64_t end)
{
    tess_samples rows = s->samples;
    rows.num_rows = end - first;
    rows.num_vis = CHANS * rows.num_rows;
    rows.uvw_m += 3 * first;
    rows.chan_base += first;
    rows.num_chan += first;
    rows.vis_first += first; /* indices of the whole */
    rows.origin += first;
    return rows;
}

static void make_partition(scene *s, int groups)
{
    const tess_partition_opts opts = {.num_blocks = s->plan->num_blocks,
                                      .bricks_per_block =
                                          s->plan->tiles_u * s->plan->tiles_v,
                                      .num_groups = groups,
                                      .chunk = s->plan->opts.chunk,
                                      .cost_vis_s = 1e-7,
                                      .cost_brick_s = 1e-9,
                                      .always_split = true};
    tess_brick_list runs = sorted_runs(s, 0, s->samples.num_rows);
    assert_int_equal(tess_partition_create(world, &opts, runs.key, runs.num_vis,
                                           runs.first_run, runs.num_bricks,
                                           &s->partition),
                     TESS_OK);
    tess_brick_list_free(&runs);
}

static scene *make_scene(int groups)
{
    draw random = {123};
    scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->origins = (tess_origins){1, ROWS + 1, 1, 1, .interval_s = 1, .num_stretches = 1};
    for (int c = 0; c < CHANS; ++c)
        s->inv_lambda[c] = 1 + 0.02 * c;
    for (int row = 0; row < ROWS; ++row) {
        /* most in a few bricks around the centre, which will be split */
        const double reach = row % 4 ? 6.0 : 80.0;
        for (int k = 0; k < 3; ++k)
            s->uvw_m[row][k] = draw_uniform(&random, -1, 1) * (k == 2 ? 600.0 : reach);
    }
    make_plan(s, CHUNK);
    s->first = row_of_rank(rank);
    s->end = row_of_rank(rank + 1);
    fill(s);
    make_partition(s, groups);
    for (int k = 0; k < VIS; ++k) {
        s->key[k] =
            tess_brick_key_of(s->plan, s->uvw_m[k / CHANS], s->inv_lambda[k % CHANS]);
        for (int j = 0; j < k; ++j)
            s->ordinal[k] += s->key[j] == s->key[k];
    }
    return s;
}

static void free_scene(scene *s)
{
    tess_partition_destroy(s->partition);
    tess_samples_free(&s->samples);
    tess_grid_plan_destroy(s->plan);
    free(s);
}

/* Number of a received sample, from its position: w differs between all rows. */
static int64_t number_of(const scene *s, const double *uvw_m, int32_t chan)
{
    for (int64_t row = 0; row < ROWS; ++row)
        if (memcmp(uvw_m, s->uvw_m[row], sizeof s->uvw_m[row]) == 0)
            return row * CHANS + chan;
    fail();
    return -1;
}

/* What this rank received is its own, and in order. */
static void check_received(const scene *s, const tess_samples *samples,
                           const tess_brick_list *bricks, bool with_data, int64_t *seen)
{
    for (int64_t b = 0; b < bricks->num_bricks; ++b) {
        int64_t last = -1;
        for (int64_t r = bricks->first_run[b]; r < bricks->first_run[b + 1]; ++r) {
            const tess_run *run = &bricks->run[r];
            for (int32_t c = 0; c < run->count; ++c) {
                const int64_t k =
                    number_of(s, samples->uvw_m + 3 * run->row, run->chan + c);
                assert_true(k > last); /* order of one rank that reads everything */
                last = k;
                assert_int_equal(s->key[k], bricks->key[b]);
                assert_int_equal(
                    tess_partition_owner(s->partition, s->key[k], s->ordinal[k]), rank);
                assert_int_equal(samples->origin[run->row], ROWS - k / CHANS);
                ++seen[k];
                if (!with_data) continue;
                const int64_t at = run->first + c;
                assert_true(((double *)samples->weight)[at] == (double)k + 0.5);
                for (int part = 0; part < 2 * NUM_POL; ++part)
                    assert_true(((double *)samples->vis)[2 * NUM_POL * at + part] ==
                                (double)k + 0.25 * part);
            }
        }
    }
}

static void check_all_seen(int64_t *seen)
{
    assert_int_equal(tess_comm_allreduce_i64(world, seen, VIS, TESS_SUM), TESS_OK);
    for (int k = 0; k < VIS; ++k)
        assert_int_equal(seen[k], 1);
}

/* Bricks whose number leaves a remainder of `which` by `of`. */
typedef struct every {
    int64_t which, of;
} every;

static bool is_one_of(const void *context, int64_t key)
{
    const every *bricks = context;
    return key % bricks->of == bricks->which;
}

/* The default, a few parcels, and one parcel in a round. */
static const int64_t round_sizes[] = {0, 1000, 1};

/* Written and read back: all of it, as another object. */
static tess_exchange *moved(const scene *s, int64_t round_bytes,
                            tess_exchange *exchange)
{
    memory_mover memory = memory_mover_new();
    tess_exchange *back = NULL;
    assert_int_equal(tess_exchange_drain(exchange), TESS_OK);
    assert_int_equal(tess_exchange_move(exchange, CHANS, &memory.mover), TESS_OK);
    assert_true(memory.bytes >= tess_exchange_bytes(exchange));
    memory_mover_rewind(&memory);
    assert_int_equal(tess_exchange_create(world, s->plan, s->partition, true,
                                          &s->samples, round_bytes, &back),
                     TESS_OK);
    assert_int_equal(tess_exchange_move(back, CHANS, &memory.mover), TESS_OK);
    assert_true(memory.at == memory.bytes);
    assert_true(tess_exchange_bytes(back) == tess_exchange_bytes(exchange));
    memory_mover_free(&memory);
    tess_exchange_destroy(exchange);
    return back;
}

/* Imaging: the rank's rows in `sets` sets, the bricks in `passes` passes. `move`: after
 * each set, and once more when all is sorted, by way of a checkpoint. */
static void send_all(int groups, int64_t sets, int64_t passes, int64_t round_bytes,
                     bool move)
{
    scene *s = make_scene(groups);
    tess_exchange *exchange = NULL;
    int64_t seen[VIS] = {0};
    assert_int_equal(tess_exchange_create(world, s->plan, s->partition, true,
                                          &s->samples, round_bytes, &exchange),
                     TESS_OK);
    for (int64_t pass = 0; pass < passes; ++pass) {
        const every bricks_of_pass = {pass, passes};
        tess_samples *received;
        tess_brick_list *bricks;
        tess_exchange_reset(exchange);
        for (int64_t set = 0; set < sets; ++set) {
            const int64_t first = s->samples.num_rows * set / sets;
            const int64_t end = s->samples.num_rows * (set + 1) / sets;
            const tess_samples rows = rows_of(s, first, end);
            assert_int_equal(tess_exchange_send(exchange, &rows, false,
                                                passes > 1 ? is_one_of : NULL,
                                                &bricks_of_pass),
                             TESS_OK);
            tess_exchange_progress(exchange);
            if (pass == passes - 1 &&
                end > first) /* what still flies is no longer here */
                memset((double *)s->samples.vis + 2 * NUM_POL * CHANS * first, 0x7f,
                       (size_t)(2 * NUM_POL * CHANS * (end - first)) * sizeof(double));
            if (move) exchange = moved(s, round_bytes, exchange);
        }
        assert_int_equal(tess_exchange_complete(exchange, 1, &received, &bricks),
                         TESS_OK);
        if (move) {
            exchange = moved(s, round_bytes, exchange);
            assert_int_equal(tess_exchange_complete(exchange, 1, &received, &bricks),
                             TESS_OK);
        }
        for (int64_t b = 0; b < bricks->num_bricks; ++b)
            assert_int_equal(bricks->key[b] % passes, pass);
        check_received(s, received, bricks, true, seen);
    }
    check_all_seen(seen);
    tess_exchange_destroy(exchange);
    free_scene(s);
}

static void test_imaging(void **state)
{
    for (int groups = 1; groups <= size; ++groups)
        for (int mode = 0; mode < 4 && size % groups == 0; ++mode)
            for (int k = 0; k < 2; ++k)
                send_all(groups, mode % 2 ? 3 : 1, mode / 2 ? 2 : 1, round_sizes[k],
                         false);
    send_all(1, 1, 1, round_sizes[2], false);
}

static void test_continued(void **state)
{
    for (int groups = 1; groups <= size; ++groups)
        for (int passes = 1; passes <= 2 && size % groups == 0; ++passes)
            for (int k = 0; k < 2; ++k)
                send_all(groups, 3, passes, round_sizes[k], true);
}

/* A run that ends with rounds in flight leaves nothing behind. */
static void test_given_up(void **state)
{
    scene *s = make_scene(1);
    tess_exchange *exchange = NULL;
    assert_int_equal(tess_exchange_create(world, s->plan, s->partition, true,
                                          &s->samples, 1000, &exchange),
                     TESS_OK);
    assert_int_equal(tess_exchange_send(exchange, &s->samples, false, NULL, NULL),
                     TESS_OK);
    tess_exchange_destroy(exchange);
    free_scene(s);
}

/* The test is of something: bricks are split when there is somebody to share them with.
 */
static void test_bricks_are_split(void **state)
{
    double largest, mean;
    int64_t num_split;
    scene *s = make_scene(1);
    tess_partition_balance(s->partition, &largest, &mean, &num_split);
    assert_true(size == 1 ? num_split == 0 : num_split > 0);
    free_scene(s);
}

/* Prediction: owners write a sample's number, senders find it at its place. */
static void test_prediction(void **state)
{
    for (int k = 0; k < 3 * size; ++k) {
        const int groups = 1 + k / 3;
        if (size % groups != 0 || (k % 3 == 2 && groups > 1)) continue;
        scene *s = make_scene(groups);
        tess_exchange *exchange = NULL;
        tess_samples *received;
        tess_brick_list *bricks;
        int64_t seen[VIS] = {0};
        assert_int_equal(tess_exchange_create(world, s->plan, s->partition, false,
                                              &s->samples, round_sizes[k % 3],
                                              &exchange),
                         TESS_OK);
        assert_int_equal(tess_exchange_send(exchange, &s->samples, false, NULL, NULL),
                         TESS_OK);
        assert_int_equal(tess_exchange_complete(exchange, 1, &received, &bricks),
                         TESS_OK);
        check_received(s, received, bricks, false, seen);
        for (int64_t r = 0; r < bricks->num_runs; ++r)
            for (int32_t c = 0; c < bricks->run[r].count; ++c) {
                const tess_run *run = &bricks->run[r];
                const int64_t number =
                    number_of(s, received->uvw_m + 3 * run->row, run->chan + c);
                for (int part = 0; part < 2 * NUM_POL; ++part)
                    ((double *)received->vis)[2 * NUM_POL * (run->first + c) + part] =
                        -(double)number - 0.125 * part;
            }
        assert_int_equal(tess_exchange_return(exchange, &s->samples), TESS_OK);
        for (int64_t j = 0; j < s->samples.num_vis; ++j)
            for (int part = 0; part < 2 * NUM_POL; ++part)
                assert_true(((double *)s->samples.vis)[2 * NUM_POL * j + part] ==
                            -(double)(s->first * CHANS + j) - 0.125 * part);
        check_all_seen(seen);
        tess_exchange_destroy(exchange);
        free_scene(s);
    }
}

/* A row on each rank, of more channels than a number of 16 bits counts, all of them in
 * one brick, which is not split: each sample arrives. */
static void test_long_runs(void **state)
{
    enum { LONG = 70000 };
    scene *s = calloc(1, sizeof *s);
    double *inv_lambda = tess_alloc(LONG, sizeof *inv_lambda);
    tess_exchange *exchange = NULL;
    tess_samples *received;
    tess_brick_list *bricks;
    int64_t seen = 0;
    assert_true(s && inv_lambda);
    for (int c = 0; c < LONG; ++c)
        inv_lambda[c] = 1 + 1e-9 * c;
    make_plan(s, INT64_C(1) << 24);
    s->samples = (tess_samples){.is_double = true,
                                .num_pol = NUM_POL,
                                .num_weight = 1,
                                .inv_lambda = inv_lambda};
    assert_int_equal(tess_samples_reserve(&s->samples, 1, LONG), TESS_OK);
    s->samples.uvw_m[0] = 3;
    s->samples.uvw_m[1] = -4;
    s->samples.uvw_m[2] = 5 + 1e-3 * rank;
    s->samples.chan_base[0] = 0;
    s->samples.num_chan[0] = LONG;
    s->samples.vis_first[0] = 0;
    s->samples.num_rows = 1;
    s->samples.num_vis = LONG;
    for (int64_t k = 0; k < LONG; ++k) {
        ((double *)s->samples.weight)[k] = 1;
        for (int part = 0; part < 2 * NUM_POL; ++part)
            ((double *)s->samples.vis)[2 * NUM_POL * k + part] = (double)(k + part);
    }
    make_partition(s, 1);
    assert_int_equal(tess_exchange_create(world, s->plan, s->partition, true,
                                          &s->samples, 0, &exchange),
                     TESS_OK);
    assert_int_equal(tess_exchange_send(exchange, &s->samples, false, NULL, NULL),
                     TESS_OK);
    assert_int_equal(tess_exchange_complete(exchange, 1, &received, &bricks), TESS_OK);
    for (int64_t r = 0; r < bricks->num_runs; ++r)
        for (int32_t c = 0; c < bricks->run[r].count; ++c, ++seen) {
            const tess_run *run = &bricks->run[r];
            assert_true(((double *)received->vis)[2 * NUM_POL * (run->first + c)] ==
                        (double)(run->chan + c));
        }
    assert_int_equal(tess_comm_allreduce_i64(world, &seen, 1, TESS_SUM), TESS_OK);
    assert_int_equal(seen, (int64_t)size * LONG);
    tess_exchange_destroy(exchange);
    free_scene(s);
    tess_free(inv_lambda);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bricks_are_split), cmocka_unit_test(test_imaging),
        cmocka_unit_test(test_continued),        cmocka_unit_test(test_prediction),
        cmocka_unit_test(test_given_up),         cmocka_unit_test(test_long_runs),
    };
    if (tess_comm_start(&argc, &argv, &world) != TESS_OK) return 1;
    rank = tess_comm_rank(world);
    size = tess_comm_size(world);
    TEST_ON_RANKS(world, tests);
    tess_comm_finish(world);
    return 0;
}
