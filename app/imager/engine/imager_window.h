/** @file imager_window.h  (private to app/imager/)
 *  The sums of bricks: their memory, and how many planes of them are held at
 *  a time.
 */
#ifndef TESS_IMAGER_WINDOW_H
#define TESS_IMAGER_WINDOW_H

#include "imager_job.h"
#include "tess_samples.h"

/** What a rank holds from the plan to the end of the run: the program and its
 * libraries, tables of w-kernels, and means over channels [bytes]. Local. */
double imager_base_bytes(const imager_job *job);

/** Images, and the rows that they become one after the other [bytes]. Local. */
double imager_finishing_bytes(const imager_job *job);

/** Warn, once for a job, when any rank needs more than it may use. Collective. */
tess_status imager_tell_need(imager_job *job, double bytes);

/** Bytes of samples in memory. Local. */
double imager_samples_bytes(const tess_samples *samples);

/** Sums of this rank's bricks: bytes of all planes of a w-window, and of one plane; how
 *  fast new memory for them is got. */
typedef struct imager_sums_size {
    double all, plane, num_vis;
    double touch_bytes_s;
} imager_sums_size;

/** What of it is held at a time with so many planes, 0: with all. Local. */
double imager_window_bytes(const imager_sums_size *size, int planes_at_once);

/** bricks_of_block[num_blocks] of them, with so many visibilities. Local. */
imager_sums_size imager_sums_size_of(const imager_job *job,
                                     const int64_t *bricks_of_block, double num_vis);

/** Add the bricks of each block to bricks_of_block[num_blocks]; returns what
 * visibilities they have. Local. */
double imager_count_blocks(const imager_job *job, const tess_brick_list *bricks,
                           int64_t *bricks_of_block);

/** Both for the bricks of this rank. Collective. */
tess_status imager_own_sums(const imager_job *job, const tess_brick_list *bricks,
                            imager_sums_size *size);

/** Seconds that one more set of planes takes: kernel values of so many visibilities,
 * and their products, are worked out again. Local. */
double imager_set_s(const imager_job *job, double num_vis);

/** Of how many planes the sums are held at a time when they may take `room` bytes; 0:
 *  of all. As many as take the least time: each set of planes works out the kernel
 *  values of visibilities again, and needs less new memory. Local. */
int imager_planes_at_once(const imager_job *job, const imager_sums_size *size,
                          double room);

/** The same for this rank's bricks, agreed on with the others, when it holds
 *  `other_bytes` beside sums; 0 where steps.h cannot go plane by plane. Collective. */
tess_status imager_plane_window(const imager_job *job, double other_bytes,
                                const tess_brick_list *bricks, int *planes_at_once);

/** Tell (imager_tell_need) of what this rank needs with its sums of so many planes.
 *  Collective. */
tess_status imager_tell_sums(imager_job *job, const tess_brick_list *bricks,
                             int planes_at_once, double other_bytes);

/** Parts of a brick with so many visibilities, each of which has sums of its own: one,
 *  but with --reproducible (imager_part_vis). Local. */
int64_t imager_brick_parts(const imager_job *job, int64_t num_vis);

#endif
