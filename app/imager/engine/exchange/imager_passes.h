/** @file imager_passes.h  (private to app/imager/)
 *  Passes over data that do not fit into memory.
 */
#ifndef TESS_IMAGER_PASSES_H
#define TESS_IMAGER_PASSES_H

#include "imager_job.h"
#include "steps.h"

/** Extend a span of planes by those that a brick touches. Local. */
void imager_join_planes(tess_plane_span *planes, tess_plane_span more);

/** Threads for sorting: no more than keep memory busy, where that number is known.
 * Local. */
int imager_sort_threads(const imager_job *job);

/** Sort samples to bricks with `in_place`, for the backend to work on them where they
 * are. Otherwise count them by brick, as they will be sent. TESS_ERR_ALLOC. Local. */
tess_status imager_sort(const imager_job *job, const tess_samples *samples,
                        bool skip_ignored, bool in_place, tess_brick_list *bricks);

/** List this rank's bricks with what all ranks have counted in them; a split brick is
 * listed whole by its first owner. Free the list with tess_brick_list_free().
 * Collective. */
tess_status imager_owned_bricks(const imager_job *job, const tess_brick_list *counted,
                                tess_brick_list *owned);

/** The bricks that a pass takes: of those of the w-steps [first_step, end_step), every
 * num_shares-th one, from brick `share` on. */
typedef struct imager_cut {
    int first_step, end_step, share, num_shares;
} imager_cut;

/** Passes over data that do not fit into memory. For each of several windows of
 * w-planes, each pass takes a share of the bricks. */
typedef struct imager_passes {
    int planes_at_once; /**< planes whose sums are held; 0: all that a w-window touches
                         */
    int num_windows;    /**< windows of planes; 1 if planes_at_once is 0 */
    int *num_shares;    /**< [num_windows] passes of each window; owned */
    int num_reads;      /**< passes in all */
    imager_cut *cut;    /**< [num_reads] the bricks of each pass where a device limits
                             its samples, or NULL; owned */
    double sums_bytes, sample_bytes; /**< largest amounts on a rank at a time */
    bool too_large;                  /**< even these passes do not fit into memory */
} imager_passes;

/** Memory that a rank holds in every pass beside its samples and sums, if samples that
 * are kept or sent take `sample_bytes`, and blocks of the file that are read ahead
 * `block_bytes` [bytes]. Local. */
double imager_held_bytes(const imager_job *job, double sample_bytes,
                         double block_bytes);

/** Memory that a rank needs for a sample, and for a row beside its samples [bytes]. */
typedef struct imager_item_bytes {
    double vis, row;
} imager_item_bytes;

/** Choose the fewest passes with which samples of `each` size and brick sums fit beside
 * `other_bytes`, and in which every rank's backend has room for the samples,
 * which are like `limited`, at once. If `limited` is NULL, any number will do. Free
 * with imager_passes_free(). Collective. */
tess_status imager_passes_choose(const imager_job *job, const tess_brick_list *owned,
                                 imager_item_bytes each, double other_bytes,
                                 const tess_samples *limited, imager_passes *passes);
void imager_passes_free(imager_passes *passes); /**< Local. */

/** The largest number of passes that add to the same planes. Local. */
int imager_passes_in_turn(const imager_job *job, const imager_passes *passes);

/** The cut of a pass, and the one that takes all bricks. Local. */
imager_cut imager_passes_cut(const imager_job *job, const imager_passes *passes,
                             int window, int64_t pass);
imager_cut imager_cut_all(const imager_job *job);

/** Whether a cut has a brick of this w-step. Local. */
bool imager_cut_has(const imager_cut *cut, int step, int64_t key);

/** The planes of a window; count 0: all. Local. */
tess_plane_window imager_passes_window(const imager_job *job,
                                       const imager_passes *passes, int window);

/* ---- pass_cuts.c ---- */

/** Replace the passes by those that each rank has room for. fill[num_bricks] is the
 * share of that room which the samples of a brick of `owned` take on this rank.
 * TESS_ERR_ALLOC. Collective. */
tess_status pass_cuts_make(const imager_job *job, const tess_brick_list *owned,
                           const double *fill, imager_passes *passes);

#endif
