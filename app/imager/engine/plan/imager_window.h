/** @file imager_window.h  (private to app/imager/)
 *  The sums of bricks: their memory, and how many w-planes of them are held at a time.
 */
#ifndef TESS_IMAGER_WINDOW_H
#define TESS_IMAGER_WINDOW_H

#include "imager_job.h"

/** Memory that a rank holds while it makes images: the program and its libraries,
 * tables of w-kernels, images of other outputs, and means over channels [bytes]. Local.
 */
double imager_base_bytes(const imager_job *job);

/** Bytes of means over channels that are held while images are made. A team that makes
 * one output has none before that is made. Local. */
double imager_means_beside(const imager_job *job);

/** Pixels of all targets whose planes are held at a time. Local. */
double imager_target_pixels(const imager_job *job);

/** Memory of images and of the rows that they become, one after the other [bytes].
 * Local. */
double imager_finishing_bytes(const imager_job *job);

/** Warn, once for a job, if some rank needs more memory than it may use. Collective. */
tess_status imager_tell_need(imager_job *job, double bytes);

/** Bytes of samples in memory. Local. */
double imager_samples_bytes(const tess_samples *samples);

/** The sums of this rank's bricks: `all` bytes of all planes of a w-window, and `plane`
 * bytes of one plane. touch_bytes_s: the rate at which the system gives new memory for
 * them [bytes/s]. */
typedef struct imager_sums_size {
    double all, plane, num_vis;
    double touch_bytes_s;
} imager_sums_size;

/** Bytes of the sums that are held at a time with this number of planes; 0: with all.
 * Local. */
double imager_window_bytes(const imager_sums_size *size, int planes_at_once);

/** The size of the sums of bricks_of_block[num_blocks] bricks with `num_vis`
 * visibilities in all. Local. */
imager_sums_size imager_sums_size_of(const imager_job *job,
                                     const int64_t *bricks_of_block, double num_vis);

/** Add the bricks of each block to bricks_of_block[num_blocks]; returns the number of
 * their visibilities. Local. */
double imager_count_blocks(const imager_job *job, const tess_brick_list *bricks,
                           int64_t *bricks_of_block);

/** The size of the sums of this rank's bricks. Collective. */
tess_status imager_own_sums(const imager_job *job, const tess_brick_list *bricks,
                            imager_sums_size *size);

/** Time that one more set of planes takes: kernel values of `num_vis` visibilities, and
 * their products, are computed again [s]. Local. */
double imager_set_s(const imager_job *job, double num_vis);

/** The number of planes whose sums are held at a time if these may take `room` bytes;
 * 0: all. It is the number that takes the least time: each set of planes computes the
 * kernel values of visibilities again, but needs less new memory. Local. */
int imager_planes_at_once(const imager_job *job, const imager_sums_size *size,
                          double room);

/** As imager_planes_at_once, for this rank's bricks, agreed on with the other ranks, if
 * this rank holds `other_bytes` beside the sums. 0 where steps.h cannot work on some
 * planes at a time. The log tells each change of the number. Collective. */
tess_status imager_plane_window(imager_job *job, double other_bytes,
                                const tess_brick_list *bricks, int *planes_at_once);

/** Warn (imager_tell_need) if the sums of this number of planes do not fit beside
 * `other_bytes`. Collective. */
tess_status imager_tell_sums(imager_job *job, const tess_brick_list *bricks,
                             int planes_at_once, double other_bytes);

/** Number of parts of a brick with `num_vis` visibilities that have sums of their own:
 * one, unless the run is --reproducible (imager_part_vis). Local. */
int64_t imager_brick_parts(const imager_job *job, int64_t num_vis);

#endif
