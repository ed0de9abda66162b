/** @file tess_checkpoint.h
 *  Checkpoint files: the sums of an unfinished run, written by all ranks, to be read by
 *  any number of them, and what each rank has for itself, for as many.
 *
 *  A folder, which all ranks see, holds the last two checkpoints: of each a file of
 * rows of each rank, named by generation and rank, and a text that names the generation
 * and has all else, `checkpoint`, and `checkpoint.previous` of the one before. It gets
 * its name last, when the files of its generation are complete; those of the last but
 * two are removed after that. So whatever is killed when, `checkpoint` is complete, and
 * so is what it names. Checksums find files that were damaged later; then the one
 * before serves.
 */
#ifndef TESS_CHECKPOINT_H
#define TESS_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"
#include "tess_mover.h"
#include "tess_status.h"

enum { TESS_CHECKPOINT_MEANS = 32 };

/** Rows [row_first, + num_rows) of `num` images of one size, on this rank. */
typedef struct tess_checkpoint_rows {
    int64_t row_first, num_rows, nx;
    int64_t value_bytes;
    int64_t num;
    const void *const *image; /**< [num] rows [num_rows][nx] */
} tess_checkpoint_rows;

/** What all ranks know; the rows are apart. */
typedef struct tess_checkpoint_state {
    int64_t generation; /**< 0: there is none */
    int64_t num_ranks;  /**< that have written */
    int64_t outputs_done;
    int64_t num_done; /**< of the next output: its planes times its images */
    char *done;       /**< [num_done] '1': is in the sums, '0': is not; owned */
    int64_t num_mean; /**< means of channels that have begun */
    double mean_weight[TESS_CHECKPOINT_MEANS];
    char *identity;     /**< of the run: lines of text; owned */
    char *plan;         /**< one line, or ""; owned */
    bool from_previous; /**< the newest is damaged: it is not to be kept */
} tess_checkpoint_state;

/** What this rank has for itself, beside rows: `move` writes it to a mover. */
typedef struct tess_checkpoint_own {
    tess_status (*move)(void *context, tess_mover *mover);
    void *context;
    int64_t bytes; /**< out: so many were written */
} tess_checkpoint_own;

/** Write a checkpoint, the successor of state->generation, which moves on. `sums` and
 *  `mean` (doubles) may have 0 images, `own` may be NULL. That one is kept, the one
 *  before it is removed. On failure (TESS_ERR_IO) both are still there. Collective. */
tess_status tess_checkpoint_write(tess_comm *comm, const char *folder,
                                  tess_checkpoint_state *state,
                                  const tess_checkpoint_rows *sums,
                                  const tess_checkpoint_rows *mean,
                                  tess_checkpoint_own *own);

/** Read what all ranks know, and check that all files are complete; generation 0 when
 *  there is no checkpoint. When the newest is damaged it is the one before, and a
 *  warning says so; TESS_ERR_INPUT when both are. Free it with tess_checkpoint_free().
 *  Collective. */
tess_status tess_checkpoint_read(tess_comm *comm, const char *folder,
                                 tess_checkpoint_state *state);

/** Add to rows [row_first, + num_rows) of image `k` of the sums, or of the means, what
 * the ranks have written of them, to `to` [num_rows][nx], float or double. Local. */
tess_status tess_checkpoint_add_sums(const char *folder,
                                     const tess_checkpoint_state *state, int64_t k,
                                     int64_t row_first, int64_t num_rows, void *to);
tess_status tess_checkpoint_add_mean(const char *folder,
                                     const tess_checkpoint_state *state, int64_t k,
                                     int64_t row_first, int64_t num_rows, double *to);

/** What one rank has written for itself: a mover that reads it, from its beginning, or
 *  NULL when there is none. Close it; the file may be removed before that. Local. */
tess_status tess_checkpoint_open_own(const char *folder,
                                     const tess_checkpoint_state *state, int64_t rank,
                                     tess_mover **mover);
void tess_checkpoint_close_own(tess_mover *mover); /**< NULL is fine. Local. */

/** The run is complete: remove it all, and the folder unless more is in it. Failures
 * are none. Collective. */
void tess_checkpoint_remove(tess_comm *comm, const char *folder);

/** Size and time of last change of a file, or of all in a folder (of a MeasurementSet;
 * not of its lock, which reading changes), as text; false when it is not there. Local.
 */
bool tess_input_state(const char *path, char *text, int64_t size);

void tess_checkpoint_free(tess_checkpoint_state *state);

#endif
