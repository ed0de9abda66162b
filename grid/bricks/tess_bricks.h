/** @file tess_bricks.h
 *  The order of work of gridding: visibilities cut into runs, and runs sorted into
 *  bricks. A brick is a tile of cells over a block of w-planes. All functions are
 * Local.
 */
#ifndef TESS_BRICKS_H
#define TESS_BRICKS_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

typedef struct tess_samples tess_samples; /* tess_samples.h */

struct tess_grid_plan;

/** Consecutive channels of a row whose footprints start in the same brick. */
typedef struct tess_run {
    int64_t brick; /**< key of the brick */
    int64_t first; /**< index of the first sample */
    int32_t row;
    int32_t chan;   /**< index of the first sample's channel in the channel table */
    int32_t count;  /**< number of samples */
    int32_t source; /**< rank that sent the samples */
} tess_run;

/** Planes [first, end). */
typedef struct tess_plane_span {
    int32_t first, end;
} tess_plane_span;

/** Runs in the order of their bricks, and where each brick begins. */
typedef struct tess_brick_list {
    int64_t num_runs, capacity_runs;
    tess_run *run;   /**< [num_runs], or NULL: the runs are only counted */
    tess_run *spare; /**< [capacity_runs] work memory for sorting, or NULL */
    int64_t num_bricks;
    int64_t *key;            /**< [num_bricks] in ascending order */
    int64_t *first_run;      /**< [num_bricks + 1] */
    int64_t *num_vis;        /**< [num_bricks] number of samples */
    tess_plane_span *planes; /**< [num_bricks] planes that the samples of a brick touch,
                                  or NULL */
    void *own;               /**< a backend's own form of the samples, or NULL; with it,
                                  `run` and `first_run` may be NULL */
    void (*release)(void *own); /**< frees `own` */
} tess_brick_list;

/** Bricks [first, end) of a list. */
typedef struct tess_brick_range {
    const tess_brick_list *list;
    int64_t first, end;
} tess_brick_range;

/** Make room for the counts of `num_bricks` bricks in an empty list, without runs.
 *  TESS_ERR_ALLOC. */
tess_status tess_brick_list_make_counts(int64_t num_bricks, bool with_planes,
                                        tess_brick_list *list);

/** Key of the brick in which the footprint of a sample of this row and channel
 *  starts. */
int64_t tess_brick_key_of(const struct tess_grid_plan *plan, const double uvw_m[3],
                          double inv_lambda);

/** Cut rows [row_first, row_end) into runs, and append these to list->run, which is not
 *  sorted. With `skip_ignored`, samples of weight 0 at either end of a run are left
 * out. The runs are the same, in the order of rows and channels, for any number of
 *  threads. */
tess_status tess_brick_list_append(const struct tess_grid_plan *plan,
                                   const tess_samples *samples, int64_t row_first,
                                   int64_t row_end, bool skip_ignored, int num_threads,
                                   tess_brick_list *list);

/** Sort the runs by brick with a stable parallel radix sort, then make the index of
 *  bricks; frees `spare`. */
tess_status tess_brick_list_sort(tess_brick_list *list, int num_threads);

/** Write the runs of one row, in the order of channels, to `run`, which has room for
 *  num_chan[row] of them. The result is their number. `skip_ignored` is that of
 *  tess_brick_list_append(). */
int32_t tess_runs_of_row(const struct tess_grid_plan *plan, const tess_samples *samples,
                         int64_t row, bool skip_ignored, tess_run *run);

/** Count the runs and samples of all rows in each brick without making runs. The list
 * is empty before; afterwards it is as after sorting, without `run`. */
tess_status tess_brick_list_count(const struct tess_grid_plan *plan,
                                  const tess_samples *samples, bool skip_ignored,
                                  int num_threads, tess_brick_list *list);

/** The same, with the planes that the samples of each brick touch. */
tess_status tess_brick_list_count_planes(const struct tess_grid_plan *plan,
                                         const tess_samples *samples, bool skip_ignored,
                                         int num_threads, tess_brick_list *list);

/** Planes that the samples of a brick touch, found from its runs. `in_order` is the
 *  result of tess_samples_in_order(). */
tess_plane_span tess_brick_list_planes(const struct tess_grid_plan *plan,
                                       const tess_samples *samples, bool in_order,
                                       const tess_brick_list *list, int64_t brick);

/** Cut bricks with more than `most` samples into several bricks of the same key, and
 *  their runs where the cuts lie: each brick is then summed on its own. */
tess_status tess_brick_list_cut(tess_brick_list *list, int64_t most);

/** List the runs of those rows that are wanted[num_rows], in the order of another list,
 * and bricks that have any. `out` is zeroed. TESS_ERR_ALLOC. */
tess_status tess_brick_list_pick(const tess_brick_list *list, const bool *wanted,
                                 tess_brick_list *out);

/** Bricks [first, end) belong to the same block of planes as brick `first`; the result
 *  is `end`. */
int64_t tess_brick_list_block_end(const struct tess_grid_plan *plan,
                                  const tess_brick_list *list, int64_t first);

void tess_brick_list_free(tess_brick_list *list);

#endif
