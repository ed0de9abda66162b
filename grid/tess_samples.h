/** @file tess_samples.h
 *  Visibilities ready for gridding, and their order of work: runs sorted into bricks.
 */
#ifndef TESS_SAMPLES_H
#define TESS_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

enum { TESS_RESIDENT_MAX_WEIGHTS = 4 };

struct tess_density;
struct tess_samples;

/** Samples in the memory of a backend, which made them there. */
typedef struct tess_resident {
    void *samples; /**< the backend's own: tile_cuda_samples */
    double sum_weights[TESS_RESIDENT_MAX_WEIGHTS]; /**< [num_weight], of all samples */
    double w_min_lambda, w_max_lambda;             /**< of |w|, for prediction */
    /** What tess_density_add and tess_density_apply do to them. */
    tess_status (*add_density)(struct tess_resident *resident,
                               struct tess_density *density);
    tess_status (*apply_density)(struct tess_resident *resident,
                                 const struct tess_density *density);
    /** What tess_samples_scale does to them. */
    tess_status (*scale)(struct tess_resident *resident, double vis_factor,
                         double weight_factor);
    /** A copy of up to `most` rows from all over them, a channel of each: uvw_m are
     *  multiples of the wavelength, `vis` is undefined, `weight` 1 where samples have
     *  none. To be freed. */
    tess_status (*excerpt)(struct tess_resident *resident, int most,
                           struct tess_samples *out);
    void (*release)(struct tess_resident *resident);
} tess_resident;

/** Prepared visibilities: polarisations formed, natural or imaging weights in place,
 *  ignored ones of weight 0. Elements of `vis` and `weight` are float or double. Owned
 *  by whoever fills it; free with tess_samples_free. */
typedef struct tess_samples {
    bool is_double;
    int num_pol;    /**< visibilities per sample */
    int num_weight; /**< weights per sample: 1 (shared) or num_pol; 0: each weighs 1 */
    int64_t num_rows, num_vis;
    double *uvw_m;      /**< [num_rows][3] metres */
    int32_t *chan_base; /**< [num_rows] first channel in the channel table */
    int32_t *num_chan;  /**< [num_rows] */
    int64_t *vis_first; /**< [num_rows] index of the row's first sample */
    void *vis;          /**< [num_vis][num_pol][2] Jy */
    void *weight;       /**< [num_vis][num_weight]; NULL without weights */
    const double
        *inv_lambda; /**< [channels] freq/c [1/m], shared by all rows; borrowed */
    int64_t capacity_rows, capacity_vis;
    tess_resident *resident; /**< then the arrays above are NULL; NULL otherwise */
} tess_samples;

/** Consecutive channels of a row whose footprints start in the same brick. */
typedef struct tess_run {
    int64_t brick; /**< key */
    int64_t first; /**< index of the first sample */
    int32_t row;
    int32_t chan;   /**< channel table index of the first sample */
    int32_t count;  /**< samples */
    int32_t source; /**< rank it came from */
} tess_run;

/** Planes [first, end). */
typedef struct tess_plane_span {
    int32_t first, end;
} tess_plane_span;

/** Runs in order of brick, and where each brick begins. */
typedef struct tess_brick_list {
    int64_t num_runs, capacity_runs;
    tess_run *run;   /**< [num_runs], or NULL: only counted */
    tess_run *spare; /**< [capacity_runs] that sorting may use, or NULL */
    int64_t num_bricks;
    int64_t *key;            /**< [num_bricks] ascending */
    int64_t *first_run;      /**< [num_bricks + 1] */
    int64_t *num_vis;        /**< [num_bricks] samples */
    tess_plane_span *planes; /**< [num_bricks] that samples of a brick touch, or NULL */
    void *own;               /**< what a backend has made of the samples; then `run` and
                                  `first_run` may be NULL */
    void (*release)(void *own); /**< frees it */
} tess_brick_list;

struct tess_grid_plan;

/** TESS_ERR_RESOURCE for more rows than runs can number, which is done in 32 bits.
 *  Local. */
tess_status tess_samples_check_rows(int64_t num_rows);

/** Make room for at least this many rows and samples; keeps contents. TESS_ERR_ALLOC,
 *  and as tess_samples_check_rows. Local. */
tess_status tess_samples_reserve(tess_samples *samples, int64_t num_rows,
                                 int64_t num_vis);
void tess_samples_free(tess_samples *samples);

/** Multiply all visibilities and all weights by these factors; samples in the memory of
 *  a backend, which alone can fail, too. Local. */
tess_status tess_samples_scale(tess_samples *samples, double vis_factor,
                               double weight_factor, int num_threads);

/** One array of samples, as bytes. */
typedef struct tess_samples_part {
    void *data;
    int64_t bytes;
} tess_samples_part;

enum { TESS_SAMPLES_PARTS = 6 };

/** All arrays of samples, always in the same order: for whoever stores them. Local. */
void tess_samples_list(const tess_samples *samples,
                       tess_samples_part parts[TESS_SAMPLES_PARTS]);

/** Bytes per sample of `vis` and `weight` together. */
int64_t tess_samples_vis_bytes(const tess_samples *samples);

/** Cut rows [row_first, row_end) into runs appended to list->run (unsorted). Leading
 *  and trailing samples of weight 0 are left out when `skip_ignored`. `num_threads`
 *  threads, but always the same runs in (row, channel) order. Local. */
tess_status tess_brick_list_append(const struct tess_grid_plan *plan,
                                   const tess_samples *samples, int64_t row_first,
                                   int64_t row_end, bool skip_ignored, int num_threads,
                                   tess_brick_list *list);

/** Stable parallel radix sort of the runs by brick, then the index of bricks; frees
 *  `spare`. Local. */
tess_status tess_brick_list_sort(tess_brick_list *list, int num_threads);

/** The runs of one row, in order of channel, to `run`, which has room for num_chan[row]
 *  of them; returns how many. As tess_brick_list_append. Local. */
int32_t tess_runs_of_row(const struct tess_grid_plan *plan, const tess_samples *samples,
                         int64_t row, bool skip_ignored, tess_run *run);

/** Count what all rows have in each brick, without a list of runs: all that sorting
 *  would fill of an empty list but `run`. As tess_brick_list_append. Local. */
tess_status tess_brick_list_count(const struct tess_grid_plan *plan,
                                  const tess_samples *samples, bool skip_ignored,
                                  int num_threads, tess_brick_list *list);

/** As tess_brick_list_count, with the planes that each brick's samples touch. Local. */
tess_status tess_brick_list_count_planes(const struct tess_grid_plan *plan,
                                         const tess_samples *samples, bool skip_ignored,
                                         int num_threads, tess_brick_list *list);

/** Does 1/λ change in one direction throughout the rows' part of the channel table? It
 *  does in most data, and its range in a run is then that of its ends. Local. */
bool tess_samples_in_order(const tess_samples *samples);

/** Planes that the samples of a brick touch, by its runs; `in_order`:
 *  tess_samples_in_order(). Local. */
tess_plane_span tess_brick_list_planes(const struct tess_grid_plan *plan,
                                       const tess_samples *samples, bool in_order,
                                       const tess_brick_list *list, int64_t brick);

/** Cut bricks with more than `most` samples, and runs where they do, into several of
 *  the same key: the sum of each is then formed alone. Local. */
tess_status tess_brick_list_cut(tess_brick_list *list, int64_t most);

/** Bricks [first, end) are those of the block of planes that brick `first` belongs
 *  to; returns end. */
int64_t tess_brick_list_block_end(const struct tess_grid_plan *plan,
                                  const tess_brick_list *list, int64_t first);

void tess_brick_list_free(tess_brick_list *list);

/** Key of the brick in which a sample of this row and channel starts. */
int64_t tess_brick_key_of(const struct tess_grid_plan *plan, const double uvw_m[3],
                          double inv_lambda);

/** Samples of the longest of the rows [row_first, row_end). Local. */
int32_t tess_samples_longest_row(const tess_samples *samples, int64_t row_first,
                                 int64_t row_end);

#endif
