/** @file fits_guard.h  (private to io/)
 *  A look at the headers of a FITS file before CFITSIO reads them: some damaged cards
 * end the process inside CFITSIO. It checks the bytes of one header at a time, exactly
 * where CFITSIO will read next, and it understands no more of them than it needs to
 * refuse.
 */
#ifndef TESS_FITS_GUARD_H
#define TESS_FITS_GUARD_H

#include <fitsio.h>
#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

/** Open the file by CFITSIO, whatever its name means, once its first header has been
 *  checked through `fd`. TESS_ERR_INPUT, TESS_ERR_IO. Local. */
tess_status fits_guard_open(int fd, int64_t file_bytes, const char *path,
                            fitsfile **fits);

/** Check the next header and move to it. `*more` is false, and `*type` untouched, where
 *  the file ends or goes on with bytes that are no extension. TESS_ERR_INPUT for an
 *  extension that cannot be read, and for a compressed image. Local. */
tess_status fits_guard_next(fitsfile *fits, int fd, int64_t file_bytes,
                            const char *path, int *type, bool *more);

/** The integer that means "no value" in the integer data of an image. CFITSIO is asked
 *  for the text: a long string overflows the buffer of its conversion to an integer.
 *  `*has_blank` is false, and no error, without the keyword. TESS_ERR_INPUT when it is
 *  not an integer. Local. */
tess_status fits_guard_blank(fitsfile *fits, const char *path, bool *has_blank,
                             int64_t *blank);

#endif
