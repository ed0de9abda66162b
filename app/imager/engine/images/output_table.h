/** @file output_table.h  (private to app/imager/)
 *  The images of a run, and which samples make which of them.
 */
#ifndef TESS_OUTPUT_TABLE_H
#define TESS_OUTPUT_TABLE_H

#include "imager_extent.h"
#include "source.h"
#include "tess_channel_opts.h"
#include "tess_comm.h"
#include "tess_imager_opts.h"

/** The images of a run (output channels × intervals), and the samples that make each.
 * Output channel c of interval t has number t · num_channels + c. */
typedef struct output_table {
    int64_t num_channels, num_intervals, num; /* num: number of outputs */
    int64_t num_chan;                         /* channels of the source's table */
    int32_t *chan_output;                     /* [num_chan] output channel of each */
    int64_t *chan_range; /* [num_channels][2] the first channel of each output channel,
                            and the one behind its last; NULL: not known */
    double *interval_begin; /* [num_intervals + 1] MJD s */
    double *interval_span;  /* [num_intervals][2] start of the first integration and end
                               of the last, MJD s */
    imager_extent
        *extent; /* [num] extents of the good samples, in the end over all ranks */
    int64_t *num_held; /* [num] numbers of samples, good or not, of this rank's slice */
} output_table;

/** Divide channels, and the times of the selection, into `num_channels` output channels
 * and `num_intervals` intervals. Channels of one frequency stay together. `division`
 * may be NULL: equal numbers of channels. TESS_ERR_USAGE: there are too few of them.
 * Collective. */
tess_status output_table_create(tess_comm *comm, tess_source *source,
                                const tess_selection *selection, int64_t num_channels,
                                int64_t num_intervals,
                                const tess_channel_division *division,
                                output_table *outputs);
void output_table_free(output_table *outputs); /* Local. */

/** Survey: add these rows, which are the next ones of this rank's slice, to their
 * outputs. `row_time` may be NULL if there is one interval. Local. */
tess_status output_table_add(output_table *outputs, const tess_samples *samples,
                             const double *row_time, const double *freq_hz,
                             int threads);

/** End the survey: sum extents over ranks. Collective. */
tess_status output_table_sum(tess_comm *comm, output_table *outputs);

/** Warn, on one rank, of outputs without visibilities, if there are any. To be called
 * after output_table_sum. Local. */
void output_table_warn(const output_table *outputs);

/** The extent that a plan for all outputs must cover; num_vis is the mean of the
 * outputs that have any. Local. */
imager_extent output_table_union(const output_table *outputs);

/** Append the rows and channels of one output to `out`, of rows with their times; if
 * `row_time` is NULL, of rows of the output's interval alone. TESS_ERR_ALLOC. Local. */
tess_status output_table_choose_rows(const output_table *outputs, int64_t output,
                                     const tess_samples *from, const double *row_time,
                                     tess_samples *out);

/** The same of outputs [first, end), whose samples of a row stay together where their
 * channels are neighbours. (*out_time)[out->num_rows] gets the times of the rows; it is
 * from tess_alloc(), or NULL. TESS_ERR_ALLOC. Local. */
tess_status output_table_choose_range(const output_table *outputs, int64_t first,
                                      int64_t end, const tess_samples *from,
                                      const double *row_time, tess_samples *out,
                                      double **out_time);

/** Put visibilities, times `factor`, back to the places in `to` from which
 * output_table_choose_rows took them. Local. */
void output_table_put_back(const output_table *outputs, int64_t output,
                           const tess_samples *chosen, const double *row_time,
                           double factor, tess_samples *to);

/** The output to which a sample of this time and of this channel of the table belongs;
 * −1 if there is none. Local. */
int64_t output_table_of(const output_table *outputs, double time, int64_t chan);

/** The interval to which a time belongs; −1 if there is none. Local. */
int64_t output_table_interval(const output_table *outputs, double time);

/** Centre and width [Hz] of the band of an output channel (−1: of all output channels).
 * The band reaches from the lowest to the highest edge of its channels, whether they
 * have data or not. Local. */
void output_table_band(const output_table *outputs, const tess_source_info *info,
                       int64_t channel, double *centre_hz, double *width_hz);

/** Find the channels of the table that belong to an output channel, wanted[num_chan].
 * Local. */
void output_table_channels(const output_table *outputs, int64_t channel, bool *wanted);

/** Visibilities of the largest output, on all ranks. Local. */
int64_t output_table_most_vis(const output_table *outputs);

#endif
