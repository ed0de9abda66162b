/** @file imager_targets.h  (private to app/imager/)
 *  Several images of one set of samples.
 *
 *  A target is an image with a centre of its own. The plans of all targets of a job
 *  have one frame (tess_grid.h): samples are read, sent and sorted once. A rank holds
 *  the planes of all targets, so that their memory adds up, unless they are in turn.
 * One target is at work at a time: its geometry, plan, planes and model are those of
 * the job, and all of the engine finds them there. Between any two calls of the engine
 * it is the first one. Targets in turn have planes while their images are made, and
 * give them up: those that may, in host memory, and on devices without room for the
 * planes of all (imager_job_choose_turns).
 */
#ifndef TESS_IMAGER_TARGETS_H
#define TESS_IMAGER_TARGETS_H

#include "imager_job.h"

/** Have the job make these images of each set of samples. TESS_ERR_ALLOC. To be called
 * before the plan is made. Local. */
tess_status imager_job_set_targets(imager_job *job, const tess_geom *geom,
                                   int num_targets);

/** The number of images of a set. Local. */
int imager_job_num_targets(const imager_job *job);

/** The pixels of a target. Local. */
const tess_geom *imager_job_geom(const imager_job *job, int target);

/** The plan of a target. Local. */
const tess_grid_plan *imager_job_plan_of(const imager_job *job, int target);

/** Make a target the one at work: that which the steps grid to, and predict from.
 * Local. */
void imager_job_aim(imager_job *job, int target);

/** Whether memory of planes is that of one target at a time. Local. */
static inline bool imager_job_in_turn(const imager_job *job)
{
    return job->targets.in_turn && job->targets.num > 1;
}

/** Give the memory of planes of the target at work up if targets are in turn. Local. */
void imager_job_drop_planes(const imager_job *job, tess_planes *planes);

/** Make the plans of all targets, in place of those that there are. Errors of
 * tess_grid_plan_create_targets(). Local. */
tess_status imager_job_create_plans(imager_job *job, const tess_grid_opts *opts);

/** Free the plans of all targets, and the planes of all but the first. Collective. */
void imager_job_free_targets(imager_job *job);

/** The targets [*first, *end) whose models are predicted. Local. */
static inline void imager_job_predicted(const imager_job *job, int *first, int *end)
{
    const imager_view *view = &job->view;
    const bool all = view->num_predicted == 0;
    *first = all ? 0 : view->first_predicted;
    *end = all ? imager_job_num_targets(job) : *first + view->num_predicted;
}

/* ---- imager_job.c ---- */

/** Have targets that may take turns do so on devices that have no room for the planes
 * of all, once there is a plan. Ranks that share w-planes on devices hold all.
 *  Collective. */
tess_status imager_job_choose_turns(imager_job *job);

/** Memory that planes take on the device of a rank, of all targets together or, in
 *  turn, of the largest [bytes]; 0 without a device. Local. */
double imager_device_planes_bytes(const imager_job *job, bool in_turn);

/* ---- imager_view.c ---- */

/** Set the visibilities of `to` to sums over those of `from`, which has the same rows,
 * times these factors of the job's view for the target at work. With `less`, of as many
 * values as `to`, they become those of `less` less `scale` times these sums. `to` may
 * be `from`. TESS_ERR_ALLOC. Local. */
tess_status imager_view_apply(const imager_job *job, imager_factors *factors,
                              const tess_samples *from, const tess_samples *less,
                              double scale, tess_samples *to);

/** Set wanted[num_rows] to whether the target at work takes the rows of samples, by
 * imager_view.counts. Local. */
void imager_view_want(const imager_job *job, const tess_samples *samples, bool *wanted);

/** Copy the rows that the target at work takes, with their visibilities and weights.
 * `to` is of the kind of the samples, and empty. TESS_ERR_ALLOC. Local. */
tess_status imager_view_copy(const imager_job *job, const tess_samples *samples,
                             tess_samples *to);

/** The phase of a source in the middle of the target at work, relative to the direction
 * to which visibilities have been turned: turns = u l + v m + w nm1. Local. */
tess_geom_phase imager_view_phase(const imager_job *job);

/** Set the visibilities of samples, all values of each, to those of a source of 1 Jy in
 * the middle of the target at work. With `gains` they are times the responses of the
 * samples, which are 0 where there are none. TESS_ERR_ALLOC. Local. */
tess_status imager_view_source(const imager_job *job, bool gains, tess_samples *to);

#endif
