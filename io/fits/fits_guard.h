/** @file fits_guard.h  (private to io/)
 *  Checks the headers of a FITS file before CFITSIO reads them, because some damaged
 *  cards end the process inside CFITSIO. The guard checks one header at a time, at the
 *  position that CFITSIO will read next, and interprets only the cards that it may have
 *  to refuse.
 */
#ifndef TESS_FITS_GUARD_H
#define TESS_FITS_GUARD_H

#include <fitsio.h>
#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

/** Open the file with CFITSIO after its first header has been checked through `fd`.
 *  CFITSIO takes the name literally. TESS_ERR_INPUT, TESS_ERR_IO. Local. */
tess_status fits_guard_open(int fd, int64_t file_bytes, const char *path,
                            fitsfile **fits);

/** Check the next header and move to it. When the file ends, or continues with bytes
 *  that are not an extension, `*more` is false and `*type` is unchanged. TESS_ERR_INPUT
 * for an extension that cannot be read, and for a compressed image. Local. */
tess_status fits_guard_next(fitsfile *fits, int fd, int64_t file_bytes,
                            const char *path, int *type, bool *more);

/** The integer that means "no value" in the integer data of an image. CFITSIO is asked
 *  for the text: a long string overflows the buffer of its conversion to an integer.
 *  `*has_blank` is false, and no error, without the keyword. TESS_ERR_INPUT when it is
 *  not an integer. Local. */
tess_status fits_guard_blank(fitsfile *fits, const char *path, bool *has_blank,
                             int64_t *blank);

#endif
