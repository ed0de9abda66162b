/** @file spool.h  (private to app/imager/)
 *  Samples in a scratch file of this rank, if they do not fit into memory: the sets in
 *  which they are read, or the passes in which they are gridded. A pass has sorted
 *  bricks, too, so that reading it back replaces reading, weighting, sending and
 * sorting it. The file has no name: it goes when the program ends, however it does.
 */
#ifndef TESS_SPOOL_H
#define TESS_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_bricks.h"
#include "tess_status.h"

typedef struct tess_spool tess_spool;

/** An empty spool on the file system of this folder. TESS_ERR_IO when no file can be
 *  made there. Local. */
tess_status tess_spool_create(const char *folder, tess_spool **spool);
void tess_spool_destroy(tess_spool *spool); /**< NULL is fine. Local. */

/** Append samples and their bricks, or samples alone (`bricks` NULL). All records of a
 *  spool are of one kind. The bricks are sorted, and no backend holds them in a form of
 *  its own. TESS_ERR_IO when the disk is full. Local. */
tess_status tess_spool_write(tess_spool *spool, const tess_samples *samples,
                             const tess_brick_list *bricks);

/** Records written so far, and their bytes. Local. */
int64_t tess_spool_records(const tess_spool *spool);
int64_t tess_spool_bytes(const tess_spool *spool);

/** What the disk takes for the only record so far, `samples`: *write_s becomes so much
 *  longer as it takes to have all of it on disk, *read_s what reading it back takes
 *  without the page cache, as far as that can be emptied. Local. */
tess_status tess_spool_probe(tess_spool *spool, tess_samples *samples, double *write_s,
                             double *read_s);

/** No samples, of the kind of those that have been written; the channel table and
 *  origins stay borrowed. Local. */
tess_samples tess_spool_samples(const tess_spool *spool);

/** Replace samples, which are of the kind of those that were written, and bricks by
 *  those of record k. The next record is fetched meanwhile. `bricks` is NULL for
 *  samples alone. TESS_ERR_IO. Local. */
tess_status tess_spool_read(tess_spool *spool, int64_t k, tess_samples *samples,
                            tess_brick_list *bricks);

/* ---- scratch_file.c ---- */

/** A file of this rank, for what does not fit into memory. The file has no name: it
 *  goes when the program ends, however it does. */
typedef struct scratch_file scratch_file;

/** An empty file on the file system of this folder. TESS_ERR_IO when no file can be
 *  made there. Local. */
tess_status scratch_file_create(const char *folder, scratch_file **file);
void scratch_file_destroy(scratch_file *file); /**< NULL is fine. Local. */

/** Write bytes at `*at`, or read them back; `*at` moves on behind them. TESS_ERR_IO,
 *  also when the disk is full. Local. */
tess_status scratch_file_move(const scratch_file *file, void *data, int64_t bytes,
                              int64_t *at, bool to_file);

/** Have bytes read ahead that will soon be wanted. Local. */
void scratch_file_fetch(const scratch_file *file, int64_t at, int64_t bytes);

/** Wait until all that was written is on the disk, and drop its first bytes from the
 *  page cache, as far as that can be done. TESS_ERR_IO. Local. */
tess_status scratch_file_settle(const scratch_file *file);
void scratch_file_drop(const scratch_file *file, int64_t bytes);

#endif
