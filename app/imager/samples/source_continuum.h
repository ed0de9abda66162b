/** @file source_continuum.h  (private to app/imager/)
 *  Visibilities of a model that are subtracted from whole rows, with all channels of
 *  their windows, before the continuum of these is fitted. They lie in a file.
 */
#ifndef TESS_SOURCE_CONTINUUM_H
#define TESS_SOURCE_CONTINUUM_H

#include "source.h"

/** Bytes of the visibilities of all rows. Local. */
int64_t tess_source_model_bytes(const tess_source *source);

/** Give the source the open file of the model. The source closes it at its own end, and
 *  removes it there if `removes`: `temp` is its unfinished name (tess_out_file.h).
 *  TESS_ERR_ALLOC. Local. */
tess_status tess_source_model_open(tess_source *source, int fd, bool removes,
                                   const char *temp);

/** Write a block of whole rows of reader `k`. TESS_ERR_IO. Local. */
tess_status tess_source_model_put(tess_source *source, int k,
                                  const tess_vis_block *block);

/** All is written: rows that are read from here on are less the model. The source rests
 *  (tess_source_rest), and ranks agree before they read. TESS_ERR_IO. Local. */
tess_status tess_source_model_end(tess_source *source);

#endif
