/** @file visset_private.h  (private to app/imager/engine/visset/)
 *  Functions that the files of a visibility set share.
 */
#ifndef TESS_VISSET_PRIVATE_H
#define TESS_VISSET_PRIVATE_H

#include "imager_passes.h"
#include "residual.h"
#include "tess_samples.h"
#include "visset.h"
#include "visset_keeper.h"
#include "visset_way.h"

/** Samples as they are gridded: those of the set or of one pass over data, or residuals
 * instead. */
typedef struct visset_view {
    const tess_samples *samples;
    const tess_brick_list *bricks;
    residual_samples residual;  /**< residuals instead of the samples, or zeros */
    const tess_samples *apart;  /**< the samples, or residuals, if targets take views of
                                     their correlations; else NULL */
    tess_samples mixed;         /**< what the target at work takes of these, or zeros */
    struct tess_tracks *tracks; /**< makes nodes of these instead, or NULL */
    int taken_target, num_taken; /**< targets whose nodes have their values */
    bool is_copy;                /**< `mixed` owns all of its arrays */
    const tess_brick_list *all;  /**< bricks of `apart` */
    tess_brick_list own; /**< those of the rows that the target at work takes, or zeros
                          */
    bool of_sources;     /**< that is a source in its middle instead */
    bool with_gains;     /**< times the responses of samples */
    const tess_brick_list *held; /**< `apart` where a backend of its own memory holds
                                    it, and `loaded` is derived from it; or NULL */
    tess_brick_list kept;        /**< the same, if this view has loaded it; or zeros */
    tess_brick_list
        loaded; /**< the samples as a backend that sorts holds them, or zeros */
} visset_view;

/** Make the view that is gridded, of samples and their bricks. The sums of
 * `planes_of_model` planes are held at a time while a model is predicted (0: those of
 * all). Before the view is gridded to a target, that takes its own view
 * (visset_view_take). Collective. */
tess_status visset_view_make(visset *set, const visset_request *request,
                             const tess_samples *samples, tess_brick_list *bricks,
                             int planes_of_model, visset_view *view);
void visset_view_free(visset_view *view); /**< Local. */

/** Make the view what the target at work grids, after which those up to `end_target`
 * follow. Nothing is done unless the job has views of correlations. TESS_ERR_ALLOC.
 * Collective in the job's team. */
tess_status visset_view_take(imager_job *job, int end_target, visset_view *view);

/* ---- visset_tracks.c ---- */

/** Whether targets grid nodes of tracks in place of these samples. Local. */
bool visset_tracks_wanted(const imager_job *job, const visset_request *request,
                          const tess_samples *samples);

/** Find the tracks in bricks, or from brick to brick where `bricks` is NULL.
 * TESS_ERR_ALLOC. Local. */
tess_status visset_tracks_make(const imager_job *job, const tess_samples *samples,
                               const tess_brick_list *bricks,
                               struct tess_tracks **tracks);

/** Make nodes of what the target at work takes of the samples, and of what some of the
 * next ones take, up to `end_target`. Local. */
void visset_tracks_take(const imager_job *job, int end_target, visset_view *view);

/** Samples of the kind of the set's data. Local. */
const tess_samples *visset_kind(const visset *set);

/** The samples that this rank holds while it grids `samples`. Local. */
visset_held visset_held_with(const visset *set, const tess_samples *samples,
                             const tess_brick_list *bricks);

/** Add samples that will be gridded next to the set's sums. TESS_ERR_ALLOC. Local. */
tess_status visset_add_sums(visset *set, const tess_samples *samples);

/** The responses of targets (imager_responses): make room for them, if the job has
 * views of models; add samples; sum them over ranks. The first two are Local, the last
 * is Collective. */
tess_status visset_response_create(visset *set);
tess_status visset_response_add(visset *set, const tess_samples *samples);
tess_status visset_response_sum(visset *set);

/** Behind the last target of a request. Local. */
int visset_end_target(const imager_job *job, const visset_request *request);

/** Cut bricks into the parts that are summed by themselves with --reproducible. Local.
 */
tess_status visset_cut_bricks(const imager_job *job, tess_brick_list *bricks);

/** Send all samples to their owners and sort them there. Collective. */
tess_status visset_send(visset *set);

/** Make a target the one at work, and begin with the first step. The first target is
 * at the step where the set is. Local. */
void visset_aim(imager_job *job, int target);

/** Grid and transform all samples that this rank owns to all targets, with as many
 * planes at a time as memory allows. Collective. */
tess_status visset_grid(visset *set, const visset_request *request,
                        const tess_samples *samples, tess_brick_list *bricks);

/** Choose the passes over the set's data with the bricks `owned` by this rank, and what
 * the request makes beside the samples (visset_choose_passes). Collective. */
tess_status visset_plan_passes(const visset *set, const visset_request *request,
                               const tess_brick_list *owned, imager_passes *passes);

/** Go over the data in passes, and grid the samples of each pass. Several targets that
 * need several passes go over the data one after the other. Collective. */
tess_status visset_go_over(visset *set, const visset_request *request);

/** Go over the data in passes, and keep the samples of each pass in set->spool. The
 * samples are given up where they come from. TESS_ERR_IO. Collective. */
tess_status visset_spool(visset *set);

/** Grid the passes of set->spool. Collective. */
tess_status visset_grid_spooled(visset *set, const visset_request *request);

/** Make the products from the sums of all planes and of the weights, and undo the
 * scales of the data. Collective. */
tess_status visset_finish(visset *set, const visset_request *request,
                          const imager_stages *stages, imager_product *product);

/* ---- visset_view.c ---- */

/** Whether the backend has room to load all samples at once. Local. */
bool visset_can_load(const imager_job *job, const tess_samples *samples);

/** Set *everywhere to whether `here` is true on all ranks. Collective. */
tess_status visset_on_all_ranks(const imager_job *job, bool here, bool *everywhere);

/** Have the backend hold all samples at once, if every rank has room for them and for
 * residuals, and for images that are not there yet. *held becomes `bricks` if the
 * backend holds these already, `loaded` if the backend has loaded them now, or NULL if
 * there is no room. Collective. */
tess_status visset_hold(const visset *set, const tess_samples *samples,
                        const tess_brick_list *bricks, tess_brick_list *loaded,
                        const tess_brick_list **held);

/** Leave the set's samples to host memory, because the backend does not hold their
 * residuals, or what targets take of them: samples that the backend has made are
 * brought there. TESS_ERR_ALLOC. Collective in the job's team. */
tess_status visset_leave_to_host(visset *set);

#endif
