/** @file pass_spool.h  (private to app/imager/)
 *  The passes of a visibility set that does not fit into memory, in a scratch file of
 *  this rank. Each pass has the samples that this rank owns, and their sorted bricks,
 *  so that reading a pass back replaces reading, weighting, sending and sorting it.
 */
#ifndef TESS_PASS_SPOOL_H
#define TESS_PASS_SPOOL_H

#include "tess_bricks.h"
#include "tess_samples.h"

typedef struct pass_spool pass_spool;

/** Create an empty spool on the file system of this folder, for samples of the kind of
 * `like`, whose channel table stays borrowed. TESS_ERR_IO: no file can be made there.
 * Local. */
tess_status pass_spool_create(const char *folder, const tess_samples *like,
                              pass_spool **spool);
void pass_spool_destroy(pass_spool *spool); /**< NULL is fine. Local. */

/** Append a pass. `bricks` are sorted, and no backend holds them in a form of its own.
 * TESS_ERR_IO, also if the disk is full. Local. */
tess_status pass_spool_write(pass_spool *spool, const tess_samples *samples,
                             const tess_brick_list *bricks);

/** Bytes written so far. Local. */
int64_t pass_spool_bytes(const pass_spool *spool);

/** Read pass k, and begin to read the next one. Samples and bricks belong to the spool,
 * and last until the next call. TESS_ERR_IO. Local. */
tess_status pass_spool_read(pass_spool *spool, int64_t k, tess_samples **samples,
                            tess_brick_list **bricks);

/** Free the memory of the pass that was read last. Local. */
void pass_spool_rest(pass_spool *spool);

#endif
