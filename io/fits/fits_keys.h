/** @file fits_keys.h  (private to io/)
 *  The header of a FITS image and the tables behind it, by CFITSIO.
 */
#ifndef TESS_FITS_KEYS_H
#define TESS_FITS_KEYS_H

#include <fitsio.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tess_status.h"

/** Open a plain FITS file for reading: not a folder or a pipe, not compressed.
 *  TESS_ERR_IO, TESS_ERR_INPUT. Local. */
tess_status fits_open_plain(const char *path, int64_t *file_bytes, int *fd_out);

/** A file at its first image. */
typedef struct fits_image_file {
    fitsfile *fits; /**< NULL: it is not open */
    int fd;         /**< of the file itself; -1: not open */
    int64_t bytes;
} fits_image_file;

/** Open a plain FITS file at the first HDU that is an image with pixels. In any case
 *  fits_image_close() ends it. TESS_ERR_IO; TESS_ERR_INPUT (not FITS, compressed,
 *  damaged, no image in it). Local. */
tess_status fits_image_open(const char *path, fits_image_file *file);
void fits_image_close(fits_image_file *file); /**< Local. */

/** Read a keyword's value, unless `*failed`, which gets CFITSIO's status. An absent or
 *  valueless keyword leaves `value` as it is. Local. */
void fits_get_number(fitsfile *fits, const char *key, double *value, int *failed);
void fits_get_text(fitsfile *fits, const char *key, char *value, size_t size,
                   int *failed);

/* ---- binary tables ---- */

/** A file that is open at a table. */
typedef struct fits_table {
    int fd;         /**< -1: not open */
    fitsfile *fits; /**< NULL: there is no such table */
} fits_table;

/** Open the file at the table `name`; out->fits is NULL where it has none. The caller
 *  closes it. TESS_ERR_IO, TESS_ERR_INPUT. Local. */
tess_status fits_table_find(const char *path, const char *name, fits_table *out);

/** Numbers of a column from the first cell on; false where there are fewer. Local. */
bool fits_table_column(const fits_table *from, const char *name, int64_t count,
                       double *out);
void fits_table_close(fits_table *from); /**< Local. */

#endif
