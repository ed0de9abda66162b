/** @file fits_writing.h  (private to io/)
 *  An image, or a plane of a cube, whose pixels are being written.
 */
#ifndef FITS_WRITING_H
#define FITS_WRITING_H

#include "fits_output.h"
#include "tess_fits.h"

/** Complete what has been written, of these sums. Collective. */
typedef tess_status (*fits_writing_end)(tess_comm *comm, tess_fits_writing *writing,
                                        const tess_fits_stats *stats,
                                        tess_held_files *held);

struct tess_fits_writing {
    fits_output
        file;   /**< of a plane: its own sum and range, and the cube's descriptor */
    char *path; /**< owned */
    tess_image_meta meta;
    fits_slab slab;
    tess_status status; /**< of this rank's pixels */
    fits_writing_end end;
    void *cube;    /**< NULL: an image, whose file is this writing's; borrowed */
    int64_t plane; /**< of the cube */
};

/** A writing of these rows, the first of which is at byte `offset`, to no file yet.
 *  TESS_ERR_ALLOC. Local. */
tess_status fits_writing_create(const char *path, const tess_image_meta *meta,
                                const tess_fits_rows *rows, int64_t offset,
                                tess_fits_writing **writing);

#endif
