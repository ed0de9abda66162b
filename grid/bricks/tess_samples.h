/** @file tess_samples.h
 *  Visibilities that are ready for gridding.
 */
#ifndef TESS_SAMPLES_H
#define TESS_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_origin.h"
#include "tess_real.h"
#include "tess_status.h"

enum { TESS_RESIDENT_MAX_WEIGHTS = 4 };

struct tess_density;
struct tess_samples;

/** Samples that a backend has made in its own memory. */
typedef struct tess_resident {
    void *samples; /**< the backend's own: tess_device_samples */
    double sum_weights[TESS_RESIDENT_MAX_WEIGHTS]; /**< [num_weight], of all samples */
    double largest_weight[TESS_RESIDENT_MAX_WEIGHTS]; /**< the same */
    double w_min_lambda, w_max_lambda;                /**< of |w|, for prediction */
    /** Do the work of tess_density_add() and tess_density_apply() on these samples. */
    tess_status (*add_density)(struct tess_resident *resident,
                               struct tess_density *density);
    tess_status (*apply_density)(struct tess_resident *resident,
                                 const struct tess_density *density);
    /** Do the work of tess_samples_scale() on these samples. */
    tess_status (*scale)(struct tess_resident *resident, double vis_factor,
                         double weight_factor);
    /** Copy one channel of up to `most` rows, spread over all samples, to host memory.
     *  In the copy, uvw_m is in wavelengths, `vis` is undefined, and `weight` is 1 if
     *  the samples have no weights. The caller frees it. */
    tess_status (*excerpt)(struct tess_resident *resident, int most,
                           struct tess_samples *out);
    /** Add Σ W ν/c over all weights of all samples to `*sum`. NULL: the samples have no
     *  weights. */
    tess_status (*add_frequencies)(struct tess_resident *resident, double *sum);
    /** Copy all samples to host memory, into `out`, whose kind is theirs, or which has
     *  no polarisations: then all but the visibilities. NULL: nothing asks for that. */
    tess_status (*bring_home)(struct tess_resident *resident, struct tess_samples *out);
    void (*release)(struct tess_resident *resident);
} tess_resident;

/** Prepared visibilities: polarisations have been formed, weights are natural or
 *  imaging weights, and an ignored visibility has weight 0. Elements of `vis` and
 *  `weight` are float or double. Whoever fills the struct owns it and frees it with
 *  tess_samples_free(). */
typedef struct tess_samples {
    bool is_double;
    int num_pol;    /**< visibilities per sample */
    int num_weight; /**< weights per sample: 1 (shared) or num_pol; 0: each weighs 1 */
    int64_t num_rows, num_vis;
    double *uvw_m;      /**< [num_rows][3] metres */
    int32_t *chan_base; /**< [num_rows] first channel in the channel table */
    int32_t *num_chan;  /**< [num_rows] */
    int64_t *vis_first; /**< [num_rows] index of the row's first sample */
    int32_t *origin;    /**< [num_rows] where the row comes from, in `origins`; NULL
                             without these */
    void *vis;          /**< [num_vis][num_pol][2] Jy */
    void *weight;       /**< [num_vis][num_weight]; NULL without weights */
    const double
        *inv_lambda; /**< [channels] freq/c [1/m], shared by all rows; borrowed */
    const tess_origins *origins; /**< what the numbers in `origin` mean, shared by all
                                      rows; borrowed. NULL: rows do not keep them */
    int64_t capacity_rows, capacity_vis;
    tess_resident *resident; /**< samples in the memory of a backend: the arrays above
                                are then NULL; or NULL */
} tess_samples;

/** No samples, of the same kind as these: as precise, with as many polarisations and
 *  weights, and the same channels and origins of rows. Local. */
tess_samples tess_samples_like(const tess_samples *samples);

/** Weight number `at` of all, in host memory: at = sample·num_weight + k. */
static inline double tess_samples_weight(const tess_samples *samples, int64_t at)
{
    return tess_real_at(samples->weight, samples->is_double, at);
}

/** Whether sample k, in host memory, is ignored: all of its weights are 0. Local.
 */
static inline bool tess_samples_ignored(const tess_samples *samples, int64_t k)
{
    if (samples->num_weight == 0) return false;
    for (int j = 0; j < samples->num_weight; ++j)
        if (tess_samples_weight(samples, k * samples->num_weight + j) != 0)
            return false;
    return true;
}

/** TESS_ERR_RESOURCE if there are more rows than a tess_run can number in 32 bits.
 *  Local. */
tess_status tess_samples_check_rows(int64_t num_rows);

/** Make room for at least this many rows and samples; the contents stay.
 *  TESS_ERR_ALLOC, and errors as of tess_samples_check_rows(). Local. */
tess_status tess_samples_reserve(tess_samples *samples, int64_t num_rows,
                                 int64_t num_vis);
void tess_samples_free(tess_samples *samples);

/** Multiply all visibilities and all weights by these factors, also those of samples in
 *  the memory of a backend; only the latter can fail. Local. */
tess_status tess_samples_scale(tess_samples *samples, double vis_factor,
                               double weight_factor, int num_threads);

/** One array of samples, as bytes. */
typedef struct tess_samples_part {
    void *data;
    int64_t bytes;
} tess_samples_part;

enum { TESS_SAMPLES_PARTS = 7 };

/** All arrays of the samples, always in the same order, to store them. Local. */
void tess_samples_list(const tess_samples *samples,
                       tess_samples_part parts[TESS_SAMPLES_PARTS]);

/** Bytes of a row beside its samples. */
int64_t tess_samples_row_bytes(const tess_samples *samples);

/** Bytes per sample of `vis` and `weight` together. */
int64_t tess_samples_vis_bytes(const tess_samples *samples);

/** Whether one weight of each sample is enough, because all of its weights agree.
 * Local.
 */
bool tess_samples_one_weight(const tess_samples *samples);

/** Whether 1/λ rises, or falls, throughout each row's part of the channel table. It
 *  does in most data; the ends of a run then have its smallest and its largest 1/λ.
 *  Local. */
bool tess_samples_in_order(const tess_samples *samples);

/** The number of samples in the longest of the rows [row_first, row_end). Local. */
int32_t tess_samples_longest_row(const tess_samples *samples, int64_t row_first,
                                 int64_t row_end);

#endif
