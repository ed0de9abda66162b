/** @file device_rows.h  (private to app/imager/)
 *  Rows of UVFITS files on their way to a device and back, as they are in the file:
 *  what device_read.c (images) and device_predict.c (predictions) share. Threads read
 * into pinned buffers, or write from them, while the link moves others.
 */
#ifndef TESS_DEVICE_ROWS_H
#define TESS_DEVICE_ROWS_H

#include "raw_device.h"
#include "source.h"

/** How the rows of one segment of one observation are decoded. */
typedef struct device_recipe {
    raw_recipe raw;
    const tess_recipe *of; /**< the recipe of which this is a copy; NULL: none yet */
} device_recipe;

/** Whether a block can be copied to the device as it is. `rows` describes it then. No
 * row or channel may be left out by time or channel, and a row must fit into a buffer.
 * Local. */
bool device_rows_fit(const tess_source *source, int64_t span, tess_source_rows *rows);

/** Device memory for the samples of `num_rows` rows, with what sorting them needs
 * [bytes]. Local. */
double device_samples_bytes(const tess_samples *like, int64_t num_rows, int64_t num_vis,
                            bool weighted);

/** Samples in device memory, like these, not yet filled; with their weights, or without
 *  any.
 *  Errors of tess_device_alloc. Local. */
tess_status device_samples_make(const tess_source_info *info, const tess_samples *like,
                                int64_t num_rows, int64_t num_vis, bool weighted,
                                tess_device_samples *out);
void device_samples_free(tess_device_samples *samples);

/** tess_resident.excerpt of such samples. */
tess_status device_samples_excerpt(const tess_device_samples *samples, int most,
                                   tess_samples *out);

/** tess_resident.bring_home of such samples. */
tess_status device_samples_download(const tess_device_samples *samples,
                                    tess_samples *out);

/** Other weights, whose owner the samples become. */
void device_weights_replace(tess_device_samples *samples, void *weight);

/** Make the recipe that of these rows, unless it is. Local. */
tess_status device_recipe_for(const tess_source_rows *rows, const double *inv_lambda,
                              device_recipe *recipe);
void device_recipe_free(device_recipe *recipe);

/** Sums of nothing, in device memory. Local. */
tess_status device_sums_make(raw_sums **sums);

/** Read rows [first, first + count) of a block into the next pinned buffer, by
 *  `threads` threads, and enqueue its copy to device memory. `count` is lowered to what
 *  fits. The seconds that this takes the readers are added to `*busy_s`. Local. */
tess_status device_rows_upload(const tess_source_rows *rows, int64_t first,
                               int64_t *count, int threads, void *to, double *busy_s);

/** The opposite: all rows of a block, changed on the device, to a file that is written;
 *  waits. Local. */
tess_status device_rows_write(const tess_source_rows *rows, const void *from,
                              int threads, tess_vis_writer *writer, double *busy_s);

/** Row `row` of the blocks from `first_span` on has an antenna that its file does not
 *  list: fails with what reading it as a block says of it. Local. */
tess_status device_rows_refuse(const tess_source *source, int64_t first_span,
                               int64_t row);

/** A sum that is held as the bits of a double. */
double device_sum(unsigned long long bits);

#endif
