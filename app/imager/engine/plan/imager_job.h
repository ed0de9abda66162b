/** @file imager_job.h  (private to app/imager/)
 *  The job: everything between samples and images, which is the plan, how ranks share
 *  it, planes and steps.
 */
#ifndef TESS_IMAGER_JOB_H
#define TESS_IMAGER_JOB_H

#include "imager_extent.h"
#include "imager_job_parts.h"
#include "steps.h"
#include "tess_backend.h"
#include "tess_comm.h"
#include "tess_costs.h"
#include "tess_geom.h"
#include "tess_grid.h"
#include "tess_imager_opts.h"
#include "tess_partition.h"
#include "tess_planes.h"
#include "tess_profile.h"
#include "tess_projection.h"

struct visset_keeper;

/** Everything between samples and images for one plan. */
typedef struct imager_job {
    tess_comm *comm;
    const tess_layout *layout;
    const tess_gridding *gridding;
    tess_geom geom;
    bool worst_pixel; /* the plan is for prediction, too (tess_grid_opts) */
    int num_pol,
        num_images; /* num_images: images that are gridded, of polarisations and PSFs */
    tess_profile *profile;
    imager_extent extent; /* extent of all visibilities that the plan serves */
    const tess_backend *backend;
    tess_comm *alone; /* a communicator of this rank only, or NULL. If it is set, every
                         rank grids its samples on its own device (device_read.h) and
                         makes whole images of them, which are summed in the end, unless
                         devices share planes. Whoever sets it owns it */
    struct visset_keeper *keeper; /* keeper of a run that may be continued, or NULL */
    imager_told told;
    imager_ranks ranks;
    imager_memory memory;
    tess_costs
        costs; /* measured costs by which the plan was made; zeros: the built-in ones */
    tess_grid_plan *plan;
    tess_partition *partition;
    tess_planes *planes;
    tess_steps *steps;
    int64_t *slab_line; /* [fft_ranks + 1] first line of each rank's slab of planes, by
                           the partition */
    imager_job_model model;
    imager_targets targets;
    imager_view view; /* what targets grid of the samples; num_pol of it is the job's */
    struct tess_steps_batch *batch; /* memory for residuals, kept for the next image */
} imager_job;

/** The ranks that transform w-planes together, and go through the steps together. */
tess_comm *imager_team(const imager_job *job);

/** The ranks among which samples, and so bricks, are divided. */
tess_comm *imager_samples_team(const imager_job *job);

/** Where finished rows of images live, which is where what uses them takes them from.
 * Local. */
const tess_place *imager_rows_place(const imager_job *job);

/** Make the gridding plan for the extent, once for all outputs. TESS_ERR_ALLOC names
 * the memory that a plan would need that does not fit. Collective. */
tess_status imager_job_plan(imager_job *job);

/** Decide again how the ranks of job->comm share w-planes and their transforms. Errors
 * as of imager_job_plan. Local. */
tess_status imager_job_share(imager_job *job);

/** How `ranks` ranks would share the planes. Local. */
void imager_shares(const imager_job *job, int ranks, int *num_groups, int *fft_ranks);

/** Memory that images, a plane and finished rows would then take on each of `ranks`
 *  ranks [bytes]. Local. */
double imager_team_bytes(const imager_job *job, int ranks);

/** Replace the plan's costs by measured ones for an estimate, by whichever costs the
 * plan was made. Does nothing if the layout does not ask for measured costs.
 * Collective. */
tess_status imager_job_calibrate(imager_job *job);

/** Memory that images and a plane take on this rank, without pieces of brick sums
 * [bytes]. Local. */
double imager_planes_bytes(const imager_job *job);

/** Partition the bricks of this rank's sorted list, and make the steps. Sets up the
 * planes, or clears those that an earlier output has used; a model in them stays. With
 * `forward`, does the same for the job's model, if it has one. Collective. */
tess_status imager_job_partition(imager_job *job, const tess_brick_list *bricks,
                                 bool forward);

/* Note in the profile how much of an image, of a plane and of a GPU's memory this rank
 * has held so far. imager_job_free() does it, too. Local. */
void imager_job_note_held(imager_job *job);

void imager_job_free(imager_job *job); /* Collective. */

/** The part of a job that belongs to one set of samples. */
typedef struct imager_job_part {
    tess_partition *partition;
    tess_steps *steps, *model_steps;
    int64_t *slab_line; /* [fft_ranks + 1] */
} imager_job_part;

/** Take the part out of the job, which then has no such part. Local. */
void imager_job_take_part(imager_job *job, imager_job_part *part);

/** Put the part back into the job, so that the job works on this set of samples. Local.
 */
void imager_job_put_part(imager_job *job, imager_job_part *part);
void imager_job_part_free(imager_job_part *part); /* Zeros are fine. Local. */

/** With --reproducible, the number of samples of a part of a brick. A part is summed by
 * itself, and several ranks may share the parts of a brick. A brick has one part where
 * the backend sorts samples and cuts bricks itself. Local. */
int64_t imager_part_vis(const imager_job *job);

/** Add the error of w-projection at some of these samples (tess_projection_measure) to
 * the job's. Does nothing for other plans. TESS_ERR_ALLOC. Local. */
tess_status imager_job_measure(imager_job *job, const tess_samples *samples,
                               bool weighted);

/** Sum the errors of imager_job_measure over ranks, once for a plan. Log the result,
 * and note it in the profile. TESS_ERR_USAGE: it is too large (tess_projection_accept).
 * Collective. */
tess_status imager_job_tell_error(imager_job *job);

/** Warn on rank 0 if the transforms of the w-planes that have visibilities take hours,
 * or if few of the planes have any, with the largest |w|, which is the cause; and if
 * --w none leaves out phases that matter in the images. After imager_job_partition.
 * Local. */
void imager_job_warn_of_w(const imager_job *job);

/** Log the plan on rank 0, once, and note it in the profile. Local. */
void imager_job_log(imager_job *job);

#endif
