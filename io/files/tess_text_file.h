/** @file tess_text_file.h
 *  Small text files of the user: tables and lists.
 */
#ifndef TESS_TEXT_FILE_H
#define TESS_TEXT_FILE_H

#include "tess_comm.h"
#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The whole file, read on rank 0 and sent to all: `*text` ends with NUL and is freed
 *  with tess_free(). `kind` is what it should be, like "a text file of comma separated
 *  values", for messages. TESS_ERR_IO when it cannot be read or is no regular file,
 *  TESS_ERR_INPUT when it is larger than 2^30 bytes or holds a NUL. Collective. */
tess_status tess_text_file_read(tess_comm *comm, const char *path, const char *kind,
                                char **text);

#ifdef __cplusplus
}
#endif
#endif
