/** @file fits_new.h  (private to io/)
 *  Output files that CFITSIO writes, under a temporary name of tess_out_file.h.
 */
#ifndef TESS_FITS_NEW_H
#define TESS_FITS_NEW_H

#include <fitsio.h>
#include <stdbool.h>

#include "tess_out_file.h"
#include "tess_status.h"

/** Begin the output `path` as a file of a primary array without axes, which
 *  fits_resize_imgll() gives its own. The caller publishes or discards `temp`.
 *  TESS_ERR_IO, TESS_ERR_RESOURCE. Local. */
tess_status fits_new_begin(const char *path, bool overwrite,
                           char temp[TESS_OUT_FILE_NAME], fitsfile **fits);

/** Close it, `failed` being what CFITSIO has said so far. TESS_ERR_IO. Local. */
tess_status fits_new_close(const char *path, fitsfile *fits, int failed);

#endif
