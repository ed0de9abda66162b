/** @file raw_device.h  (private to app/imager/)
 *  Decoding of UVFITS rows on a device: bytes of the file to samples for the gridder,
 *  with what the survey wants to know of them, and predicted samples into the bytes.
 *  raw_device.cu, or tests/emulated/raw_emulated.c.
 */
#ifndef TESS_RAW_DEVICE_H
#define TESS_RAW_DEVICE_H

#include "tess_device_samples.h"
#include "tess_origin.h"
#include "tess_profile.h"
#include "tess_vis.h"
#include "uv_range.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    RAW_MAX_POL = 4,       /**< polarisations of a sample */
    RAW_MAX_MIX = 2,       /**< correlations of one polarisation */
    RAW_NO_POSITION = 1000 /**< reason of rows without finite uvw */
};

/** A polarisation from correlations; num 0: these cannot make it. */
typedef struct raw_mix {
    int num;
    int index[RAW_MAX_MIX];
    double re[RAW_MAX_MIX], im[RAW_MAX_MIX];
    int num_hands; /**< whose mean weight counts; 0: the smallest of index[num] */
    int hand[RAW_MAX_MIX];
} raw_mix;

/** Where the rows of an observation come from (tess_row_origins). */
typedef struct raw_origins {
    tess_origins all;       /**< of all observations */
    const int32_t *antenna; /**< device: number in these of each antenna's index; NULL:
                                 rows do not keep where they come from */
    int32_t field, stretch;
} raw_origins;

/** How rows lie (tess_vis_raw) and what is made of them (tess_recipe). Pointers are
 *  device memory. */
typedef struct raw_recipe {
    int64_t row_bytes, num_chan;
    tess_vis_param u_s, v_s, w_s, baseline, antenna1, antenna2, subarray, date;
    double utc_offset_s;
    const int64_t *chan_offset; /**< [num_chan] */
    int num_subarrays;
    const int64_t *map_first; /**< [num_subarrays + 1] of `map` */
    const int32_t *map;       /**< index of each antenna number, −1: unknown */
    raw_origins origins;
    int num_pol;
    raw_mix mix[RAW_MAX_POL];
    int32_t chan_base;
    const double *inv_lambda; /**< [num_chan] of the segment */
    uv_range range;
    bool rotate;
    double rotation[3][3];
} raw_recipe;

/** How predicted Stokes parameters become the correlations of a row. */
typedef struct raw_mixing {
    int num_corr, num_stokes;
    double re[TESS_MAX_CORR][4], im[TESS_MAX_CORR][4]; /**< [num_corr][num_stokes] */
} raw_mixing;

/** Sums over samples. The extremes, none of which is negative, are held as the bits of
 *  doubles, which have the order of unsigned integers. */
typedef struct raw_sums {
    unsigned long long ignored[TESS_NUM_IGNORED];
    unsigned long long good;   /**< samples with a weight in any polarisation */
    unsigned long long unlike; /**< samples whose polarisations differ in weight */
    unsigned long long w_min_bits, w_max_bits, uvw2_max_bits; /**< wavelengths */
    unsigned long long beyond_bits; /**< uv_range_reach of samples beyond the grid */
    unsigned long long weight_max_bits, vis_max_bits; /**< vis: of a part, no sign */
    unsigned long long bad_row; /**< least row of an unknown antenna; ~0: none */
    double weight[RAW_MAX_POL];
} raw_sums;

/** Rows in device memory, and where their samples are. */
typedef struct raw_rows {
    void *bytes; /**< [num_rows][row_bytes] */
    int64_t num_rows;
    int64_t row_at, vis_at; /**< the first row's number, and that of its first sample */
} raw_rows;

/** Decode rows into the samples, which have a weight for each polarisation, or the
 *  smallest of these: everything of them is written. Sums are added to device
 *  memory: `sums`, and the good samples of each channel of the table,
 *  good_of_chan[...]. Enqueued; Local. */
tess_status raw_decode(const raw_recipe *recipe, const raw_rows *rows,
                       const tess_device_samples *to, raw_sums *sums,
                       unsigned long long *good_of_chan);

/** Keep the first of each sample's weights in `first`, [num_vis] of device memory.
 *  Enqueued; Local. */
tess_status raw_first_weights(const tess_device_samples *samples, void *first);

/** Multiply all visibilities and weights by these factors. Enqueued; Local. */
tess_status raw_scale(const tess_device_samples *samples, double vis_factor,
                      double weight_factor);

/** Add Σ W ν/c over all weights of the samples to the double `sum` in device memory.
 *  Enqueued; Local. */
tess_status raw_add_frequencies(const tess_device_samples *samples, double *sum);

/** For prediction: only where the rows lie. In the sums, samples with a position are
 *  good, and |w| is taken at inv_min and inv_max, the shortest and the longest
 *  wavelength's; a row without one lies at 0. Enqueued; Local. */
tess_status raw_positions(const raw_recipe *recipe, const raw_rows *rows,
                          double inv_min, double inv_max, const tess_device_samples *to,
                          raw_sums *sums);

/** Replace the visibilities in the rows by those predicted, from->vis; 0 for a row
 *  without a position. Enqueued; Local. */
tess_status raw_encode(const raw_recipe *recipe, const raw_mixing *mixing,
                       const raw_rows *rows, const tess_device_samples *from);

#ifdef __cplusplus
}
#endif
#endif
