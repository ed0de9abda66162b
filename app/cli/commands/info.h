/** @file info.h  (private to app/cli/)
 *  The description of an observation that `tessera info` makes and prints.
 */
#ifndef TESS_INFO_H
#define TESS_INFO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tess_status.h"
#include "tess_vis.h"

/** A spectral window (IF): consecutive channels with one number and set of
 * correlations.
 */
typedef struct tess_info_spw {
    int spw;
    int64_t num_rows, num_chan;
    double first_hz;                 /**< centre of the first channel */
    double freq_min_hz, freq_max_hz; /**< edges */
    double chan_width_hz;            /**< width of the first channel; negative if the
                                          frequencies of the channels descend */
    int num_corr;
    tess_corr corr[TESS_MAX_CORR];
} tess_info_spw;

/** Counts of samples (row × channel × correlation), and of unusable ones by reason. */
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
    bool has_flags;             /**< the samples were read */
    int64_t num_rows, num_auto; /**< autocorrelation rows */
    int64_t num_rows_total;     /**< in the file */
    tess_info_samples samples;  /**< of all cells */
    int num_cells;
    tess_info_cell *cell; /**< [num_cells] cells with samples; none if fields were not
                               read one by one */
    double min_baseline_m, max_baseline_m; /**< |uvw| of cross-correlations */
    double max_uv_lambda, max_w_lambda;
    double freq_min_hz, freq_max_hz;         /**< edges over all segments */
    double time_start_mjd_s, time_end_mjd_s; /**< first start, last end */
    int64_t num_times;                       /**< distinct time stamps */
    int num_spw;
    tess_info_spw *spw; /**< [num_spw] */
    double scale_rad;   /**< suggested, 0 = unknown */
    int64_t size;
    int64_t capacity_spw, capacity_cells, capacity_times; /**< private to the scan */
    double *time;                                         /**< likewise [num_times] */
} tess_info;

/** Add the rows of a reader and, if `flags`, its samples. If `by_field`, all of them
 *  belong to the field that the reader's metadata name as selected. Local. */
tess_status tess_info_add(tess_vis_reader *reader, bool flags, bool by_field,
                          tess_info *info);

/** Finish after all rows were added: set the times, and suggest what to image. Local.
 */
void tess_info_finish(const tess_vis_meta *meta, tess_info *info);

/** The number of unusable samples. */
static inline int64_t tess_info_unusable(const tess_info_samples *samples)
{
    return samples->flagged + samples->weight_not_positive + samples->not_finite;
}

void tess_info_free(tess_info *info);

/** Print as text, with a list of the antennas if `antennas`. */
void tess_info_print(FILE *out, const tess_vis_meta *meta, const tess_info *info,
                     bool antennas);

/** Print as JSON. */
tess_status tess_info_print_json(FILE *out, const tess_vis_meta *meta,
                                 const tess_info *info);

#endif
