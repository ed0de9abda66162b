/* Who owns which brick: everybody agrees, parts are contiguous and balanced, bricks are
 * cut at chunks only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "draw.h"
#include "rank_tests.h"
#include "tess_mem.h"
#include "tess_partition.h"

enum { BLOCKS = 5, BRICKS = 40, KEYS = BLOCKS * BRICKS, MOST_RANKS = 16, CHUNK = 32 };

static const double COST_VIS_S = 1e-7, COST_BRICK_S = 2e-6;

static tess_comm *world;
static int rank, size;

/* Visibilities of every rank in every brick, known to all. */
typedef struct histogram {
    int64_t count[MOST_RANKS][KEYS];
    int64_t total[KEYS];
} histogram;

typedef enum shape { EVEN, HOT, ONE_BRICK, EMPTY, ONE_RANK } shape;

static int64_t draw_count(draw *random, shape is, int owner, int key)
{
    switch (is) {
    case EVEN:
        return draw_index(random, 50);
    case HOT: /* one brick of a block holds most, many hold nothing */
        return key % BRICKS == 17      ? 2000 + draw_index(random, 500)
               : draw_index(random, 3) ? 0
                                       : draw_index(random, 20);
    case ONE_BRICK:
        return key == 2 * BRICKS + 3 ? 1000 : 0;
    case ONE_RANK:
        return owner == 1 ? draw_index(random, 100) : 0;
    case EMPTY:
        break;
    }
    return 0;
}

static histogram *make_histogram(shape is)
{
    draw random = {8 + (uint64_t)is};
    histogram *h = calloc(1, sizeof *h);
    assert_non_null(h);
    for (int r = 0; r < size; ++r)
        for (int k = 0; k < KEYS; ++k) {
            h->count[r][k] = draw_count(&random, is, r, k);
            h->total[k] += h->count[r][k];
        }
    return h;
}

static tess_partition_opts options(int groups, bool always_split)
{
    return (tess_partition_opts){.num_blocks = BLOCKS,
                                 .bricks_per_block = BRICKS,
                                 .num_groups = groups,
                                 .chunk = CHUNK,
                                 .cost_vis_s = COST_VIS_S,
                                 .cost_brick_s = COST_BRICK_S,
                                 .always_split = always_split};
}

static tess_partition *make_partition(const histogram *h,
                                      const tess_partition_opts *opts)
{
    int64_t key[KEYS], num_vis[KEYS], n = 0;
    tess_partition *partition = NULL;
    for (int64_t k = 0; k < KEYS; ++k)
        if (h->count[rank][k] > 0) {
            key[n] = k;
            num_vis[n++] = h->count[rank][k];
        }
    assert_int_equal(
        tess_partition_create(world, opts, key, num_vis, NULL, n, &partition), TESS_OK);
    return partition;
}

/* Owners never go back along a block, stay in its group, and change at chunks. */
static void check_owners(const histogram *h, const tess_partition *partition,
                         int groups)
{
    const int per_group = size / groups;
    int last_group = 0;
    for (int64_t block = 0; block < BLOCKS; ++block) {
        const int group = tess_partition_group(partition, block);
        assert_in_range(group, last_group, groups - 1);
        last_group = group;
        int last = group * per_group;
        for (int64_t key = block * BRICKS; key < (block + 1) * BRICKS; ++key) {
            const int first = tess_partition_owner(partition, key, 0);
            for (int64_t at = 0; at < h->total[key]; ++at) {
                const int owner = tess_partition_owner(partition, key, at);
                assert_in_range(owner, last, (group + 1) * per_group - 1);
                if (owner != last && at > 0) assert_int_equal(at % CHUNK, 0);
                if (tess_partition_split(partition, key) < 0)
                    assert_int_equal(owner, first);
                last = owner;
            }
        }
    }
}

/* Ordinals of a split brick run on from rank to rank. */
static void check_splits(const histogram *h, const tess_partition *partition)
{
    int64_t count = 0, num_split;
    double largest, mean;
    for (int64_t key = 0; key < KEYS; ++key) {
        const int64_t split = tess_partition_split(partition, key);
        if (split < 0) continue;
        assert_int_equal(split, count++); /* numbered in order */
        int64_t before = 0;
        for (int r = 0; r < rank; ++r)
            before += h->count[r][key];
        assert_int_equal(tess_partition_split_first(partition, split), before);
    }
    tess_partition_balance(partition, &largest, &mean, &num_split);
    assert_int_equal(num_split, count);
    assert_true(largest >= mean * (1 - 1e-12));
}

/* All ranks have the same owners. */
static void check_agreement(const histogram *h, const tess_partition *partition)
{
    int64_t owner[2 * KEYS];
    for (int64_t key = 0; key < KEYS; ++key) {
        owner[2 * key] = tess_partition_owner(partition, key, 0);
        owner[2 * key + 1] = tess_partition_owner(partition, key, h->total[key] / 2);
    }
    int64_t least[2 * KEYS];
    for (int k = 0; k < 2 * KEYS; ++k)
        least[k] = owner[k];
    assert_int_equal(tess_comm_allreduce_i64(world, least, 2 * KEYS, TESS_MIN),
                     TESS_OK);
    for (int k = 0; k < 2 * KEYS; ++k)
        assert_int_equal(least[k], owner[k]);
}

static void test_owners(void **state)
{
    for (int is = EVEN; is <= ONE_RANK; ++is)
        for (int groups = 1; groups <= size; ++groups)
            for (int split = 0; split < 2; ++split) {
                if (size % groups != 0) continue;
                const tess_partition_opts opts = options(groups, split);
                histogram *h = make_histogram((shape)is);
                tess_partition *partition = make_partition(h, &opts);
                check_owners(h, partition, groups);
                check_splits(h, partition);
                check_agreement(h, partition);
                tess_partition_destroy(partition);
                free(h);
            }
}

/* With bricks cut at will, each cut is off its place by half a chunk at most: a part of
 * a block exceeds its share by a chunk, and by a brick's own cost at either end (a
 * brick's cost is spread over its chunks when the cut is placed, but is paid whole). */
static void test_balance(void **state)
{
    for (int is = EVEN; is <= HOT; ++is) {
        const tess_partition_opts opts = options(1, true);
        histogram *h = make_histogram((shape)is);
        tess_partition *partition = make_partition(h, &opts);
        for (int64_t block = 0; block < BLOCKS; ++block) {
            double cost[MOST_RANKS] = {0}, sum = 0;
            for (int64_t key = block * BRICKS; key < (block + 1) * BRICKS; ++key) {
                if (h->total[key] > 0) {
                    cost[tess_partition_owner(partition, key, 0)] += COST_BRICK_S;
                    sum += COST_BRICK_S;
                }
                for (int64_t at = 0; at < h->total[key]; ++at) {
                    cost[tess_partition_owner(partition, key, at)] += COST_VIS_S;
                    sum += COST_VIS_S;
                }
            }
            const double slack = CHUNK * COST_VIS_S + 2 * COST_BRICK_S;
            for (int r = 0; r < size; ++r)
                assert_true(cost[r] <= sum / size + slack);
        }
        tess_partition_destroy(partition);
        free(h);
    }
}

/* A hot brick is cut among several ranks; evenly filled ones are not cut needlessly. */
static void test_hot_brick(void **state)
{
    const tess_partition_opts opts = options(1, false);
    histogram *h = make_histogram(HOT);
    tess_partition *partition = make_partition(h, &opts);
    if (size > 1) {
        assert_true(tess_partition_split(partition, 17) >= 0);
        assert_true(tess_partition_owner(partition, 17, 0) <
                    tess_partition_owner(partition, 17, h->total[17] - 1));
    } else
        assert_int_equal(tess_partition_split(partition, 17), -1);
    tess_partition_destroy(partition);
    free(h);
}

static void test_bad_groups(void **state)
{
    const tess_partition_opts opts = options(size + 1, false);
    tess_partition *partition = NULL;
    tess_error_clear();
    assert_int_equal(
        tess_partition_create(world, &opts, NULL, NULL, NULL, 0, &partition),
        TESS_ERR_USAGE);
    assert_null(partition);
    tess_error_clear();
}

static void test_divisor(void **state)
{
    assert_int_equal(tess_partition_divisor(12, 5), 4);
    assert_int_equal(tess_partition_divisor(12, 100), 12);
    assert_int_equal(tess_partition_divisor(7, 6), 1);
    assert_int_equal(tess_partition_divisor(12, 0), 1);
    assert_int_equal(tess_partition_divisor(1, -3), 1);
}

static void test_sharers(void **state)
{
    assert_int_equal(tess_partition_sharers(8, 24), 1);
    assert_int_equal(tess_partition_sharers(16, 24), 1);
    assert_int_equal(tess_partition_sharers(32, 16), 2);
    assert_int_equal(tess_partition_sharers(32, 24), 4); /* two would have two each */
    assert_int_equal(tess_partition_sharers(7, 6), 7);
    assert_int_equal(tess_partition_sharers(12, 1), 12);
    assert_int_equal(tess_partition_sharers(1, 1), 1);
    assert_int_equal(tess_partition_sharers(36, 35), 2); /* 2/2 against 35/36 */
}

/* Bricks of as many visibilities, in runs of one in the first half of a block and of
 * ten in the second: where runs cost something, fewer of the first are a rank's share.
 */
static void test_runs_cost(void **state)
{
    enum { VIS = 100, COST_OF_RUN = 3 }; /* in visibilities */
    tess_partition_opts opts = options(1, true);
    int64_t key[BRICKS], num_vis[BRICKS], first_run[BRICKS + 1] = {0};
    double cost[64] = {0}, mean = 0, predicted, predicted_mean;
    int64_t num_split, own_vis = 0;
    tess_partition *partition = NULL;
    opts.cost_run_s = COST_OF_RUN * COST_VIS_S;
    for (int64_t k = 0; k < BRICKS; ++k) {
        key[k] = k;
        num_vis[k] = VIS;
        first_run[k + 1] = first_run[k] + (k < BRICKS / 2 ? VIS : VIS / 10);
    }
    assert_int_equal(tess_partition_create(world, &opts, key, num_vis, first_run,
                                           BRICKS, &partition),
                     TESS_OK);
    for (int64_t k = 0; k < BRICKS; ++k) /* every rank has as much of each */
        for (int64_t at = 0; at < VIS * size; ++at) {
            const int owner = tess_partition_owner(partition, k, at);
            cost[owner] += 1 + (k < BRICKS / 2 ? 1.0 : 0.1) * COST_OF_RUN;
            own_vis += owner == rank;
        }
    assert_int_equal(tess_partition_num_vis(partition), own_vis);
    for (int r = 0; r < size; ++r)
        mean += cost[r] / size;
    /* cuts are at chunks, one at each end of a rank's part */
    for (int r = 0; r < size; ++r)
        assert_true(fabs(cost[r] - mean) <= 2 * CHUNK * (1 + COST_OF_RUN));
    tess_partition_balance(partition, &predicted, &predicted_mean, &num_split);
    for (int r = 0; r < size; ++r) /* the bricks' own cost is small beside */
        assert_true(cost[r] * COST_VIS_S <=
                    predicted + BRICKS * COST_BRICK_S + 1e-9 * BRICKS);
    tess_partition_destroy(partition);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_cost),  cmocka_unit_test(test_owners),
        cmocka_unit_test(test_balance),    cmocka_unit_test(test_hot_brick),
        cmocka_unit_test(test_bad_groups), cmocka_unit_test(test_divisor),
        cmocka_unit_test(test_sharers),
    };
    if (tess_comm_start(&argc, &argv, &world) != TESS_OK) return 1;
    rank = tess_comm_rank(world);
    size = tess_comm_size(world);
    TEST_ON_RANKS(world, tests);
    tess_comm_finish(world);
    return 0;
}
