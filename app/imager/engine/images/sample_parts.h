/** @file sample_parts.h  (private to app/imager/)
 *  The samples of a rank's slice, parted by output: one pass puts the samples of an
 *  output next to one another. To take the samples of an output then takes a time that
 *  is in proportion to these samples, however many channels the rows have.
 *
 *  Rows stay in their order. Neighbouring rows of the same channels and interval are a
 *  *block*. Without parts, a block is a matrix [rows][channels]. With parts, it is a
 *  matrix [rows][channels of this stretch] for each stretch of channels that belong to
 *  one output channel, one matrix after the other.
 */
#ifndef TESS_SAMPLE_PARTS_H
#define TESS_SAMPLE_PARTS_H

#include "output_table.h"
#include "tess_samples.h"

/** Neighbouring channels [begin, end) of the source's table, or of a row, that belong
 * to one output channel. */
typedef struct channel_stretch {
    int32_t begin, end;
} channel_stretch;

/** Neighbouring rows of the same channels and the same interval. If an output channel
 * has several stretches in a row, a block has one row, so that an output's samples stay
 * in the order of rows. */
typedef struct sample_block {
    int64_t row_first, num_rows;
    int64_t interval; /**< −1: none */
} sample_block;

/** How samples are parted. Zeros: they are not. */
typedef struct sample_parts {
    channel_stretch *stretch; /**< of the source's table, output channel by output
                                 channel, in the order of channels */
    int64_t *first_stretch;   /**< [num_channels + 1] those of each output channel */
    int64_t *table_stretch;   /**< [num_chan] the number of the stretch of each channel
                                 of the source's table; −1: of no output channel */
    sample_block *block;
    int64_t num_blocks, capacity;
    int64_t *first_block, *end_block; /**< [num_intervals] a range that has all blocks
                                         of an interval */
    int64_t first_output, end_output; /**< outputs whose samples are parted: all, unless
                                         the caller knows better */
    int64_t num_batches;  /**< of samples that were read from scratch (parted_spool.h),
                             where those of an output lie next to one another in a whole
                             batch of blocks */
    int64_t *batch_block; /**< [num_batches + 1] the first block of each batch; NULL: of
                             other samples */
    int64_t *batch_vis;   /**< [num_batches][end_output − first_output + 1] the first
                             sample of each output in a batch; they end where those of
                             the next output begin */
} sample_parts;

/** Part samples, which are [num_vis] of a survey's rows, one row after the other, with
 * the times of the rows; `row_time` may be NULL if there is one interval.
 * TESS_ERR_ALLOC: the samples are then of no use. Local. */
tess_status sample_parts_make(const output_table *outputs, const double *row_time,
                              int threads, tess_samples *samples, sample_parts *parts);

/** Append the samples of an output to `out`, in the order of rows. `from` is what
 * sample_parts_make() has parted. TESS_ERR_ALLOC. Local. */
tess_status sample_parts_take(const sample_parts *parts, const output_table *outputs,
                              int64_t output, const tess_samples *from,
                              tess_samples *out);

/** Find which channels belong to the outputs, and nothing yet of any samples.
 * TESS_ERR_ALLOC. Local. */
tess_status sample_parts_start(const output_table *outputs, sample_parts *parts);

/** Where the samples of each output begin, first[outputs->num + 1], if they lie output
 * after output. Local. */
void sample_parts_count(const sample_parts *parts, const output_table *outputs,
                        const tess_samples *from, int64_t *first);

/** Copy the visibilities and the weights of an output to memory that has room for them.
 * With `one_weight`, the first weight of each sample alone. Local. */
void sample_parts_gather(const sample_parts *parts, const output_table *outputs,
                         int64_t output, const tess_samples *from, bool one_weight,
                         char *vis, char *weight);

/** Bytes of the parts beside the samples. Local. */
double sample_parts_bytes(const sample_parts *parts);
void sample_parts_free(sample_parts *parts); /**< Zeros are fine. Local. */

#endif
