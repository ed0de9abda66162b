/** @file tess_checkpoint.h
 *  Checkpoint files hold the sums of an unfinished run. All ranks write them, and any
 *  number of ranks can read the sums. Each rank also writes data of its own, which only
 *  as many ranks as wrote can read.
 *
 *  A folder that all ranks see holds the last two checkpoints. A checkpoint is a
 *  generation: a file of rows for each rank, named by generation and rank, and a text
 *  with the number of the generation and everything else. The text of the last
 *  checkpoint is named `checkpoint`, that of the one before `checkpoint.previous`. A
 *  text gets its name after the files of its generation are complete, and files of
 * older generations are removed after that. Therefore `checkpoint` and the files that
 * it names are complete whenever the run is killed. Checksums find files that were
 * damaged later; the previous checkpoint is then used.
 */
#ifndef TESS_CHECKPOINT_H
#define TESS_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"
#include "tess_mover.h"
#include "tess_status.h"

/** Most means and rows of major cycles in a checkpoint. */
enum { TESS_CHECKPOINT_MEANS = 2048 };

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

/** The text of a checkpoint, which all ranks know. The rows are in other files. */
typedef struct tess_checkpoint_state {
    int64_t generation;         /**< 0: there is none */
    int64_t num_ranks;          /**< that have written */
    tess_checkpoint_file *file; /**< [num_ranks], owned */
    int64_t outputs_done;
    int64_t num_done; /**< of the next output: its planes times its images */
    char *done;       /**< [num_done] '1': is in the sums, '0': is not; owned */
    int64_t
        num_mean; /**< means of channels that have begun, and rows of major cycles */
    double mean_weight[TESS_CHECKPOINT_MEANS];   /**< sums of weights */
    double mean_response[TESS_CHECKPOINT_MEANS]; /**< sums of weights · responses */
    int64_t num_cycle;   /**< the last num_cycle of these are rows of major cycles */
    void *cycle;         /**< [cycle_bytes] state of major cycles; owned */
    int64_t cycle_bytes; /**< 0: an image is not being cleaned */
    char *identity;      /**< of the run: lines of text; owned */
    char *plan;          /**< one line, or ""; owned */
    bool from_previous;  /**< the newest is damaged: it is not to be kept */
} tess_checkpoint_state;

/** The data that this rank writes for itself, beside rows: `move` passes them to a
 *  mover. */
typedef struct tess_checkpoint_own {
    tess_status (*move)(void *context, tess_mover *mover);
    void *context;
    int64_t bytes; /**< out: number of bytes that were written */
} tess_checkpoint_own;

/** TESS_ERR_IO when a file that tessera did not make has a name in the folder that
 *  checkpoints need: such files are neither replaced nor removed. Local. */
tess_status tess_checkpoint_check_folder(const char *folder);

/** Write the checkpoint that follows state->generation, and increase that number. The
 *  checkpoint of the old number is kept; the one before it is removed. `sums` and
 * `mean` (doubles) may have 0 images; `own` may be NULL. When a rank cannot write its
 * file, all ranks get TESS_ERR_IO with the message of that rank, and `*no_room` says
 * whether full disks were the only cause. Both older checkpoints then still exist, the
 * files of the new one are removed, and the ranks may try again. Collective. */
tess_status tess_checkpoint_write(tess_comm *comm, const char *folder,
                                  tess_checkpoint_state *state,
                                  const tess_checkpoint_rows *sums,
                                  const tess_checkpoint_rows *mean,
                                  tess_checkpoint_own *own, bool *no_room);

/** Remove the files of killed runs that belong neither to the checkpoint that was read
 *  nor to the one before it. No rank may be writing. Collective. */
void tess_checkpoint_tidy(tess_comm *comm, const char *folder,
                          const tess_checkpoint_state *state);

/** Read the text of the newest checkpoint, and check that its files are complete.
 *  Generation 0 means that there is no checkpoint. When the newest is damaged, the
 *  function reads the previous one and logs a warning; TESS_ERR_INPUT when both are
 *  damaged. Free the state with tess_checkpoint_free(). Collective. */
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

/** Open the data that a rank has written for itself: `*mover` reads them from the
 *  beginning, or is NULL when there are none. The caller closes the mover; the file may
 *  be removed before that. Local. */
tess_status tess_checkpoint_open_own(const char *folder,
                                     const tess_checkpoint_state *state, int64_t rank,
                                     tess_mover **mover);
void tess_checkpoint_close_own(tess_mover *mover); /**< NULL is fine. Local. */

/** The run is complete: remove the files that tessera made, and the folder if it is
 *  empty then. Files that cannot be removed are not an error. Collective. */
void tess_checkpoint_remove(tess_comm *comm, const char *folder);

/** The size and the time of the last change of a file, as text. For a MeasurementSet,
 *  which is a folder, those of all files in it except the lock, which reading changes.
 *  False when the file does not exist. Local. */
bool tess_input_state(const char *path, char *text, int64_t size);

void tess_checkpoint_free(tess_checkpoint_state *state);

#endif
