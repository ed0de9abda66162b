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

/** A spectral window (IF) of one segment: consecutive channels of one number. */
typedef struct tess_info_spw {
    int spw, segment;
    int64_t chan_first, num_chan;    /**< in the segment's channel table */
    double freq_min_hz, freq_max_hz; /**< edges */
    double chan_width_hz; /**< of the first channel; negative where frequencies
                               descend from channel to channel */
} tess_info_spw;

/** Statistics over rows; zero before use, end with tess_info_free(). */
typedef struct tess_info {
    bool has_flags;             /**< the samples were looked at */
    int64_t num_rows, num_auto; /**< autocorrelation rows */
    int64_t samples, flagged;   /**< row × channel × correlation */
    int64_t weight_not_positive, not_finite;
    double min_baseline_m, max_baseline_m; /**< |uvw| of cross-correlations */
    double max_uv_lambda, max_w_lambda;
    double freq_min_hz, freq_max_hz;         /**< edges over all segments */
    double time_start_mjd_s, time_end_mjd_s; /**< from first begin to last end */
    int64_t num_times;                       /**< distinct time stamps */
    int num_spw;
    tess_info_spw *spw; /**< [num_spw] */
    double scale_rad;   /**< suggested, 0 = unknown */
    int64_t size;
} tess_info;

/** Read the rows of a set, and its samples when `flags`. Local. */
tess_status tess_info_scan(tess_vis_reader *reader, bool flags, tess_info *info);

void tess_info_free(tess_info *info);

/** Print for people. `antennas`: list them all. */
void tess_info_print(FILE *out, const tess_vis_meta *meta, const tess_info *info,
                     bool antennas);

/** Print as JSON. */
tess_status tess_info_print_json(FILE *out, const tess_vis_meta *meta,
                                 const tess_info *info);

/** "2017-04-05 00:46:47.0" of MJD seconds UTC. */
void tess_info_time_text(double mjd_s, char *text, size_t size);

#endif
