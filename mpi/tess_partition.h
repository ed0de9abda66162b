/** @file tess_partition.h
 *  Distributes bricks over ranks. It knows the key, the number of visibilities and the
 *  cost of a brick, and nothing else of it.
 *
 *  P ranks form Pw w-groups of Pt ranks. The blocks of w-planes are dealt to the groups
 *  in contiguous ranges of equal cost; inside a block, the bricks in order of key (rows
 *  of tiles, so that a rank's bricks are neighbours and share halo lines) are cut into
 *  Pt parts of equal cost. A cut may fall inside a brick too hot for one rank, at a
 *  border between its fixed-size chunks: its ranks then hold partial sums of it. Bricks
 *  at the border between two groups spill W − 1 planes into the next group's range;
 *  their sums go to the owner of the plane's FFT like all others, so that no visibility
 *  is sent twice.
 *
 *  The histogram lives in pieces at the ranks (by ranges of key); only the cuts, Pt − 1
 *  a block, are known to all.
 */
#ifndef TESS_PARTITION_H
#define TESS_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"

typedef struct tess_partition_opts {
    int64_t num_blocks, bricks_per_block; /**< key = block·bricks_per_block + ... */
    int num_groups;                       /**< Pw; must divide the ranks */
    int64_t chunk;                        /**< visibilities a chunk */
    double cost_vis_s, cost_run_s, cost_brick_s; /**< [s] */
    bool always_split; /**< cut at chunks even when the brick is not hot (tests) */
} tess_partition_opts;

typedef struct tess_partition tess_partition;

/** Partition the bricks of all ranks. key[n] are the keys of this rank's bricks in
 *  ascending order, num_vis[n] the visibilities that it has in each of them. Those of
 *  brick k are in the runs first_run[k] to first_run[k + 1]; first_run is NULL when
 *  their number is not known. Collective. */
tess_status tess_partition_create(tess_comm *comm, const tess_partition_opts *opts,
                                  const int64_t *key, const int64_t *num_vis,
                                  const int64_t *first_run, int64_t n,
                                  tess_partition **partition);
void tess_partition_destroy(tess_partition *partition); /**< NULL is fine */

/** Rank that owns the `ordinal`-th visibility (over all ranks, in rank and row order)
 *  of a brick; the ordinal matters for split bricks only. Local. */
int tess_partition_owner(const tess_partition *partition, int64_t key, int64_t ordinal);

/** Number of a split brick, or -1 when the brick is whole; bricks with a cut inside are
 *  numbered from 0. Local. */
int64_t tess_partition_split(const tess_partition *partition, int64_t key);

/** Ordinal of this rank's first visibility in a split brick. Local. */
int64_t tess_partition_split_first(const tess_partition *partition, int64_t split);

/** w-group that owns a block. */
int tess_partition_group(const tess_partition *partition, int64_t block);

/** The number of visibilities in the bricks of this rank. */
int64_t tess_partition_num_vis(const tess_partition *partition);

/** The predicted cost of the most loaded rank and of the average one [s], and the
 *  number of split bricks. */
void tess_partition_balance(const tess_partition *partition, double *largest_s,
                            double *mean_s, int64_t *num_split);

/** The largest divisor of `ranks` that does not exceed `limit`, at least 1. */
int tess_partition_divisor(int ranks, int limit);

/** The number of ranks that share each of `pieces` equal pieces of work, a divisor of
 *  `ranks`. It is 1 while there is a piece for every rank. Otherwise it is the smallest
 *  number with which no rank has more than 1.1 times the work that it would have if
 * more ranks shared each piece. */
int tess_partition_sharers(int ranks, int pieces);

#endif
