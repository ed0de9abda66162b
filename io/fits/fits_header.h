/** @file fits_header.h  (private to io/)
 *  The header of an image file, as text ready to be written.
 */
#ifndef TESS_FITS_HEADER_H
#define TESS_FITS_HEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_fits.h"

enum { TESS_FITS_BLOCK = 2880, TESS_FITS_CARD = 80 };

/** What is known of the pixels once they are written. */
typedef struct tess_fits_stats {
    uint32_t data_sum; /**< ones-complement sum of the data's big-endian 32-bit words */
    double min, max;   /**< of finite pixels; min > max when there are none */
} tess_fits_stats;

/** Fold a sum of 32-bit words into their ones-complement sum (end-around carry). */
uint32_t tess_fits_fold(uint64_t sum);

/** The header of a UVFITS file, `bytes` of whole blocks, with HISTORY cards before its
 *  end: this version and `lines`, separated by '\n' or NULL; and without CHECKSUM and
 *  DATASUM, as other data are to follow. `*out` (tess_alloc, caller frees) of
 *  `*out_bytes`. `path` is for messages. TESS_ERR_ALLOC, TESS_ERR_INPUT. Local. */
tess_status tess_fits_header_extend(const char *path, const char *header, int64_t bytes,
                                    const char *lines, char **out, int64_t *out_bytes);

/** "2017-04-11T00:32:00.000" of a time (UTC), and whether a time is known. Local. */
void tess_fits_date(double mjd_s, char text[40]);
bool tess_fits_is_time(double mjd_s);

/** Cards, END and padding to whole blocks: `*text` (tess_alloc, caller frees) of
 *  `*bytes`, whose length does not depend on `stats`. `path` is for messages.
 *  TESS_ERR_ALLOC, TESS_ERR_INTERNAL. Local. */
tess_status tess_fits_header_build(const char *path, const tess_image_meta *meta,
                                   bool is_double, const tess_fits_stats *stats,
                                   char **text, int64_t *bytes);

#endif
