/** @file tess_input.h
 *  Opening files for reading, and what is to blame when files cannot be opened.
 */
#ifndef TESS_INPUT_H
#define TESS_INPUT_H

#include <stdint.h>

#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What the errno of a file that cannot be opened comes to: TESS_ERR_RESOURCE when too
 *  many files are open, else TESS_ERR_IO. Local. */
tess_status tess_errno_status(int error);

/** Open a regular file for reading, of `*bytes`; a pipe is not waited for but refused.
 *  TESS_ERR_IO, TESS_ERR_RESOURCE (too many open files). Local. */
tess_status tess_input_open(const char *path, int *fd, int64_t *bytes);

/** When a library could not open `path`, which is there: TESS_ERR_RESOURCE when this
 *  process may open no more files, else TESS_OK, and the file itself is to blame.
 *  Local. */
tess_status tess_input_check_limit(const char *path);

#ifdef __cplusplus
}
#endif
#endif
