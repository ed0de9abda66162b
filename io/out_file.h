/** @file out_file.h  (private to io/)
 *  Files that appear under their final name only when they are complete.
 */
#ifndef TESS_OUT_FILE_H
#define TESS_OUT_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

enum { TESS_OUT_FILE_NAME = 4096 };

/** Create a new file beside `path` under a name of its own, written to `temp`, open for
 *  reading and writing. TESS_ERR_IO. Local. */
tess_status tess_out_file_create(const char *path, char temp[TESS_OUT_FILE_NAME],
                                 int *fd);

/** Reserve `bytes` of disk, so that a full disk is found before anything is written;
 *  where the file system cannot reserve, only the size is set. `path` is the final
 *  name, for the message. TESS_ERR_IO. Local. */
tess_status tess_out_file_reserve(int fd, const char *path, int64_t bytes);

/** Write all of `bytes` at `offset`. TESS_ERR_IO. Local. */
tess_status tess_out_file_write(int fd, const char *path, const void *data,
                                int64_t bytes, int64_t offset);

/** Give the finished file its final name, durably. TESS_ERR_IO; then `temp` is still
 *  there and is the caller's to remove. Local. */
tess_status tess_out_file_publish(const char *temp, const char *path, bool overwrite);

#endif
