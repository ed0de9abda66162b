/** @file fits_table.h  (private to io/)
 *  Binary tables behind an image.
 */
#ifndef TESS_FITS_TABLE_H
#define TESS_FITS_TABLE_H

#include <fitsio.h>
#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

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
