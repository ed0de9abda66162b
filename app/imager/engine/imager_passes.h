/** @file imager_passes.h  (private to app/imager/)
 *  Passes over data that do not fit into memory.
 */
#ifndef TESS_IMAGER_PASSES_H
#define TESS_IMAGER_PASSES_H

#include "imager_job.h"
#include "sample_sets.h"
#include "steps.h"
#include "tess_samples.h"

/** Add to the planes that a brick touches. Local. */
void imager_join_planes(tess_plane_span *planes, tess_plane_span more);

/** Threads for sorting: no more than memory allows to be of use, where that is known.
 */
int imager_sort_threads(const imager_job *job);

/** Sort samples to bricks with `in_place`, for the backend to work on as they are; else
 *  only count them by brick, as they will be sent. Local. */
tess_status imager_sort(const imager_job *job, const tess_samples *samples,
                        bool skip_ignored, bool in_place, tess_brick_list *bricks);

/** Room for the counts of so many bricks in an empty list. TESS_ERR_ALLOC. Local. */
tess_status imager_make_counts(int64_t num_bricks, bool with_planes,
                               tess_brick_list *list);

/** This rank's bricks with what all ranks have counted in them, whole ones by their
 * first owner; free it with tess_brick_list_free(). Collective. */
tess_status imager_owned_bricks(const imager_job *job, const tess_brick_list *counted,
                                tess_brick_list *owned);

/** How data that do not fit into memory are gone over: for each of some windows of
 *  w-planes, in passes that take a share of the bricks each. */
typedef struct imager_passes {
    int planes_at_once; /**< whose sums are held; 0: all that a w-window touches */
    int num_windows;    /**< of planes; 1 when planes_at_once is 0 */
    int *num_shares;    /**< [num_windows] passes for each; owned */
    int num_reads;      /**< passes in all */
    double sums_bytes, sample_bytes; /**< at a time, at most, on a rank */
    bool too_large;                  /**< they do not fit all the same */
} imager_passes;

/** What a rank holds in every pass beside its samples and sums, when samples that are
 *  kept or sent take so much, and blocks of the file are read ahead. Local. */
double imager_held_bytes(const imager_job *job, double sample_bytes,
                         double block_bytes);

/** The fewest passes with which samples of so many bytes, and brick sums, fit beside
 *  what a rank holds otherwise, and none has more than `most_vis` samples on a rank.
 *  Free with imager_passes_free(). Collective. */
tess_status imager_passes_choose(const imager_job *job, const tess_brick_list *owned,
                                 double vis_bytes, double other_bytes, int64_t most_vis,
                                 imager_passes *passes);
void imager_passes_free(imager_passes *passes); /**< Local. */

/** Planes of a window; count 0: all. Local. */
tess_plane_window imager_passes_window(const imager_job *job,
                                       const imager_passes *passes, int window);

#endif
