/** @file scratch_file.h  (private to app/imager/)
 *  A file of this rank on scratch, for what does not fit into memory. The file has no
 *  name: it goes when the program ends, however it does.
 */
#ifndef TESS_SCRATCH_FILE_H
#define TESS_SCRATCH_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

typedef struct scratch_file scratch_file;

/** An empty file on the file system of this folder. TESS_ERR_IO when no file can be
 *  made there. Local. */
tess_status scratch_file_create(const char *folder, scratch_file **file);
void scratch_file_destroy(scratch_file *file); /**< NULL is fine. Local. */

/** Write bytes at `*at`, or read them back; `*at` moves on behind them. TESS_ERR_IO,
 *  also when the disk is full. Local. */
tess_status scratch_file_move(const scratch_file *file, void *data, int64_t bytes,
                              int64_t *at, bool to_file);

/** Have bytes read ahead that will soon be wanted. Local. */
void scratch_file_fetch(const scratch_file *file, int64_t at, int64_t bytes);

/** Wait until all that was written is on the disk, and drop its first bytes from the
 *  page cache, as far as that can be done. TESS_ERR_IO. Local. */
tess_status scratch_file_settle(const scratch_file *file);
void scratch_file_drop(const scratch_file *file, int64_t bytes);

#endif
