/** @file spool.h  (private to app/imager/)
 *  Sets of prepared samples in a scratch file of this rank, for the passes over data
 *  that do not fit into memory. The file has no name: it goes when the program ends,
 *  however it does.
 */
#ifndef TESS_SPOOL_H
#define TESS_SPOOL_H

#include "tess_samples.h"

typedef struct tess_spool tess_spool;

/** An empty spool on the file system of this folder. TESS_ERR_IO when no file can be
 *  made there. Local. */
tess_status tess_spool_create(const char *folder, tess_spool **spool);
void tess_spool_destroy(tess_spool *spool); /**< NULL is fine. Local. */

/** Append a set. TESS_ERR_IO when the disk is full. Local. */
tess_status tess_spool_write(tess_spool *spool, const tess_samples *samples);

/** Sets written so far, and their bytes. Local. */
int64_t tess_spool_sets(const tess_spool *spool);
int64_t tess_spool_bytes(const tess_spool *spool);

/** What the disk takes for the only set so far, `samples`: *write_s becomes so much
 *  longer as it takes to have all of it on disk, *read_s what reading it back takes
 *  without the page cache, as far as that can be emptied. Local. */
tess_status tess_spool_probe(tess_spool *spool, tess_samples *samples, double *write_s,
                             double *read_s);

/** Replace rows and samples by those of set k; `samples` is of the same kind as what
 * was written. The next set is fetched meanwhile. Local. */
tess_status tess_spool_read(tess_spool *spool, int64_t k, tess_samples *samples);

#endif
