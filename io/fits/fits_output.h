/** @file fits_output.h  (private to io/)
 *  A file of pixels that the ranks write together, each the rows that it has.
 */
#ifndef TESS_FITS_OUTPUT_H
#define TESS_FITS_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "fits_header.h"
#include "tess_comm.h"
#include "tess_fits.h"
#include "tess_held_files.h"
#include "tess_out_file.h"

/** The file, and what this rank has written of it. */
typedef struct fits_output {
    const char *path;              /**< the final name; the caller's */
    char temp[TESS_OUT_FILE_NAME]; /**< "" once it is held */
    int fd;                        /**< -1: not open on this rank */
    int64_t header_bytes;
    uint64_t sum;    /**< of the words, folded now and then */
    double min, max; /**< of finite pixels */
} fits_output;

/** Pixels of a rank, and the first byte that they take. */
typedef struct fits_slab {
    const void *pixels;
    int64_t count, offset;
    bool is_double;
} fits_slab;

/** Refuse sizes that no file can have, and rows that are not in the image.
 *  TESS_ERR_USAGE, TESS_ERR_INTERNAL. Local. */
tess_status fits_output_check(const char *path, const tess_image_meta *meta,
                              int64_t row_first, int64_t num_rows);

/** Bytes of all pixels, of a cube those of all planes. Local. */
int64_t fits_output_bytes(const tess_image_meta *meta, bool is_double);

/** The first rank creates the file and reserves its pixels; file->path is set.
 *  TESS_ERR_IO. Collective. */
tess_status fits_output_begin(tess_comm *comm, const tess_image_meta *meta,
                              bool is_double, bool overwrite, fits_output *file);

/** Forget the sum and the range of what has been written so far. Local. */
void fits_output_clear(fits_output *file);

/** Open the file, if this rank has not done so. TESS_ERR_IO. Local. */
tess_status fits_output_open(fits_output *file);

/** Write a slab to the open file by at most `threads` threads, and add it to sum and
 * range. TESS_ERR_IO, TESS_ERR_ALLOC. Local. */
tess_status fits_output_write(fits_output *file, const fits_slab *slab, int threads);

/** Sum and range over the ranks. Collective. */
tess_status fits_output_sum(tess_comm *comm, const fits_output *file,
                            tess_fits_stats *stats);

/** Write the final header, and zeros up to a whole block. Local: the first rank. */
tess_status fits_output_end(fits_output *file, const tess_image_meta *meta,
                            bool is_double, const tess_fits_stats *stats);

/** Give the finished file to `held`, on every rank that has written to it; `root`: the
 *  first rank, which gives it its name. Local. */
tess_status fits_output_hold(bool root, fits_output *file, tess_held_files *held);

/** Close the file; the first rank removes one that is not held. Local. */
void fits_output_leave(bool root, fits_output *file);

#endif
