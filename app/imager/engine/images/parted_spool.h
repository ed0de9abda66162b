/** @file parted_spool.h  (private to app/imager/)
 *  The samples of a rank's slice in a scratch file, parted by output. One pass over the
 *  data writes them, if they do not fit into memory. To read the samples of some
 *  outputs then takes a time that is in proportion to these samples, however many
 *  outputs there are, where each further pass over the data would read all of them.
 *
 *  Rows are written in *batches*, which are as large as memory allows. A batch has the
 *  places and channels of its rows, its blocks (sample_parts.h), all visibilities,
 *  output after output, and all weights in the same order. So the samples of
 *  neighbouring outputs are one range of the file in each batch. The file has no name:
 *  it goes when the program ends, however it does.
 */
#ifndef TESS_PARTED_SPOOL_H
#define TESS_PARTED_SPOOL_H

#include "output_table.h"
#include "sample_parts.h"
#include "tess_samples.h"

typedef struct parted_spool parted_spool;

/** An empty spool on the file system of this folder; the table is borrowed. TESS_ERR_IO
 *  when no file can be made there. Local. */
tess_status parted_spool_create(const char *folder, const output_table *outputs,
                                parted_spool **spool);
void parted_spool_destroy(parted_spool *spool); /**< NULL is fine. Local. */

/** Append samples of the next rows of the slice, with their times as in
 *  sample_parts_make(). They are parted in place, and of no use to the caller then.
 *  TESS_ERR_ALLOC, and TESS_ERR_IO when the disk is full. Local. */
tess_status parted_spool_add(parted_spool *spool, const double *row_time, int threads,
                             tess_samples *samples);

/** Batches written so far, and their bytes in the file. Local. */
int64_t parted_spool_batches(const parted_spool *spool);
int64_t parted_spool_bytes(const parted_spool *spool);

/** The table of parted_spool_create(). Local. */
const output_table *parted_spool_outputs(const parted_spool *spool);

/** Read the samples of outputs [first, end) in batches [batch_first, batch_end), as far
 *  as these are there. `samples` are empty, and of the kind of those that were written,
 *  or with one weight if the weights of all samples agree; `parts` is empty.
 *  sample_parts_take() takes those of an output. TESS_ERR_ALLOC, TESS_ERR_IO. Local. */
tess_status parted_spool_read(const parted_spool *spool, int64_t first, int64_t end,
                              int64_t batch_first, int64_t batch_end,
                              tess_samples *samples, sample_parts *parts);

/** What the disk takes for the only batch so far: *write_s becomes so much longer as it
 *  takes to have all of it on disk, *read_s what reading it back takes without the page
 *  cache, as far as that can be emptied. `like` is of the kind that is read. Local. */
tess_status parted_spool_probe(const parted_spool *spool, const tess_samples *like,
                               double *write_s, double *read_s);

#endif
