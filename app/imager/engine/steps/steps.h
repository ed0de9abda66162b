/** @file steps.h  (private to app/imager/)
 *  The sliding w-window: which blocks of w-planes are worked on when, and which planes
 *  are then complete.
 *
 *  Every w-group walks through its blocks in order, one a step. A plane is complete,
 *  and is transformed, after the step in which the last block that reaches it is done;
 *  brick sums are freed when all their planes are. In prediction a plane is transformed
 *  at the step of the first block that needs it.
 */
#ifndef TESS_STEPS_H
#define TESS_STEPS_H

#include "tess_grid.h"
#include "tess_mover.h"
#include "tess_partition.h"
#include "tess_planes.h"
#include "tess_profile.h"

typedef struct tess_steps tess_steps;

/** The steps of the blocks in which a rank has bricks: `own` are those of this rank, of
 * which the partition was made. TESS_ERR_ALLOC. Collective. */
tess_status tess_steps_create(tess_comm *comm, const tess_grid_plan *plan,
                              const tess_partition *partition,
                              const tess_brick_list *own, int num_groups,
                              tess_planes *planes, tess_profile *profile,
                              tess_steps **steps);
void tess_steps_destroy(tess_steps *steps); /**< NULL is fine. Local. */

/** Begin again, for other images of the same samples. No plane is done then. Local. */
void tess_steps_restart(tess_steps *steps);

/** Go on with other images of the same frame: with a plan of it and their planes. The
 * steps must be at their begin, or have been restarted. Local. */
void tess_steps_aim(tess_steps *steps, const tess_grid_plan *plan, tess_planes *planes);

int tess_steps_count(const tess_steps *steps); /**< Local. */

/** Number of planes that bricks of these blocks may touch, of num_planes. Local. */
int64_t tess_steps_touched(const tess_steps *steps);

/** The step in which a block is worked on; -1 of a block without bricks. Local. */
int tess_steps_of_block(const tess_steps *steps, int64_t block);

/** The w-planes whose sums are held at a time. If count is 0, these are all planes. */
typedef struct tess_plane_window {
    int64_t first, count;
} tess_plane_window;

/** Whether bricks of a block touch a window of planes. Local. */
bool tess_steps_block_in(const tess_steps *steps, int64_t block,
                         tess_plane_window window);

/** Blocks [*first, *end) whose bricks may touch a window of planes. Local. */
void tess_steps_blocks_in(const tess_steps *steps, tess_plane_window window,
                          int64_t *first, int64_t *end);

/** Whether any rank has bricks of blocks that touch a window of planes. Local. */
bool tess_steps_window_touched(const tess_steps *steps, tess_plane_window window);

/** Grid this rank's bricks of steps [first, end); then, with `transform`, add the
 * completed planes to the images. Image k is polarisation k of the samples, and PSFs
 * follow. If a device has no room for the sums, planes are added in parts, those of
 * some bricks at a time: no sums are held then, and the watcher is not called.
 * Collective. */
tess_status tess_steps_image(tess_steps *steps, int first, int end, bool transform,
                             const tess_samples *samples, const tess_brick_list *bricks,
                             bool psf);

/** As tess_steps_image for all steps at once, with the sums of `planes_at_once` planes
 * at a time: these planes are gridded and added to the images, and their sums are given
 * up, before the next. This needs less memory and takes longer, because the kernel
 * values of a visibility are computed again for each set of planes that it touches. The
 * images are the same, bit by bit. One w-group, backend cpu. Collective. */
tess_status tess_steps_image_by_planes(tess_steps *steps, int planes_at_once,
                                       const tess_samples *samples,
                                       const tess_brick_list *bricks, bool psf);

/** Grid one window of planes, if samples come in several parts of different bricks.
 * With the `last` part the planes are added to the images, and their sums are given up.
 * Collective. */
tess_status tess_steps_image_window(tess_steps *steps, tess_plane_window window,
                                    bool last, const tess_samples *samples,
                                    const tess_brick_list *bricks, bool psf);

/** Whether this rank's device has room for the sums of its bricks, which it holds a
 * w-window at a time. Local. */
bool tess_steps_sums_fit(const tess_steps *steps, const tess_brick_list *bricks,
                         int num_pol);

/** Whether the images hold all planes of a window. Local. */
bool tess_steps_window_done(const tess_steps *steps, tess_plane_window window);

/** A watcher is called between parts of the work; its failure ends the work.
 * Collective. */
typedef tess_status tess_steps_watcher(void *context);

/** Call `watch` before each step, and after each batch of planes that has been added to
 * the images. done[num_planes][num_images] (borrowed, or NULL: not wanted) is '1' for
 * planes that the images hold; planes that are so marked at the start are left out.
 * Local. */
void tess_steps_watch(tess_steps *steps, char *done, int num_images,
                      tess_steps_watcher *watch, void *context);

/** Call the watcher, unless images hold parts of planes. Collective. */
tess_status tess_steps_look(tess_steps *steps);

/** Note that other samples are gridded from here on: sums that are held stay as they
 * are until their planes are complete. Local. */
void tess_steps_next_samples(tess_steps *steps);

/** Write the sums that are held from before tess_steps_next_samples, or restore those
 * that as many ranks have written with the same plan and partition. Not for sums on a
 * device. TESS_ERR_ALLOC, and the mover's errors. Local. */
tess_status tess_steps_move(tess_steps *steps, tess_mover *mover);

/** Bytes that tess_steps_move writes. Local. */
int64_t tess_steps_bytes(const tess_steps *steps);

/** Whether the images hold all planes of a block. Local. */
bool tess_steps_block_done(const tess_steps *steps, int64_t block);

/** Fill the samples' visibilities from the model images, in all steps. Collective. */
tess_status tess_steps_predict(tess_steps *steps, tess_samples *samples,
                               const tess_brick_list *bricks);

/** As tess_steps_predict, with `planes_at_once` > 0 planes at a time, like
 * tess_steps_image_by_planes. Sums over planes are rounded in another order.
 * Collective. */
tess_status tess_steps_predict_by_planes(tess_steps *steps, int planes_at_once,
                                         tess_samples *samples,
                                         const tess_brick_list *bricks);

/** Choose the first grid line of each of `slabs` slabs, [slabs + 1], so that all slabs
 * have the same number of occupied tile rows. The numbers are those of this rank's
 * bricks, summed over ranks. Collective. */
tess_status tess_slabs_choose(tess_comm *comm, const tess_grid_plan *plan,
                              const tess_brick_list *bricks, int slabs,
                              int64_t *slab_line);

#endif
