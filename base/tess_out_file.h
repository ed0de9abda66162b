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
 *  reading and writing. It is noted until it is published or discarded, and locked
 * while it is open. TESS_ERR_IO, TESS_ERR_RESOURCE (too many open files). Local. */
tess_status tess_out_file_create(const char *path, char temp[TESS_OUT_FILE_NAME],
                                 int *fd);

/** As tess_out_file_create, after tess_out_check_target and tess_out_file_remove_left:
 *  for an output of a run. Local. */
tess_status tess_out_file_begin(const char *path, bool overwrite,
                                char temp[TESS_OUT_FILE_NAME], int *fd);

/** As tess_out_file_create, a folder. Local. */
tess_status tess_out_folder_create(const char *path, char temp[TESS_OUT_FILE_NAME]);

/** Whether the end of a file's name, behind the name that it was to get, is as
 *  tess_out_file_create makes it, by whatever process of whatever host. Local. */
bool tess_out_file_is_temporary(const char *end);

/** Remove unfinished files and folders of `path` that processes of this host have left
 *  which are no more; those of other hosts, of other users, and under names that only
 *  look alike stay. Local: one rank. */
void tess_out_file_remove_left(const char *path);

/** Reserve `bytes` of disk, so that a full disk is found before anything is written;
 *  where the file system cannot reserve, only the size is set. `path` is the final
 *  name, for the message. TESS_ERR_IO. Local. */
tess_status tess_out_file_reserve(int fd, const char *path, int64_t bytes);

/** Write all of `bytes` at `offset`. TESS_ERR_IO. Local. */
tess_status tess_out_file_write(int fd, const char *path, const void *data,
                                int64_t bytes, int64_t offset);

/** Give the finished file its final name, durably; without `overwrite` what has come
 *  there meanwhile stays. TESS_ERR_IO; then `temp` is still there and is the caller's
 *  to remove. Local. */
tess_status tess_out_file_publish(const char *temp, const char *path, bool overwrite);

/** The same for a folder; one that it replaces is gone then, with all in it. Local. */
tess_status tess_out_folder_publish(const char *temp, const char *path, bool overwrite);

/** Remove an unpublished file; "" is none. Local. */
void tess_out_file_discard(const char *temp);

/** Note a file or folder for removal by signals (tess_out_catch_signals), and forget
 *  it. Local. */
void tess_out_file_note(const char *path);
void tess_out_file_forget(const char *path);

/** Whether files get their names only when the disk has them, as they do before the
 *  first call, or as soon as they are written: a machine that loses its power then may
 *  leave them incomplete. For all files of the process. Local. */
void tess_out_file_set_sync(bool wanted);

/** Let the disk begin with what has been written, so that it works while more is made.
 *  tess_out_file_sync does the rest. Local. */
void tess_out_file_start(int fd, int64_t offset, int64_t bytes);

/** Wait until the disk has the file, unless nobody shall wait. Network file systems
 *  report a full disk only here, or at close(). 0, or −1 with errno. Local. */
int tess_out_file_sync(int fd);

/** Until tess_out_catch_signals() a file that grows beyond the limit of the system
 *  (SIGXFSZ) ends the process with a line that says so, and as TESS_ERR_RESOURCE does:
 *  it is MPI's, which might wait for ever without it. For programs, before MPI starts.
 *  Local. */
void tess_out_catch_file_limit(void);

/** From now on SIGTERM, SIGINT, SIGHUP and SIGXCPU first remove this process's
 *  unfinished files, then do what they did before; the files go even if SIGKILL follows
 *  soon. SIGXFSZ is ignored, by children, too: files that grow too large fail to be
 *  written. `several`: this process is one of several ranks. For programs, once at
 *  their start. Local. */
void tess_out_catch_signals(bool several);

/** From now on these signals wait: files get their names, all or none. With the last
 *  files of a run they wait for ever, since there is nothing left that could be
 * stopped. Does not return while one is acted upon. Local. */
void tess_out_hold_signals(void);

/** Act upon a signal that has waited, and upon others at once. Local. */
void tess_out_release_signals(void);

/** Remove this process's unfinished files, as the signals do; for a program that ends
 *  without any. Local. */
void tess_out_remove_unfinished(void);

#ifdef __cplusplus
}
#endif
#endif
