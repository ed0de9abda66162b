/** @file tess_out.h
 *  Files that get their final names together, when all of them are complete. Unfinished
 *  files are removed when the run fails or a signal stops it.
 */
#ifndef TESS_OUT_H
#define TESS_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"
#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Finished files that wait under temporary names, on their way to the disk. Zeroed:
 *  none. Rank 0 has all of them, other ranks those they have written to. */
typedef struct tess_held_files {
    bool overwrite; /**< may their names exist already? */
    int threads;    /**< that convert pixels, at most; 0: one */
    bool last;      /**< the run makes no more: once they begin to get their names,
                         signals do not stop it (tess_out_hold_signals) */
    int64_t num, capacity;
    struct tess_held_file *file; /**< [num]; private */
} tess_held_files;

/** Write a text to be held under `path`. TESS_ERR_IO. Local: rank 0. */
tess_status tess_held_text(tess_held_files *held, const char *path, const char *text);

/** Wait until all files are on their disks, and give them their final names. When this
 *  fails (TESS_ERR_IO), no file has its final name. Collective. */
tess_status tess_held_publish(tess_comm *comm, tess_held_files *held);

/** Remove the files that have not got their final names, and empty the list. Local. */
void tess_held_free(tess_held_files *held);

/** TESS_ERR_IO when `path` is the file (or folder) `input`, whatever their names, so
 *  that no run replaces what it reads; NULL is fine for both. Local. */
tess_status tess_out_check_other(const char *path, const char *input);

/** TESS_ERR_IO when two files that a run writes have the same name, whether they exist
 *  yet or not: the second would replace the first. NULL is fine for both. Local. */
tess_status tess_out_check_distinct(const char *path, const char *other);

#ifdef __cplusplus
}
#endif
#endif
