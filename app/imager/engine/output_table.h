/** @file output_table.h  (private to app/imager/)
 *  The images of a run, and which samples make which of them.
 */
#ifndef TESS_OUTPUT_TABLE_H
#define TESS_OUTPUT_TABLE_H

#include "imager_extent.h"
#include "source.h"
#include "tess_comm.h"
#include "tess_imager_opts.h"
#include "tess_samples.h"

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

/** The same from rows that no survey has seen, with their times. Local. */
tess_status output_table_choose_rows(const output_table *outputs, int64_t output,
                                     const tess_samples *from, const double *row_time,
                                     tess_samples *out);

/** Put the visibilities that output_table_choose_rows has taken back where they came
 *  from, times `factor`. Local. */
void output_table_put_back(const output_table *outputs, int64_t output,
                           const tess_samples *chosen, const double *row_time,
                           double factor, tess_samples *to);

/** The output that a sample of this time and channel of the table goes to, −1: none.
 *  Local. */
int64_t output_table_of(const output_table *outputs, double time, int64_t chan);

/** Centre and width [Hz] of the band from the lowest to the highest edge of an output
 *  channel's channels, whether they have data or not; of all channels for -1. Local. */
void output_table_band(const output_table *outputs, const tess_source_info *info,
                       int64_t channel, double *centre_hz, double *width_hz);

/** Which channels of the table belong to an output channel, wanted[num_chan]. Local. */
void output_table_channels(const output_table *outputs, int64_t channel, bool *wanted);

#endif
