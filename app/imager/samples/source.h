/** @file source.h  (private to app/imager/)
 *  The observations of a run as one stream of samples: every rank reads its own slice
 *  of rows, block by block, while a second thread reads the next block.
 */
#ifndef TESS_SOURCE_H
#define TESS_SOURCE_H

#include "channel_axis.h"
#include "prepare.h"
#include "tess_polar.h"
#include "tess_vis.h"

typedef struct tess_source tess_source;

enum { TESS_BLOCK_BYTES = 32 << 20 }; /**< of a file, at most; two are read at a time */

/** What the observations have in common. */
typedef struct tess_source_info {
    const tess_vis_meta *meta;   /**< of the first observation */
    double ra_rad, dec_rad;      /**< phase centre of the images */
    double turn[3];              /**< l, m, n − 1 of --shift, or 0 */
    int64_t num_rows;            /**< over all observations */
    int64_t num_vis;             /**< rows × channels */
    int64_t num_chan;            /**< of the channel table */
    const double *freq_hz;       /**< [num_chan] */
    const double *width_hz;      /**< [num_chan] */
    const double *inv_lambda;    /**< [num_chan] freq/c [1/m] */
    const channel_axis *axis;    /**< samples are in its channels; NULL: the files' */
    double time_first, time_end; /**< MJD s */
    int num_corr;                /**< correlations of the first segment */
    tess_corr corr[TESS_MAX_CORR];
    char data_column[64]; /**< columns of MeasurementSets, as in "MODEL, DATA"; or "" */
} tess_source_info;

/** Open observations. Errors: those of tess_vis_open; TESS_ERR_INPUT when phase centres
 *  differ and no centre is asked for; TESS_ERR_USAGE for an empty selection.
 *  Collective. */
tess_status tess_source_open(tess_comm *comm, const char *const *obs, int num_obs,
                             const tess_selection *selection, tess_source **source);
void tess_source_close(tess_source *source); /**< NULL is fine. Local. */

const tess_source_info *tess_source_info_of(const tess_source *source);

/** Say what samples are made: polarisations (correlations stay as they are), |u|,|v|
 *  limit (≤ 0: none), precision, threads, and bytes of a block, at most. TESS_ERR_USAGE
 *  when no segment has the correlations. Local. */
tess_status tess_source_setup(tess_source *source, const tess_pol *pol, int num_pol,
                              double uv_limit_lambda, bool is_double, int threads,
                              int64_t block_bytes);

/** Bytes of a block: at most those of setup. Local. */
int64_t tess_source_block_bytes(const tess_source *source);

/** The reading thread records its blocks there (borrowed; NULL: nowhere). Local. */
void tess_source_trace(tess_source *source, tess_trace *trace);

/** Only these channels of the table (borrowed; NULL: all), these times. Local. */
void tess_source_filter(tess_source *source, const bool *chan_wanted, double time_first,
                        double time_end);

/** From now on only blocks of the k-th reader are wanted; −1: of all. Local. */
void tess_source_choose_reader(tess_source *source, int k);
/** An empty set of samples of the kind that tess_source_next appends to. Local. */
tess_samples tess_source_samples(const tess_source *source);

/** From now on samples have one weight for all polarisations, the smallest. Local. */
void tess_source_share_weights(tess_source *source);
/** Blocks a pass has on this rank: those that may have wanted times, as far as an
 *  earlier pass has told. Local, after setup. */
int64_t tess_source_own_blocks(const tess_source *source);

/** Deal the rows to these ranks, some of those that have opened the source, anew; the
 *  communicator is borrowed. Times that were known of blocks are forgotten. Local. */
tess_status tess_source_deal(tess_source *source, tess_comm *comm);

/** The most of any rank; those with fewer get empty ones in the end. Collective. */
tess_status tess_source_num_blocks(tess_source *source, int64_t *num_blocks);

/** Nothing more is read for now: free the buffers. Local. */
void tess_source_rest(tess_source *source);
/** Start a pass over the data: its first block is read from here on, in the background,
 *  whatever the caller does meanwhile. Nothing when one was just started. Local. */
void tess_source_rewind(tess_source *source);

/** The same, from this block on: a continued run has taken the others. Local. */
void tess_source_skip_to(tess_source *source, int64_t block);

/** Passes that begin from now on read a block when it is asked for, by the threads that
 *  prepare it, or again in the background. For callers that do nothing else meanwhile:
 *  of two teams of threads on the same cores, each waits for the other while that is
 * idle. One thread reads in the background in any case. Local. */
void tess_source_read_in_turn(tess_source *source, bool in_turn);

/** Append the next block's samples. `row_time` as in tess_prepare_block, or NULL;
 *  `profile` counts visibilities when not NULL. Local; every rank must call it
 *  num_blocks times. */
tess_status tess_source_next(tess_source *source, tess_samples *samples,
                             double **row_time, tess_profile *profile);

/** Bytes of the blocks read so far, of this rank, once for each pass. Local. */
int64_t tess_source_bytes(const tess_source *source);
/** Rows and windows of this rank that are flagged: no continuum fits. Local. */
int64_t tess_source_num_unfit(const tess_source *source);

/** As tess_source_next, but hands out the raw block with its recipe, both until the
 *  next call, for prediction. `block` is NULL when this rank has no more. Local. */
tess_status tess_source_next_block(tess_source *source, tess_vis_block **block,
                                   const tess_recipe **recipe);

/** A block of this rank's slice as rows of its file that are decoded elsewhere. */
typedef struct tess_source_rows {
    const tess_recipe *recipe;
    tess_vis_reader *reader;
    int segment;
    int64_t row_first, num_rows, num_chan;
    tess_vis_raw raw;
} tess_source_rows;

/** Blocks of this rank's slice, whatever their times; and the k-th of them, false when
 *  its file cannot be read that way. Local, after setup. */
int64_t tess_source_num_spans(const tess_source *source);
bool tess_source_rows_of(const tess_source *source, int64_t k, tess_source_rows *rows);

/** A number (tess_hash.h) that tells which rows these blocks are. Local. */
uint64_t tess_source_spans_hash(const tess_source *source);

/** Add bytes that were read in this way to tess_source_bytes. Local. */
void tess_source_count_bytes(tess_source *source, int64_t bytes);

/** Segments of all observations; and the k-th of them with its recipe, NULL where it
 * has not the correlations asked for. Local, after setup. */
int tess_source_num_segments(const tess_source *source);
const tess_vis_segment *tess_source_segment(const tess_source *source, int k,
                                            const tess_recipe **recipe);
int tess_source_segment_reader(const tess_source *source, int k); /**< Its reader. */

/** A reader for each observation, or for each field that is read of one. Local. */
int tess_source_num_readers(const tess_source *source);
tess_vis_reader *tess_source_reader(const tess_source *source, int k);

/** Distinct integration times of the selected rows, ascending, on all ranks; allocated,
 *  owned by the caller. Reads the data once. Collective. */
tess_status tess_source_times(tess_source *source, double **times, int64_t *num_times);
/** Leave out every second one, if asked for. Reads the data. Collective. */
tess_status tess_source_choose_steps(tess_source *source);

/** Rows of this rank's slice and their samples, at most. Local. */
void tess_source_slice(const tess_source *source, int64_t *num_rows, int64_t *num_vis);

#endif
