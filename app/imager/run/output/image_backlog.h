/** @file image_backlog.h  (private to app/imager/run/)
 *  The files of an output, whose pixels a thread writes while the next output is made.
 *  Byte order, checksums and the way to the disk take no time of their own then.
 */
#ifndef TESS_IMAGE_BACKLOG_H
#define TESS_IMAGE_BACKLOG_H

#include <stdbool.h>

#include "imager_product.h"
#include "tess_comm.h"
#include "tess_fits.h"
#include "tess_imager_opts.h"
#include "tess_worker.h"

/** Most files of an output, and most arrays of pixels that they are written from. */
enum {
    IMAGE_BACKLOG_FILES = 6 * TESS_MAX_IMAGES,
    IMAGE_BACKLOG_ARRAYS = IMAGE_BACKLOG_FILES + TESS_MAX_IMAGES
};

typedef struct image_backlog {
    int threads; /**< that convert pixels, at most */
    bool is_started;
    bool has_worker;     /**< false: images are too small to be worth a thread */
    tess_worker *worker; /**< NULL: pixels are written when the files are completed */
    int num_files, num_arrays;
    tess_fits_writing *file[IMAGE_BACKLOG_FILES]; /**< owned */
    tess_rows array[IMAGE_BACKLOG_ARRAYS];        /**< owned: pixels of these files */
    tess_held_files held; /**< what waits for a name with them */
    int64_t first, end;   /**< the outputs of this round, of which the log tells when
                               their files have their names */
} image_backlog;

/** Make a backlog without files, for outputs whose images have `bytes` bytes.
 * TESS_ERR_ALLOC. Local. */
tess_status image_backlog_create(int threads, double bytes, image_backlog **backlog);

/** Add a file that has begun. The backlog has not been started. Local. */
void image_backlog_add(image_backlog *backlog, tess_fits_writing *file);

/** Take over rows from which files are written; `*rows` becomes zeros. Local. */
void image_backlog_keep(image_backlog *backlog, tess_rows *rows);

/** Take over the rows of products, if files are being written from them; free them
 *  otherwise, also where `backlog` is NULL. Local. */
void image_backlog_keep_products(image_backlog *backlog, imager_product *product,
                                 int count);

/** Begin to write the pixels. `held`, which is emptied, waits for its names with the
 *  files. Local. */
void image_backlog_start(image_backlog *backlog, tess_held_files *held);

/** Complete the files, if they have been started, and give them their names together.
 *  TESS_ERR_IO, TESS_ERR_ALLOC. NULL is fine. Collective. */
tess_status image_backlog_finish(tess_comm *comm, image_backlog *backlog);

/** Wait, remove files that have not got their names, and free the arrays. Local. */
void image_backlog_drop(bool root, image_backlog *backlog);

/** The same, and free the backlog. NULL is fine. Local. */
void image_backlog_destroy(bool root, image_backlog *backlog);

#endif
