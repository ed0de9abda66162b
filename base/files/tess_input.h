/** @file tess_input.h
 *  Opens and reads files, and finds out why a file cannot be opened.
 */
#ifndef TESS_INPUT_H
#define TESS_INPUT_H

#include <stdint.h>

#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The status for the errno of a file that cannot be opened: TESS_ERR_RESOURCE if too
 * many files are open, else TESS_ERR_IO. Local. */
tess_status tess_errno_status(int error);

/** Open a regular file for reading; it has `*bytes`. A pipe is refused, since opening
 * it would wait for a writer. TESS_ERR_IO; TESS_ERR_RESOURCE: too many files are open.
 * Local. */
tess_status tess_input_open(const char *path, int *fd, int64_t *bytes);

/** Read all of `bytes` at `offset`. `path` is for the message. TESS_ERR_IO, also if the
 * file ends before that. Local. */
tess_status tess_input_read(int fd, const char *path, void *data, int64_t bytes,
                            int64_t offset);

/** Find out why a library could not open `path`, which exists. Returns
 * TESS_ERR_RESOURCE if this process may open no more files. Otherwise the file itself
 * is the reason, and TESS_OK is returned. Local. */
tess_status tess_input_check_limit(const char *path);

/** The program that unpacks a compressed file which begins with these bytes, such as
 * "gunzip"; NULL: it is not compressed in a way that is known here. Local. */
const char *tess_input_unpacker(const void *start, int64_t bytes);

/** Give those standard streams that are closed to a file that can neither be read, for
 * standard input, nor written. Otherwise a file that the run opens later has the number
 * of such a stream, and messages are written into it. For programs to call first.
 * Local.
 */
void tess_input_keep_standard(void);

#ifdef __cplusplus
}
#endif
#endif
