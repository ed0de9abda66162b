/** @file tess_out_file.h
 *  Files that appear under their final name only when they are complete: all outputs
 *  are made here, beside their names, and go when the run fails or is told to stop.
 */
#ifndef TESS_OUT_FILE_H
#define TESS_OUT_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TESS_OUT_FILE_NAME = 4096 };

/** Folder of `path` ("." when it names none). Local. */
void tess_out_file_folder(const char *path, char folder[TESS_OUT_FILE_NAME]);

/** Check now that `path` can be written later: its folder exists and is writable, and
 *  it does not exist unless `overwrite`. TESS_ERR_IO. Local. */
tess_status tess_out_check_target(const char *path, bool overwrite);

/** Create a new file beside `path` under a name of its own, written to `temp`, open for
 *  reading and writing. It is noted until it is published or discarded. TESS_ERR_IO.
 *  Local. */
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

/** Remove an unpublished file; "" is none. Local. */
void tess_out_file_discard(const char *temp);

/** Note a file or folder for removal by signals (tess_out_catch_signals), and forget
 *  it. Local. */
void tess_out_file_note(const char *path);
void tess_out_file_forget(const char *path);

/** Let the disk begin with what has been written, so that it works while more is made.
 *  What this cannot do fsync does before the file gets its name. Local. */
void tess_out_file_start(int fd, int64_t offset, int64_t bytes);

/** From now on SIGTERM, SIGINT, SIGHUP and SIGXCPU first remove this process's
 *  unfinished files, then do what they did before; the files go even if SIGKILL follows
 *  soon. SIGXFSZ is ignored: files that grow too large fail to be written. `several`:
 *  this process is one of several ranks. For programs, once at their start. Local. */
void tess_out_catch_signals(bool several);

/** Remove this process's unfinished files, as the signals do; for a program that ends
 *  without any. Local. */
void tess_out_remove_unfinished(void);

#ifdef __cplusplus
}
#endif
#endif
