/* Shares the bricks among the ranks by their cost. */
#include "tess_partition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tess_mem.h"

/* A brick is hot, and may be split, above this share of a rank's part of its block. */
static const double HOT_SHARE = 0.02;

/* A cut: keys from (key, chunk) on belong to the next rank. */
typedef struct cut {
    int64_t key, chunk;
} cut;

struct tess_partition {
    tess_partition_opts opts;
    int num_ranks, ranks_per_group;
    int *group; /* [num_blocks] */
    cut *cuts;  /* [num_blocks][ranks_per_group − 1] */
    int64_t num_split;
    int64_t *split_key;   /* [num_split] ascending */
    int64_t *split_first; /* [num_split] */
    double largest_s, mean_s;
    int64_t own_vis; /* of this rank's bricks */
};

typedef struct brick_count {
    int64_t key, num_vis, num_runs;
} brick_count;

typedef struct found_cut {
    int64_t block, index;
    cut at;
} found_cut;

int tess_partition_divisor(int ranks, int limit)
{
    int best = 1;
    for (int d = 1; d <= ranks && d <= limit; ++d)
        if (ranks % d == 0) best = d;
    return best;
}

/* The largest load of a rank, in pieces, if `sharers` ranks share each piece. */
static double largest_load(int ranks, int pieces, int sharers)
{
    const int groups = ranks / sharers;
    return (double)((pieces + groups - 1) / groups) / sharers;
}

int tess_partition_sharers(int ranks, int pieces)
{
    const int fewest = ranks / tess_partition_divisor(ranks, pieces);
    double least = largest_load(ranks, pieces, fewest);
    if (fewest == 1) return 1;
    for (int f = fewest; f <= ranks; ++f)
        if (ranks % f == 0 && largest_load(ranks, pieces, f) < least)
            least = largest_load(ranks, pieces, f);
    for (int f = fewest; f < ranks; ++f)
        if (ranks % f == 0 && largest_load(ranks, pieces, f) <= 1.1 * least) return f;
    return ranks;
}

static int by_key(const void *a, const void *b)
{
    const brick_count *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static int64_t merge_equal_keys(brick_count *brick, int64_t n)
{
    int64_t out = 0;
    qsort(brick, (size_t)n, sizeof *brick, by_key);
    for (int64_t k = 0; k < n; ++k) {
        if (out > 0 && brick[out - 1].key == brick[k].key) {
            brick[out - 1].num_vis += brick[k].num_vis;
            brick[out - 1].num_runs += brick[k].num_runs;
        } else
            brick[out++] = brick[k];
    }
    return out;
}

/* Send every count to the rank that keeps this range of keys; merge there. */
static tess_status collect_histogram(tess_comm *comm, const tess_partition_opts *opts,
                                     const brick_count *count, int64_t n,
                                     brick_count **merged, int64_t *num_merged)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(comm);
    const int64_t keys = opts->num_blocks * opts->bricks_per_block;
    const int64_t per_rank = (keys + size - 1) / size;
    int64_t *bytes = tess_alloc_zero(2 * size, sizeof *bytes), total = 0;
    void *received = NULL;
    TESS_TRY(tess_comm_agree(comm, bytes ? TESS_OK : TESS_ERR_ALLOC));
    for (int64_t k = 0; k < n; ++k)
        bytes[count[k].key / per_rank] += (int64_t)sizeof *count;
    TESS_TRY(tess_comm_alltoallv(comm, count, bytes, &received, bytes + size));
    for (int k = 0; k < size; ++k)
        total += bytes[size + k];
    *merged = received;
    *num_merged = merge_equal_keys(received, total / (int64_t)sizeof *count);
cleanup:
    tess_free(bytes);
    return status;
}

/* The part of the cost that grows with the visibilities of a brick [s]. */
static double cost_of_vis(const tess_partition_opts *opts, const brick_count *brick)
{
    return opts->cost_vis_s * (double)brick->num_vis +
           opts->cost_run_s * (double)brick->num_runs;
}

/* Cost in nanoseconds, integer so that sums are exact. */
static int64_t cost_of(const tess_partition_opts *opts, const brick_count *brick)
{
    return 1 + (int64_t)(1e9 * (cost_of_vis(opts, brick) + opts->cost_brick_s));
}

/* Deal blocks to groups: a block goes where the middle of its cost falls. */
static void deal_blocks(tess_partition *partition, const int64_t *block_cost)
{
    const int groups = partition->opts.num_groups;
    double total = 0, before = 0;
    for (int64_t b = 0; b < partition->opts.num_blocks; ++b)
        total += (double)block_cost[b];
    for (int64_t b = 0; b < partition->opts.num_blocks; ++b) {
        const double middle = before + 0.5 * (double)block_cost[b];
        int g = total > 0 ? (int)(middle / total * groups) : 0;
        partition->group[b] = g < groups ? g : groups - 1;
        before += (double)block_cost[b];
    }
}

/* The cut at `target` inside a brick that spans cost [start, start + cost). */
static cut cut_inside(const tess_partition_opts *opts, const brick_count *brick,
                      double start, double cost, double target, double part)
{
    const int64_t chunks = (brick->num_vis + opts->chunk - 1) / opts->chunk;
    const double where = (target - start) / cost;
    const bool hot = opts->always_split || cost > HOT_SHARE * part;
    const int64_t chunk =
        hot ? (int64_t)llround(where * (double)chunks) : (where < 0.5 ? 0 : chunks);
    return chunk >= chunks ? (cut){brick->key + 1, 0} : (cut){brick->key, chunk};
}

/* Cuts that fall into this rank's range of keys. */
static tess_status find_cuts(const tess_partition *partition, const brick_count *brick,
                             int64_t n, const int64_t *block_cost,
                             const int64_t *cost_before, found_cut **found_out,
                             int64_t *num_found)
{
    tess_status status = TESS_OK;
    const int parts = partition->ranks_per_group;
    int64_t capacity = 0, count = 0, block = -1;
    double at = 0;
    found_cut *found = NULL;
    for (int64_t k = 0; k < n; ++k) {
        const int64_t b = brick[k].key / partition->opts.bricks_per_block;
        if (b != block) {
            block = b;
            at = (double)cost_before[b];
        }
        const double cost = (double)cost_of(&partition->opts, &brick[k]);
        const double part = (double)block_cost[b] / parts;
        for (int index = (int)(at / part); index < parts; ++index) {
            const double target = index * part;
            if (index < 1 || target < at) continue;
            if (target >= at + cost) break;
            if (tess_grow((void **)&found, &capacity, count + 1, sizeof *found))
                TESS_FAIL(TESS_ERR_ALLOC, "partition");
            found[count++] = (found_cut){
                b, index,
                cut_inside(&partition->opts, &brick[k], at, cost, target, part)};
        }
        at += cost;
    }
    *found_out = found;
    *num_found = count;
    found = NULL;
cleanup:
    tess_free(found);
    return status;
}

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Bricks with a cut inside, and the ordinal at which this rank's part begins. */
static tess_status list_splits(tess_partition *partition, tess_comm *comm,
                               const int64_t *key, const int64_t *num_vis, int64_t n)
{
    tess_status status = TESS_OK;
    const int64_t cuts = partition->opts.num_blocks * (partition->ranks_per_group - 1);
    partition->split_key = tess_alloc(cuts, sizeof *partition->split_key);
    partition->split_first = tess_alloc_zero(cuts, sizeof *partition->split_first);
    TESS_TRY(tess_comm_agree(comm, partition->split_key && partition->split_first
                                       ? TESS_OK
                                       : TESS_ERR_ALLOC));
    int64_t count = 0, unique = 0;
    for (int64_t k = 0; k < cuts; ++k)
        if (partition->cuts[k].chunk > 0)
            partition->split_key[count++] = partition->cuts[k].key;
    qsort(partition->split_key, (size_t)count, sizeof *partition->split_key, by_value);
    for (int64_t k = 0; k < count; ++k)
        if (unique == 0 || partition->split_key[unique - 1] != partition->split_key[k])
            partition->split_key[unique++] = partition->split_key[k];
    partition->num_split = unique;
    for (int64_t k = 0, at = 0; k < unique; ++k) {
        while (at < n && key[at] < partition->split_key[k])
            ++at;
        if (at < n && key[at] == partition->split_key[k])
            partition->split_first[k] = num_vis[at];
    }
    TESS_TRY(tess_comm_exscan_i64(comm, partition->split_first, unique));
cleanup:
    return status;
}

/* Load of a rank. */
typedef struct load {
    int64_t cost, num_vis;
} load;

static void add_load(const tess_partition *partition, const brick_count *brick,
                     load *of_rank)
{
    const int64_t chunk = partition->opts.chunk;
    const int64_t chunks = (brick->num_vis + chunk - 1) / chunk;
    if (tess_partition_split(partition, brick->key) < 0) {
        load *owner = &of_rank[tess_partition_owner(partition, brick->key, 0)];
        owner->cost += cost_of(&partition->opts, brick);
        owner->num_vis += brick->num_vis;
        return;
    }
    for (int64_t c = 0; c < chunks; ++c) {
        const int64_t rest = brick->num_vis - c * chunk,
                      n = rest < chunk ? rest : chunk;
        load *owner = &of_rank[tess_partition_owner(partition, brick->key, c * chunk)];
        owner->cost += (int64_t)(1e9 * cost_of_vis(&partition->opts, brick) *
                                 (double)n / (double)brick->num_vis);
        owner->num_vis += n;
    }
}

static tess_status measure_balance(tess_partition *partition, tess_comm *comm,
                                   const brick_count *brick, int64_t n)
{
    tess_status status = TESS_OK;
    load *of_rank = tess_alloc_zero(partition->num_ranks, sizeof *of_rank);
    TESS_TRY(tess_comm_agree(comm, of_rank ? TESS_OK : TESS_ERR_ALLOC));
    for (int64_t k = 0; k < n; ++k)
        add_load(partition, &brick[k], of_rank);
    TESS_TRY(tess_comm_allreduce_i64(comm, &of_rank[0].cost, 2 * partition->num_ranks,
                                     TESS_SUM));
    for (int k = 0; k < partition->num_ranks; ++k) {
        const double seconds = 1e-9 * (double)of_rank[k].cost;
        partition->mean_s += seconds / partition->num_ranks;
        if (seconds > partition->largest_s) partition->largest_s = seconds;
    }
    partition->own_vis = of_rank[tess_comm_rank(comm)].num_vis;
cleanup:
    tess_free(of_rank);
    return status;
}

static tess_status share_cuts(tess_partition *partition, tess_comm *comm,
                              const brick_count *brick, int64_t n)
{
    tess_status status = TESS_OK;
    const int size = partition->num_ranks;
    const int64_t blocks = partition->opts.num_blocks;
    int64_t *cost = tess_alloc_zero(2 * blocks, sizeof *cost), num_found = 0, total = 0;
    int64_t *bytes = tess_alloc_zero(size, sizeof *bytes);
    found_cut *found = NULL;
    void *all = NULL;
    TESS_TRY(tess_comm_agree(comm, cost && bytes ? TESS_OK : TESS_ERR_ALLOC));
    for (int64_t k = 0; k < n; ++k)
        cost[brick[k].key / partition->opts.bricks_per_block] +=
            cost_of(&partition->opts, &brick[k]);
    memcpy(cost + blocks, cost, (size_t)blocks * sizeof *cost);
    TESS_TRY(tess_comm_exscan_i64(comm, cost + blocks, blocks));
    TESS_TRY(tess_comm_allreduce_i64(comm, cost, blocks, TESS_SUM));
    deal_blocks(partition, cost);
    status = find_cuts(partition, brick, n, cost, cost + blocks, &found, &num_found);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_allgatherv(comm, found, num_found * (int64_t)sizeof *found, &all,
                                  bytes));
    for (int k = 0; k < size; ++k)
        total += bytes[k];
    const found_cut *each = all;
    for (int64_t k = 0; k < total / (int64_t)sizeof *each; ++k)
        partition->cuts[each[k].block * (partition->ranks_per_group - 1) +
                        each[k].index - 1] = each[k].at;
cleanup:
    tess_free(cost);
    tess_free(bytes);
    tess_free(found);
    tess_free(all);
    return status;
}

tess_status tess_partition_create(tess_comm *comm, const tess_partition_opts *opts,
                                  const int64_t *key, const int64_t *num_vis,
                                  const int64_t *first_run, int64_t n,
                                  tess_partition **partition_out)
{
    tess_status status = TESS_OK;
    brick_count *brick = NULL, *own = tess_alloc(n, sizeof *own);
    int64_t num_bricks = 0;
    tess_partition *partition = tess_alloc_zero(1, sizeof *partition);
    TESS_TRY(tess_comm_agree(comm, partition && own ? TESS_OK : TESS_ERR_ALLOC));
    for (int64_t k = 0; k < n; ++k)
        own[k] = (brick_count){key[k], num_vis[k],
                               first_run ? first_run[k + 1] - first_run[k] : 0};
    partition->opts = *opts;
    partition->num_ranks = tess_comm_size(comm);
    if (opts->num_groups < 1 || partition->num_ranks % opts->num_groups != 0)
        TESS_FAIL(TESS_ERR_USAGE, "%d ranks cannot form %d w-groups",
                  partition->num_ranks, opts->num_groups);
    partition->ranks_per_group = partition->num_ranks / opts->num_groups;
    const int64_t cuts = opts->num_blocks * (partition->ranks_per_group - 1);
    partition->group = tess_alloc_zero(opts->num_blocks, sizeof *partition->group);
    partition->cuts = tess_alloc(cuts, sizeof *partition->cuts);
    TESS_TRY(tess_comm_agree(
        comm, partition->group && partition->cuts ? TESS_OK : TESS_ERR_ALLOC));
    for (int64_t k = 0; k < cuts; ++k)
        partition->cuts[k] = (cut){INT64_MAX, 0};
    TESS_TRY(collect_histogram(comm, opts, own, n, &brick, &num_bricks));
    TESS_TRY(share_cuts(partition, comm, brick, num_bricks));
    TESS_TRY(list_splits(partition, comm, key, num_vis, n));
    TESS_TRY(measure_balance(partition, comm, brick, num_bricks));
    *partition_out = partition;
    partition = NULL;
cleanup:
    tess_free(own);
    tess_free(brick);
    tess_partition_destroy(partition);
    return status;
}

void tess_partition_destroy(tess_partition *partition)
{
    if (!partition) return;
    tess_free(partition->group);
    tess_free(partition->cuts);
    tess_free(partition->split_key);
    tess_free(partition->split_first);
    tess_free(partition);
}

int tess_partition_group(const tess_partition *partition, int64_t block)
{
    return partition->group[block];
}

int tess_partition_owner(const tess_partition *partition, int64_t key, int64_t ordinal)
{
    const int64_t block = key / partition->opts.bricks_per_block;
    const int parts = partition->ranks_per_group;
    const int64_t chunk = ordinal / partition->opts.chunk;
    const cut *cuts = partition->cuts + block * (parts - 1);
    int low = 0, high = parts - 1; /* cuts ascend */
    while (low < high) {
        const int middle = (low + high) / 2;
        const bool before = cuts[middle].key < key ||
                            (cuts[middle].key == key && cuts[middle].chunk <= chunk);
        if (before)
            low = middle + 1;
        else
            high = middle;
    }
    return partition->group[block] * parts + low;
}

int64_t tess_partition_split(const tess_partition *partition, int64_t key)
{
    int64_t low = 0, high = partition->num_split;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (partition->split_key[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low < partition->num_split && partition->split_key[low] == key ? low : -1;
}

int64_t tess_partition_split_first(const tess_partition *partition, int64_t split)
{
    return partition->split_first[split];
}

void tess_partition_balance(const tess_partition *partition, double *largest_s,
                            double *mean_s, int64_t *num_split)
{
    *largest_s = partition->largest_s;
    *mean_s = partition->mean_s;
    *num_split = partition->num_split;
}

int64_t tess_partition_num_vis(const tess_partition *partition)
{
    return partition->own_vis;
}
