/** @file imager_job_parts.h  (private to app/imager/)
 *  Parts of a job (imager_job.h): the model that it subtracts, how ranks share it, its
 *  memory, and which facts of it have been logged.
 */
#ifndef TESS_IMAGER_JOB_PARTS_H
#define TESS_IMAGER_JOB_PARTS_H

#include <complex.h>
#include <stdbool.h>
#include <stdint.h>

#include "steps.h"
#include "tess_geom.h"
#include "tess_grid.h"
#include "tess_imager_opts.h"
#include "tess_planes.h"
#include "tess_projection.h"
#include "tess_take.h"

struct tess_device_comm;

enum { IMAGER_MAX_MODEL = 2 * TESS_MAX_POL };

/** Model images whose visibilities are subtracted from samples before imaging. */
typedef struct imager_job_model {
    int num;      /* model images; 0: the job has no model */
    double scale; /* predicted visibilities are those of the model times this */
    bool
        is_shared; /* the images have the job's pixels, and are predicted on its plan */
    bool is_set;   /* the planes hold the images */
    bool by_rows;  /* the images come as rows (imager_model_set()), not from files */
    tess_planes *planes;
    tess_steps *steps;
    /* [polarisation][model image] A sample's visibility is the sum of these times the
     * visibilities of the model images. */
    double complex mix[2 * TESS_MAX_POL][IMAGER_MAX_MODEL];
} imager_job_model;

/** Set factor[num_chan[row]][num_out][num_in], by which the num_in values of each
 * sample of a row become num_out others. Several threads call it at a time. Local. */
typedef void imager_factors(const void *context, int target,
                            const tess_samples *samples, int64_t row,
                            double complex *factor);

/** Set power[num_chan[row]][num_pol], what each value that a target grids is of a
 * source of 1 Jy, whose correlations are made of the target's model and taken again;
 * NAN: the sample does not count in the target. Several threads call it at a time.
 * Local. */
typedef void imager_powers(const void *context, int target, const tess_samples *samples,
                           int64_t row, double *power);

/** Whether a target takes the samples of a row. Several threads call it at a time.
 * Local. */
typedef bool imager_counts(const void *context, int target, const tess_samples *samples,
                           int64_t row);

/** The view that targets take of samples whose correlations have been kept apart until
 * they are gridded. Each value that a target grids is a sum over the correlations of a
 * sample, times factors of the target, the row (whose origin the samples may know) and
 * the channel: gains and beams, and what makes Stokes parameters of correlations. Or a
 * target takes some rows of the samples as they are. */
typedef struct imager_view {
    int num_pol; /**< values of a sample that a target grids; 0: there is no view, and
                    samples are gridded as they are */
    imager_factors *to_target;  /**< of the correlations of a sample */
    imager_factors *from_model; /**< of the images of a target's model, which make up
                                   the correlations; NULL: imager_job_model.mix has them
                                   for all rows */
    bool is_apart; /**< predicted samples hold the correlations of each target, one
                        target after the other, and not their sum */
    int first_predicted, num_predicted; /**< targets with models; num 0: all */
    imager_powers *response; /**< for the responses of images; NULL: they have none */
    bool lacks;              /**< some powers may be NaN: gains have no solution */
    /** Set `take`, for a backend with memory of its own: it does what to_target's
     * factors do. It lasts until the next target is prepared. False: there is no table
     * of gains. NULL: there never is. */
    bool (*take)(const void *context, int target, tess_take *take);
    /** Called before the factors of a target are asked for, by one thread; or NULL. */
    void (*prepare)(const void *context, int target);
    int num_prepared; /**< targets that stay prepared at a time, the last ones */
    /** The group of rows with this number of an origin: rows of a group have the same
     *  factors and powers in channels of the same frequency. */
    int64_t (*group)(const void *context, int32_t origin);
    int64_t num_groups; /**< 0: they are not known */
    int64_t num_chan;   /**< of the channel table */
    /** Sets the model of a target before the target's rows are predicted, if targets
     * take rows and have their planes in turn; else NULL. Collective. */
    tess_status (*set_model)(const void *context, int target);
    imager_counts *counts; /**< for targets that take rows as they are, in place of the
                              others; their responses are 1. NULL: all rows */
    const void *context;   /**< borrowed */
} imager_view;

/** An image that is made of the samples of a set, and what is held for it. The plans of
 * all targets of a job have one frame (tess_grid.h), so that the samples are read, sent
 * and sorted once for all of them. */
typedef struct imager_target {
    tess_geom geom;
    tess_grid_plan *plan;
    tess_planes *planes;
    tess_planes *model_planes; /* of the job's model, or NULL */
    double model_scale;        /* imager_job_model.scale of its model */
} imager_target;

/** The images of a set (imager_targets.h). Zeros: there is one. */
typedef struct imager_targets {
    imager_target *target; /* [num] That at work lies in the job instead: in its geom,
                              plan, planes and model */
    int num;               /* targets; 0 as well as 1: there is one */
    int aim;               /* number of the target at work */
    bool may_turn;         /* in_turn is chosen (imager_job_choose_turns) */
    bool in_turn;          /* planes have memory for targets that are asked for alone */
} imager_targets;

/** Facts of a plan that have been logged. */
typedef struct imager_told {
    bool plan;                   /* the plan itself */
    bool need;                   /* memory that a rank needs beyond its share */
    bool measured;               /* the error of w-projection */
    bool copies;                 /* that samples have no room on the device */
    int window;                  /* planes whose sums are held at a time; 0: none yet */
    bool is_limited;             /* that memory limits this number */
    tess_projection_error error; /* the error of w-projection at this rank's samples */
} imager_told;

/** How ranks share the outputs and planes of a plan. */
typedef struct imager_ranks {
    int64_t num_outputs; /* sets of images that share the plan; 0: one */
    int num_teams;       /* teams that share the outputs; 0: one */
    int num_groups;      /* Pw, the number of w-groups */
    int fft_ranks;       /* F, the number of ranks that share a plane */
    bool shares_planes;  /* whether devices share planes (device_share.h) */
    struct tess_device_comm *devices; /* connects the GPUs of all ranks, or NULL */
} imager_ranks;

/** Memory of this rank: sizes [bytes], and memory that it borrows. */
typedef struct imager_memory {
    int64_t rank_bytes;   /* memory that this rank may use */
    double mean_bytes;    /* this rank's share of means over output channels */
    double clean_bytes;   /* what cleaning keeps while images are made */
    double joined_bytes;  /* images that targets are joined to, and gains of targets */
    double backlog_bytes; /* images that are written while the next ones are made */
    double dealt_bytes;   /* samples of outputs that this rank makes later in a round */
    bool device_rows;     /* finished rows of images live on the device */
    double device_bytes;  /* rows and minor loops on the device, of a set of images */
    double device_mean_bytes; /* the part of mean_bytes that lives on the device */
    void *pixels;             /* of the only image, borrowed from a caller, or NULL */
} imager_memory;

#endif
