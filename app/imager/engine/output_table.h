/** @file output_table.h  (private to app/imager/)
 *  The images of a run, and which samples make which of them.
 */
#ifndef TESS_OUTPUT_TABLE_H
#define TESS_OUTPUT_TABLE_H

#include "source.h"
#include "tess_comm.h"
#include "tess_imager_opts.h"
#include "tess_samples.h"

/** Extent of the visibilities that one image is made of, over all ranks. */
typedef struct imager_extent {
    int64_t num_vis;
    double w_min_lambda, w_max_lambda; /* of |w| */
    double w_span_lambda;  /* of several images: the smallest range of |w| of
                              one; < 0: w_max − w_min */
    double uvw_max_lambda; /* longest baseline */
    double freq_sum, freq_min, freq_max;
    double largest_weight; /* natural */
    double largest_vis_jy; /* real or imaginary part of a polarisation, without sign */
} imager_extent;

/** The images of a run, output channels × intervals, and what each is made of. Output
 *  channel c of interval t has number t · num_channels + c. */
typedef struct output_table {
    int64_t num_channels, num_intervals, num; /* num: all of them */
    int64_t num_chan;                         /* channels of the table */
    int32_t *chan_output;                     /* [num_chan] output channel of each */
    double *interval_begin;                   /* [num_intervals + 1] MJD s */
    double *interval_span; /* [num_intervals][2] start of the first integration and end
                              of the last, MJD s */
    imager_extent *extent; /* [num] of the good samples, in the end over all ranks */
    int64_t *num_held;     /* [num] samples, good or not, of this rank's slice */
    int64_t *row_first, *row_end; /* [num_intervals] rows seen are within this range */
    int64_t rows_seen;
} output_table;

/** Deal channels, and the times of the selection, to so many output channels and
 *  intervals. TESS_ERR_USAGE when there are too few of them. Collective. */
tess_status output_table_create(tess_comm *comm, tess_source *source,
                                const tess_selection *selection, int64_t num_channels,
                                int64_t num_intervals, output_table *outputs);
void output_table_free(output_table *outputs); /* Local. */

/** Survey: add what these rows, the next of this rank's slice, bring to each output.
 *  `row_time` may be NULL for a single interval. Local. */
tess_status output_table_add(output_table *outputs, const tess_samples *samples,
                             const double *row_time, const double *freq_hz,
                             int threads);

/** End of the survey: sum extents over ranks. Collective. */
tess_status output_table_sum(tess_comm *comm, output_table *outputs);

/** Warn, on one rank, of outputs that have no visibilities; nothing when all have.
 *  After output_table_sum. Local. */
void output_table_warn(const output_table *outputs);

/** What a plan that serves all outputs must cover; num_vis is the mean of the outputs
 *  that have any. Local. */
imager_extent output_table_union(const output_table *outputs);

/** Append the rows and channels of one output to `out`, from all rows of the survey
 *  with their times, or, without times, from rows that are all of its interval.
 *  Local. */
tess_status output_table_choose(const output_table *outputs, int64_t output,
                                const tess_samples *from, const double *row_time,
                                tess_samples *out);

/** Centre and width [Hz] of the band from the lowest to the highest edge of an output
 *  channel's channels, whether they have data or not; of all channels for -1. Local. */
void output_table_band(const output_table *outputs, const tess_source_info *info,
                       int64_t channel, double *centre_hz, double *width_hz);

/** Which channels of the table belong to an output channel, wanted[num_chan]. Local. */
void output_table_channels(const output_table *outputs, int64_t channel, bool *wanted);

/** Extent of one set of samples, added to `extent`. Ignored samples do not count when
 *  `skip_ignored`; else, for prediction, samples have no values, whose largest is not
 *  looked for. Local. */
void imager_extent_add(const tess_samples *samples, const double *freq_hz,
                       bool skip_ignored, int threads, imager_extent *extent);
imager_extent imager_extent_empty(void);

/** As imager_extent_add, for channels [begin, end) of one row. Local. */
void imager_extent_add_row(const tess_samples *samples, const double *freq_hz,
                           bool skip_ignored, int64_t row, int32_t begin, int32_t end,
                           imager_extent *extent);
void imager_extent_join(imager_extent *total, const imager_extent *extent);

/** Sum extents [count] over ranks. Collective. */
tess_status imager_extent_sum(tess_comm *comm, imager_extent *extent, int64_t count);

#endif
