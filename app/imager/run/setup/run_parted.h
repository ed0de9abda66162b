/** @file run_parted.h  (private to app/imager/run/)
 *  Samples of a run that do not fit into memory, parted by output on scratch.
 */
#ifndef TESS_RUN_PARTED_H
#define TESS_RUN_PARTED_H

#include "image_run.h"

/** Begin to part the samples that a first pass of `num_blocks` blocks will read, if
 * they are of several outputs and there is a folder for scratch. Without that, data
 * would be read again `reads` times. TESS_ERR_IO when no file can be made there.
 * Collective. */
tess_status image_part_start(image_run *run, int64_t num_blocks, double reads);

/** Whether the blocks before this one, of `num_blocks`, are whole batches of samples. A
 * batch is a block if nothing is parted. Local. */
bool image_part_ends(const image_run *run, int64_t block, int64_t num_blocks);

/** A batch of samples as it was read. */
typedef struct part_batch {
    tess_samples samples;
    double *row_time; /**< NULL if there is one interval */
    double since;     /**< when reading it began */
} part_batch;

/** Part a batch of samples, unless they could not be read (`read`), and subtract an
 * early model first. They are of no use then. Once the first batch has been written,
 * the run goes on with that only if reading it back is faster than reading the data
 * again. Collective. */
tess_status image_part_batch(image_run *run, tess_status read, part_batch *batch);

/** Read all data, and part them, if a run that is continued has surveyed them before.
 * Collective. */
tess_status image_part_again(image_run *run, int64_t num_blocks);

/** Read the samples of outputs [first, end) from scratch into run->all. Local. */
tess_status image_part_hold(image_run *run, int64_t first, int64_t end);

/** Samples stay in the observations after all. Local. */
void image_part_give_up(image_run *run);

#endif
