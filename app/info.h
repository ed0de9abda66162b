/** @file info.h  (private to app/)
 *  What `tessera info` finds out about an observation, and prints.
 */
#ifndef TESS_INFO_H
#define TESS_INFO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tess_status.h"
#include "tess_vis.h"

/** A spectral window (IF) with correlations: consecutive channels of one number. */
typedef struct tess_info_spw {
    int spw;
    int64_t num_rows, num_chan;
    double first_hz;                 /**< centre of the first channel */
    double freq_min_hz, freq_max_hz; /**< edges */
    double chan_width_hz; /**< of the first channel; negative where frequencies
                               descend from channel to channel */
    int num_corr;
    tess_corr corr[TESS_MAX_CORR];
} tess_info_spw;

/** Row × channel × correlation, and why some are of no use. */
typedef struct tess_info_samples {
    int64_t all, flagged, weight_not_positive, not_finite;
} tess_info_samples;

/** Samples of a field in a window. */
typedef struct tess_info_cell {
    int field, spw; /**< index into meta->field and info->spw */
    tess_info_samples samples;
} tess_info_cell;

/** Statistics over rows; zero before use, end with tess_info_free(). */
typedef struct tess_info {
    bool has_flags;             /**< the samples were looked at */
    int64_t num_rows, num_auto; /**< autocorrelation rows */
    int64_t num_rows_total;     /**< in the file */
    tess_info_samples samples;  /**< of all cells */
    int num_cells;
    tess_info_cell *cell; /**< [num_cells] with samples; none where fields were not
                               looked at one by one */
    double min_baseline_m, max_baseline_m; /**< |uvw| of cross-correlations */
    double max_uv_lambda, max_w_lambda;
    double freq_min_hz, freq_max_hz;         /**< edges over all segments */
    double time_start_mjd_s, time_end_mjd_s; /**< from first begin to last end */
    int64_t num_times;                       /**< distinct time stamps */
    int num_spw;
    tess_info_spw *spw; /**< [num_spw] */
    double scale_rad;   /**< suggested, 0 = unknown */
    int64_t size;
    int64_t capacity_spw, capacity_cells, capacity_times; /**< private to the scan */
    double *time;                                         /**< likewise [num_times] */
} tess_info;

/** Add the rows of a reader, and its samples when `flags`; `by_field`: all are of the
 *  field that its meta names as selected. Local. */
tess_status tess_info_add(tess_vis_reader *reader, bool flags, bool by_field,
                          tess_info *info);

/** All has been added: times of the whole, and what to image. Local. */
void tess_info_finish(const tess_vis_meta *meta, tess_info *info);

/** Samples of no use. */
static inline int64_t tess_info_unusable(const tess_info_samples *samples)
{
    return samples->flagged + samples->weight_not_positive + samples->not_finite;
}

void tess_info_free(tess_info *info);

/** Print for people. `antennas`: list them all. */
void tess_info_print(FILE *out, const tess_vis_meta *meta, const tess_info *info,
                     bool antennas);

/** Print as JSON. */
tess_status tess_info_print_json(FILE *out, const tess_vis_meta *meta,
                                 const tess_info *info);


#endif
