/** @file mapped_file.h  (private to io/)
 *  Writes a large file on a file system in memory (tmpfs) at the speed of memory. There
 *  the kernel lets one thread at a time into pwrite, and reserving pages takes as long
 *  as filling them. Therefore one thread reserves the pages, and any number of threads
 *  write the reserved ones through a mapping. Files on other file systems have no
 *  mapping, because an error in one would not be reported.
 */
#ifndef TESS_MAPPED_FILE_H
#define TESS_MAPPED_FILE_H

#include <stdint.h>

#include "tess_status.h"

typedef struct mapped_file mapped_file;

/** Give an open file this size and begin to reserve its pages. When the file is not in
 *  memory, it is left unchanged and `*map` stays NULL. TESS_ERR_IO, TESS_ERR_ALLOC.
 *  Local. */
tess_status mapped_file_create(int fd, const char *path, int64_t bytes,
                               mapped_file **map);

/** Write, when these bytes are reserved; several threads may call. TESS_ERR_IO when
 *  memory is full. Local. */
tess_status mapped_file_write(mapped_file *map, const void *data, int64_t bytes,
                              int64_t offset);

/** Wait until all is reserved. TESS_ERR_IO. Local. */
tess_status mapped_file_finish(mapped_file *map);

/** Free the map, before the file is closed; NULL is fine. Local. */
void mapped_file_destroy(mapped_file *map);

#endif
