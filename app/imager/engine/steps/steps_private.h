/** @file steps_private.h  (private to app/imager/engine/steps/)
 *  State of the w-steps: sums of bricks, and planes that are done.
 */
#ifndef TESS_STEPS_PRIVATE_H
#define TESS_STEPS_PRIVATE_H

#include "steps.h"

/** Brick sums of one block, from one pass over the data. */
typedef struct steps_live {
    int64_t block;
    int64_t first_brick; /**< first brick in the brick list, for prediction */
    bool settled; /**< whether its samples came before those that are gridded now */
    tess_brick_sums sums;
} steps_live;

struct tess_steps {
    tess_comm *comm;
    const tess_grid_plan *plan;
    const tess_partition *partition;
    tess_planes *planes;
    tess_profile *profile;
    int num_groups, num_steps;
    int *step_of_block; /**< [num_blocks] step in which each block is worked on; -1:
                             none, because no rank has bricks in it */
    int64_t *block_of;  /**< [num_steps][num_groups] these blocks, or -1 */
    steps_live *live;
    int64_t num_live, capacity_live;
    tess_brick_arena spare; /**< memory of the largest block of the last window */
    char *plane_done;       /**< [num_planes] whether each plane is done */
    int64_t *touched;       /**< [num_planes + 1] planes that have values */
    tess_piece *piece;      /**< pieces of a batch of jobs */
    int64_t capacity_pieces;
    bool in_parts; /**< planes have been added to the images in parts */
    char *done; /**< [num_planes][num_images] '1': the image holds the plane; or NULL */
    int num_images;
    tess_steps_watcher *watch; /**< or NULL */
    void *context;
    double grid_wall_s, grid_busy_s;
    tess_progress progress; /**< progress of the present work: gridding, or planes */
};

/** Bricks [first, end) of a block. */
typedef struct steps_part {
    int64_t block, first, end;
} steps_part;

/** Planes [*first, *end) that bricks of a block may touch. Local. */
void steps_planes_of_block(const tess_grid_plan *plan, int64_t block, int64_t *first,
                           int64_t *end);

/** Blocks [*first, *end) whose bricks may touch a plane. Local. */
void steps_blocks_of_plane(const tess_grid_plan *plan, int64_t plane, int64_t *first,
                           int64_t *end);

/** The block that a group of ranks works on in a step, or -1. Local. */
int64_t steps_block_of(const tess_steps *steps, int step, int group);

/** The last step that has bricks which touch a plane; -1: there is none. Local. */
int steps_last_of_plane(const tess_steps *steps, int64_t plane);

/** All bricks of a block in the list. Local. */
steps_part steps_whole_block(const tess_steps *steps, const tess_brick_list *bricks,
                             int64_t block);

/** Agree on `status`, and transform the wanted planes in which any rank has values, for
 * every polarisation: from sums to images (`forward`), or back. Collective. */
tess_status steps_transform_planes(tess_steps *steps, tess_status status,
                                   const int64_t *wanted, int64_t count, int num_pol,
                                   bool forward);

/** Make room for the sums of a block, which is freed with the steps. Local. */
tess_status steps_add_live(tess_steps *steps, int64_t block, steps_live **live_out);

/** Free all sums. Local. */
void steps_free_live(tess_steps *steps);

/** Free the sums of blocks whose planes are all done. Local. */
void steps_free_finished(tess_steps *steps);

/** Free all sums, but keep the largest arena for the next window of planes. Local. */
void steps_give_up_live(tess_steps *steps);

/** Free the arena that steps_give_up_live has kept. Local. */
void steps_free_spare(tess_steps *steps);

/** Note in the profile that gridding or degridding kept the threads busy for this share
 * of the time. It began at `start_s`, and took `own_s` of the first thread. Local. */
void steps_note_gridded(tess_steps *steps, double start_s, double own_s,
                        double busy_share);

/** Grid bricks of a block into sums that stay, of the planes in the window. Local. */
tess_status steps_grid_part(tess_steps *steps, const steps_part *part,
                            tess_plane_window window, const tess_samples *samples,
                            const tess_brick_list *bricks, bool psf);

/** Number of visibilities of bricks of a block. Local. */
double steps_num_vis(const steps_part *part, const tess_brick_list *bricks);

/** Call steps_grid_part() if there are bricks, and advance the progress. Local. */
tess_status steps_add_sums(tess_steps *steps, const steps_part *part,
                           tess_plane_window window, const tess_samples *samples,
                           const tess_brick_list *bricks, bool psf);

/** List the planes that are complete after a step, and mark them as done:
 * planes[count]. To be called for one step after the other. Local. */
int64_t steps_planes_complete(tess_steps *steps, int step, int64_t *planes);

/** List the planes that the blocks of a step need and that have not been transformed
 * back, planes[*count], and lay out the sums of all bricks that touch them.
 * TESS_ERR_ALLOC. Local. */
tess_status steps_lay_out_step(tess_steps *steps, int step, const tess_samples *samples,
                               const tess_brick_list *bricks, int64_t *planes,
                               int64_t *count);

/** Free the sums of a step's blocks. Local. */
void steps_free_step(tess_steps *steps, int step);

/** Lay out the sums of bricks of a block for prediction; their values are undefined.
 * TESS_ERR_ALLOC. Local. */
tess_status steps_lay_out_part(tess_steps *steps, const steps_part *part,
                               tess_plane_window window, const tess_samples *samples,
                               const tess_brick_list *bricks);

/** Degrid the bricks of a live block. Local. */
tess_status steps_degrid_live(tess_steps *steps, const steps_live *live,
                              tess_samples *samples, const tess_brick_list *bricks);

/** Degrid the sums that have been laid out for a step, and free them. Local. */
tess_status steps_degrid(tess_steps *steps, int step, tess_samples *samples,
                         const tess_brick_list *bricks);

/** Decide whether some rank's device has no room for the sums that are held at a time
 * (`all`: until the end of the steps), so that planes are transformed in parts. Sums
 * that are rounded in one order are never made in parts; a lack of memory is an error
 * there. Collective. */
tess_status steps_choose_parts(tess_steps *steps, const tess_brick_list *bricks,
                               int num_pol, bool all, bool *in_parts);

/** As tess_steps_image, for a device that has no room for all sums. Collective. */
tess_status steps_image_in_parts(tess_steps *steps, int first, int end,
                                 const tess_samples *samples,
                                 const tess_brick_list *bricks, bool psf);

/** As tess_steps_predict, for a device that has no room for all sums. `planes`: work
 * memory, [num_planes]. Collective. */
tess_status steps_predict_in_parts(tess_steps *steps, tess_samples *samples,
                                   const tess_brick_list *bricks, int64_t *planes);

#endif
