/** @file mosaic_strip.h  (private to app/mosaic/)
 *  The rows of an image that a rank's rows of the mosaic are made of.
 */
#ifndef TESS_MOSAIC_STRIP_H
#define TESS_MOSAIC_STRIP_H

#include "mosaic_frame.h"

/** Rows of an image and of its primary beam, in the precision of the image's file,
 *  NaN where they do not count, and MOSAIC_BEYOND more pixels. Zeroed: there are
 *  none. */
typedef struct mosaic_strip {
    int64_t nx, row_first, num_rows;
    bool is_double;
    void *image, *beam;     /**< [num_rows][nx]; owned */
    int64_t capacity_bytes; /**< of each of them */
} mosaic_strip;

/** What this rank reads, and what it gets. The memory is kept from image to image. */
typedef struct mosaic_strips {
    mosaic_strip share, own;
} mosaic_strips;

void mosaic_strips_free(mosaic_strips *strips); /**< Local. */

/** Read a plane of an image once, each rank its share of the rows, convolve it to
 *  `beam`, measure its noise where `*noise_jy` is 0, and give every rank the rows
 *  [wanted[0], wanted[1]) as `*strip`, which lies in `kept`. `*noise_jy` stays 0 where
 *  no pixel counts. TESS_ERR_IO, TESS_ERR_ALLOC. Collective. */
tess_status mosaic_strip_make(tess_comm *comm, const tess_mosaic_opts *opts,
                              const mosaic_image *of, const tess_fits_beam *beam,
                              const int64_t wanted[2], double *noise_jy,
                              mosaic_strips *kept, const mosaic_strip **strip);

#endif
