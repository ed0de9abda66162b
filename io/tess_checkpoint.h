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

enum { TESS_CHECKPOINT_MEANS = 80 };

/** Rows [row_first, + num_rows) of `num` images of one size, on this rank. */
typedef struct tess_checkpoint_rows {
    int64_t row_first, num_rows, nx;
    int64_t value_bytes;
    int64_t num;
    const void *const *image; /**< [num] rows [num_rows][nx] */
} tess_checkpoint_rows;

/** A rank's file, as the text tells of it. */
typedef struct tess_checkpoint_file {
    int64_t bytes;
    uint64_t checksum;
} tess_checkpoint_file;

/** What all ranks know; the rows are apart. */
typedef struct tess_checkpoint_state {
    int64_t generation;         /**< 0: there is none */
    int64_t num_ranks;          /**< that have written */
    tess_checkpoint_file *file; /**< [num_ranks], owned */
    int64_t outputs_done;
    int64_t num_done; /**< of the next output: its planes times its images */
    char *done;       /**< [num_done] '1': is in the sums, '0': is not; owned */
    int64_t
        num_mean; /**< means of channels that have begun, and rows of major cycles */
    double mean_weight[TESS_CHECKPOINT_MEANS];
    int64_t num_cycle;   /**< of these: the last so many are rows of major cycles */
    void *cycle;         /**< [cycle_bytes] state of major cycles; owned */
    int64_t cycle_bytes; /**< 0: an image is not being cleaned */
    char *identity;      /**< of the run: lines of text; owned */
    char *plan;          /**< one line, or ""; owned */
    bool from_previous;  /**< the newest is damaged: it is not to be kept */
} tess_checkpoint_state;

/** What this rank has for itself, beside rows: `move` writes it to a mover. */
typedef struct tess_checkpoint_own {
    tess_status (*move)(void *context, tess_mover *mover);
    void *context;
    int64_t bytes; /**< out: so many were written */
} tess_checkpoint_own;

/** See that every name in the folder that checkpoints need is free, or that of a file
 *  which tessera made: others' files are neither replaced nor removed. TESS_ERR_IO.
 *  Local. */
tess_status tess_checkpoint_check_folder(const char *folder);

/** Write a checkpoint, the successor of state->generation, which moves on. `sums` and
 *  `mean` (doubles) may have 0 images, `own` may be NULL. That one is kept, the one
 *  before it is removed. When a rank cannot write its file all ranks get TESS_ERR_IO
 *  with its message, `*no_room` when no more than room was lacking anywhere; then both
 *  checkpoints are still there, nothing of the new one is, and the ranks may try again.
 *  Collective. */
tess_status tess_checkpoint_write(tess_comm *comm, const char *folder,
                                  tess_checkpoint_state *state,
                                  const tess_checkpoint_rows *sums,
                                  const tess_checkpoint_rows *mean,
                                  tess_checkpoint_own *own, bool *no_room);

/** Remove what killed runs have left beside the checkpoint that was read, and the one
 *  before it. No rank may be writing. Collective. */
void tess_checkpoint_tidy(tess_comm *comm, const char *folder,
                          const tess_checkpoint_state *state);

/** Read what all ranks know, and check that all files are complete; generation 0 when
 *  there is no checkpoint. When the newest is damaged it is the one before, and a
 *  warning says so; TESS_ERR_INPUT when both are. Free it with tess_checkpoint_free().
 *  Collective. */
tess_status tess_checkpoint_read(tess_comm *comm, const char *folder,
                                 tess_checkpoint_state *state);

/** From a text of `bytes` characters, which is followed by '\0', to what it tells; its
 *  checksum is not looked at. `name` is for messages. TESS_ERR_INPUT. Local. */
tess_status tess_checkpoint_parse(const char *name, const char *text, int64_t bytes,
                                  tess_checkpoint_state *state);

/** Add what the ranks have written of the wanted rows of image `k` of the sums, or of
 *  the means, to `to` [wanted->num_rows][wanted->nx]. `wanted` tells how many images
 *  there are, and their size and type: TESS_ERR_INPUT when the checkpoint's are others.
 *  Local. */
tess_status tess_checkpoint_add_sums(const char *folder,
                                     const tess_checkpoint_state *state, int64_t k,
                                     const tess_checkpoint_rows *wanted, void *to);
tess_status tess_checkpoint_add_mean(const char *folder,
                                     const tess_checkpoint_state *state, int64_t k,
                                     const tess_checkpoint_rows *wanted, double *to);

/** What one rank has written for itself: a mover that reads it, from its beginning, or
 *  NULL when there is none. Close it; the file may be removed before that. Local. */
tess_status tess_checkpoint_open_own(const char *folder,
                                     const tess_checkpoint_state *state, int64_t rank,
                                     tess_mover **mover);
void tess_checkpoint_close_own(tess_mover *mover); /**< NULL is fine. Local. */

/** The run is complete: remove all that tessera made, and the folder unless more is in
 *  it. Failures are none. Collective. */
void tess_checkpoint_remove(tess_comm *comm, const char *folder);

/** Size and time of last change of a file, or of all in a folder (of a MeasurementSet;
 * not of its lock, which reading changes), as text; false when it is not there. Local.
 */
bool tess_input_state(const char *path, char *text, int64_t size);

void tess_checkpoint_free(tess_checkpoint_state *state);

#endif
