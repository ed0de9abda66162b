/** @file tess_held_files.h
 *  Files that get their final names together, when all of them are complete. Unfinished
 *  files are removed when the run fails or a signal stops it.
 */
#ifndef TESS_HELD_FILES_H
#define TESS_HELD_FILES_H

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

#ifdef __cplusplus
}
#endif
#endif
