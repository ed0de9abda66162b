/** @file out_map.h  (private to io/)
 *  Writing a large file that lies in memory (tmpfs) at the speed of memory. There, one
 *  thread at a time is let into pwrite, and reserving pages takes as long as filling
 *  them: they are written through a mapping by as many threads as like, behind a thread
 *  that reserves them. Files elsewhere, where a mapping could fail without a word, have
 *  none.
 */
#ifndef TESS_OUT_MAP_H
#define TESS_OUT_MAP_H

#include <stdint.h>

#include "tess_status.h"

typedef struct tess_out_map tess_out_map;

/** Give an open file this size and begin to reserve it. `*map` stays NULL, and the file
 *  as it is, when it does not lie in memory. TESS_ERR_IO, TESS_ERR_ALLOC. Local. */
tess_status tess_out_map_create(int fd, const char *path, int64_t bytes,
                                tess_out_map **map);

/** Write, when these bytes are reserved; several threads may call. TESS_ERR_IO when
 *  memory is full. Local. */
tess_status tess_out_map_write(tess_out_map *map, const void *data, int64_t bytes,
                               int64_t offset);

/** Wait until all is reserved. TESS_ERR_IO. Local. */
tess_status tess_out_map_finish(tess_out_map *map);

/** Before the file is closed; NULL is fine. Local. */
void tess_out_map_destroy(tess_out_map *map);

#endif
