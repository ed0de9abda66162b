/** @file tess_out_file.h
 *  Files that appear under their final names only when they are complete. All outputs
 *  are written by these functions, under temporary names in the folders of their final
 *  names. They are removed if the run fails or is told to stop.
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

/** The folder of `path`, "." if it names none. Local. */
void tess_out_file_folder(const char *path, char folder[TESS_OUT_FILE_NAME]);

/** Check that `path` can be written later: its folder exists and is writable, and
 * `path` does not exist unless `overwrite`. TESS_ERR_IO. Local. */
tess_status tess_out_check_target(const char *path, bool overwrite);

/** TESS_ERR_IO when `path` is the file (or folder) `input`, whatever their names, so
 *  that no run replaces what it reads; NULL is fine for both. Local. */
tess_status tess_out_check_other(const char *path, const char *input);

/** TESS_ERR_IO when two files that a run writes have the same name, whether they exist
 *  yet or not: the second would replace the first. NULL is fine for both. Local. */
tess_status tess_out_check_distinct(const char *path, const char *other);

/** Create a new file in the folder of `path`, open for reading and writing, under a
 * temporary name, `temp`. The file is noted for removal until it is published or
 * discarded, and is locked until then, so that no other run takes it for what a killed
 * run has left. TESS_ERR_IO; TESS_ERR_RESOURCE: too many files are open. Local. */
tess_status tess_out_file_create(const char *path, char temp[TESS_OUT_FILE_NAME],
                                 int *fd);

/** Create the file of an output of a run: call tess_out_check_target,
 * tess_out_file_remove_left and tess_out_file_create. Local. */
tess_status tess_out_file_begin(const char *path, bool overwrite,
                                char temp[TESS_OUT_FILE_NAME], int *fd);

/** As tess_out_file_create, for a folder; `fd` is open for reading. The folder is
 * locked while `fd` is open. Local. */
tess_status tess_out_folder_create(const char *path, char temp[TESS_OUT_FILE_NAME],
                                   int *fd);

/** Lock the folder `path` as its only writer while `fd` is open. TESS_ERR_IO: another
 * run is writing it. Where folders cannot be locked, nothing is. Local. */
tess_status tess_out_folder_lock(const char *path, int *fd);

/** Whether `end` is what tess_out_file_create appends to the final name of a file, in
 * any process of any host. Local. */
bool tess_out_file_is_temporary(const char *end);

/** Remove unfinished files and folders of `path` that processes of this host have left:
 * nobody holds their locks any more. Files of other hosts and of other users stay, and
 * so do files whose names only look alike. Where files cannot be locked, those stay
 * whose process exists. Local: one rank calls this. */
void tess_out_file_remove_left(const char *path);

/** Reserve `bytes` of disk, so that a full disk is found before anything is written. If
 * the file system cannot reserve space, only the size of the file is set. `path` is the
 * final name, for the message. TESS_ERR_IO. Local. */
tess_status tess_out_file_reserve(int fd, const char *path, int64_t bytes);

/** Write all of `bytes` at `offset`. TESS_ERR_IO. Local. */
tess_status tess_out_file_write(int fd, const char *path, const void *data,
                                int64_t bytes, int64_t offset);

/** Give the finished file its final name, durably. Without `overwrite`, a file that has
 * appeared under this name in the meantime stays, and TESS_ERR_IO is returned. After
 * TESS_ERR_IO `temp` still exists, and the caller removes it. Local. */
tess_status tess_out_file_publish(const char *temp, const char *path, bool overwrite);

/** As tess_out_file_publish, for a folder. A folder that is replaced is removed with
 * its contents. Local. */
tess_status tess_out_folder_publish(const char *temp, const char *path, bool overwrite);

/** Remove an unpublished file; "" stands for no file. Local. */
void tess_out_file_discard(const char *temp);

/** Note a file or folder for removal by signals (tess_out_catch_signals), and forget it
 * again. Local. */
void tess_out_file_note(const char *path);
void tess_out_file_forget(const char *path);

/** Set whether a file gets its final name only when it is on the disk, as before the
 * first call, or as soon as it is written. In the second case a machine that loses
 * power may leave incomplete files. This holds for all files of the process. Local. */
void tess_out_file_set_sync(bool wanted);

/** Let the disk begin to write what is in the file so far, while the run goes on.
 * tess_out_file_sync completes this. Local. */
void tess_out_file_start(int fd, int64_t offset, int64_t bytes);

/** Wait until the file is on the disk, unless tess_out_file_set_sync(false) was called.
 * Network file systems report a full disk only here, or at close(). Returns 0, or −1
 * with errno. Local. */
int tess_out_file_sync(int fd);

/** Until tess_out_catch_signals(), a file that grows beyond a limit of the system
 * (SIGXFSZ) ends the process with a line that says so, and with the exit status of
 * TESS_ERR_RESOURCE. Only MPI writes files so early, and without this it might wait for
 * ever. For programs to call before MPI starts. Local. */
void tess_out_catch_file_limit(void);

/** From now on SIGTERM, SIGINT, SIGHUP and SIGXCPU first remove the unfinished files of
 * this process, and then do what they did before. The files are removed even if SIGKILL
 * follows soon. SIGXFSZ is ignored, also by children: writing a file that grows too
 * large then fails. `several`: this process is one of several ranks. For programs to
 * call once, at their start. Local. */
void tess_out_catch_signals(bool several);

/** From now on these signals wait, so that either all files of a set get their final
 * names, or none. After the last files of a run the signals wait for ever, because
 * nothing is left to be stopped. The call does not return while a signal is handled.
 * Local. */
void tess_out_hold_signals(void);

/** Handle a signal that has waited, and later ones at once. Local. */
void tess_out_release_signals(void);

/** Whether a signal waits (tess_out_hold_signals). Local. */
bool tess_out_signal_waits(void);

/** Remove the unfinished files of this process, as the signals do. For a program that
 * ends without a signal. Local. */
void tess_out_remove_unfinished(void);

/** The same for a process that then calls _exit(): it closes some of its files first,
 * because it may have as many open as it may have. Local. */
void tess_out_remove_at_end(void);

#ifdef __cplusplus
}
#endif
#endif
