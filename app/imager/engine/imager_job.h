/** @file imager_job.h  (private to app/imager/)
 *  What stands between samples and images: the plan, how ranks share it, planes
 *  and steps.
 */
#ifndef TESS_IMAGER_JOB_H
#define TESS_IMAGER_JOB_H

#include "imager_extent.h"
#include "imager_job_parts.h"
#include "steps_residual.h"
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
#include "tess_samples.h"

struct tess_device_comm;
struct visset_keeper;

/** Everything between samples and images for one plan. */
typedef struct imager_job {
    tess_comm *comm;
    const tess_layout *layout;
    const tess_gridding *gridding;
    tess_geom geom;
    bool worst_pixel;        /* plan for prediction, too (tess_grid_opts) */
    int num_pol, num_images; /* grids: polarisations, and PSFs */
    tess_profile *profile;
    imager_extent extent; /* of all that the plan serves */
    const tess_backend *backend;
    tess_comm *alone;   /* not NULL: every rank grids the samples that it has on its
                           device (device_read.h), and makes whole images of them, which
                           are summed in the end, unless they share planes; of this rank
                           only, owned by whoever set it */
    bool shares_planes; /* device_share.h */
    struct tess_device_comm *devices; /* connects their GPUs, or NULL */
    struct visset_keeper *keeper;     /* of a run that may be continued, or NULL */
    imager_told told;
    imager_ranks ranks;
    imager_memory memory;
    tess_costs costs; /* what was planned by, when measured; else nothing */
    tess_grid_plan *plan;
    tess_partition *partition;
    tess_planes *planes;
    tess_steps *steps;
    int64_t *slab_line; /* [fft_ranks + 1] of the planes, by the partition */
    imager_job_model model;
    tess_steps_batch batch; /* memory for residuals, kept for the next image */
} imager_job;

/** The ranks that transform w-planes together, and go through the steps together. */
tess_comm *imager_team(const imager_job *job);

/** The ranks among which samples, and so bricks, are divided. */
tess_comm *imager_samples_team(const imager_job *job);

/** Gridding plan for the extent, once for all outputs. TESS_ERR_ALLOC with the memory
 *  it would need when it cannot fit. Collective. */
tess_status imager_job_plan(imager_job *job);

/** Anew, how the ranks of job->comm share w-planes and their transforms. Errors as of
 *  imager_job_plan. Local. */
tess_status imager_job_share(imager_job *job);

/** How so many ranks would; and what images and a plane then take on one of them, with
 *  finished rows [bytes]. Local. */
void imager_shares(const imager_job *job, int ranks, int *num_groups, int *fft_ranks);
double imager_team_bytes(const imager_job *job, int ranks);

/** Have the plan's costs be measured ones from here on, for an estimate, whatever it
 * was made by; nothing when the layout does not want that. Collective. */
tess_status imager_job_calibrate(imager_job *job);

/** What images and a plane take on a rank, pieces excepted [bytes]. Local. */
double imager_planes_bytes(const imager_job *job);

/** Partition the bricks of the sorted list (this rank's) and make the steps; set up the
 *  planes, or clear them when an earlier output has used them (a model stays). With
 *  `forward`, the same of the job's model, if it has one. Collective. */
tess_status imager_job_partition(imager_job *job, const tess_brick_list *bricks,
                                 bool forward);

/* Keep in the profile how much of an image, of a plane and of a GPU's memory this rank
 * has held so far; imager_job_free() does it, too. Local. */
void imager_job_note_held(imager_job *job);

void imager_job_free(imager_job *job); /* Collective. */

/** What of a job belongs to one set of samples. */
typedef struct imager_job_part {
    tess_partition *partition;
    tess_steps *steps, *model_steps;
    int64_t *slab_line; /* [fft_ranks + 1] */
} imager_job_part;

/** Take that out of the job, which then has none; put it back, for the job to work on
 *  this set. Local. */
void imager_job_take_part(imager_job *job, imager_job_part *part);
void imager_job_put_part(imager_job *job, imager_job_part *part);
void imager_job_part_free(imager_job_part *part); /* Zeros are fine. Local. */

/** With --reproducible, the samples of a part of a brick that is summed alone, and of
 *  which several ranks may share a brick: all of it where the backend sorts them, and
 *  cuts bricks itself. Local. */
int64_t imager_part_vis(const imager_job *job);

/** Add the error of w-projection at some of these samples (tess_projection_measure) to
 *  the job's. Nothing for other plans. Local. */
tess_status imager_job_measure(imager_job *job, const tess_samples *samples,
                               bool weighted);

/** Sum it over ranks, once for a plan; log it, and keep it in the profile.
 *  TESS_ERR_USAGE when it is too large (tess_projection_accept). Collective. */
tess_status imager_job_tell_error(imager_job *job);

/** Log (rank 0, once) and keep in the profile what was planned. */
void imager_job_log(imager_job *job);

/** Fill samples->vis, sent and returned over the ranks. The model images must be set.
 *  Collective. */
tess_status imager_job_predict(imager_job *job, tess_samples *samples,
                               const tess_brick_list *runs);

#endif
