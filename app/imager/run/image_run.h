/** @file image_run.h  (private to app/imager/run/tess_imager.c, run_samples.c and
 * plan_run.c) A run of `image` or `plan`: what its parts share.
 */
#ifndef TESS_IMAGE_RUN_H
#define TESS_IMAGE_RUN_H

#include "image_files.h"
#include "image_holding.h"
#include "imager_bookmark.h"
#include "imager_checkpoint.h"
#include "imager_job.h"
#include "imager_model.h"
#include "imager_summary.h"
#include "imager_teams.h"
#include "output_table.h"
#include "sample_sets.h"
#include "tess_grid.h"

/* Bytes of a row beside its samples: uvw, channels, place, time. */
#define IMAGE_ROW_BYTES 48.0

/* Share of a rank's memory that prepared samples may take up before data are read again
 * instead of being kept. */
#define IMAGE_CACHE_SHARE 0.45

/* One run of `image` or `plan`. */
typedef struct image_run {
    tess_comm *comm;
    const tess_image_opts *opts;
    tess_profile *profile;
    tess_source *source;
    const tess_source_info *info;
    tess_pol pol[2 * TESS_MAX_POL];
    int num_pol;
    int64_t block_bytes;
    data_mode mode;
    tess_samples all;  /* everything, in DATA_CACHED */
    double *row_time;  /* [rows] of `all`, NULL for one output */
    bool *chan_wanted; /* [num_chan] of the current output */
    output_table outputs;
    imager_survey survey;
    tess_density *density;     /* of the only output, when the survey made it */
    imager_model model;        /* of --subtract, on the job's plan … */
    imager_predictor subtract; /* … or of other pixels, on a plan of its own */
    imager_job job;            /* one plan for all outputs */
    imager_checkpoint checkpoint;
    image_files output, means; /* by the team, and by all ranks */
    imager_summary summary;
    imager_counts counts;
    image_holding holds;
    imager_teams teams; /* once there are several, `comm` is this rank's */
} image_run;

static inline bool image_subtracts(const tess_image_opts *opts)
{
    return opts->subtract || opts->subtract_pixels;
}

/* Whether the model is subtracted where samples are read. */
static inline bool image_subtracts_early(const image_run *run)
{
    return run->subtract.model.num_stokes > 0;
}

static inline bool image_is_double(const image_run *run)
{
    return run->opts->gridding.accuracy < TESS_SINGLE_ACCURACY;
}

/* ---- tess_imager.c ---- */

/** Open everything, and learn the geometry and outputs. Collective. */
tess_status image_set_up(image_run *run);

/** Form teams where that is faster, once the job is planned; from here on `comm` is the
 * team's. `kept`: samples are, or will be, in memory. Collective. */
tess_status image_form_teams(image_run *run, bool kept);

/** Samples of an output, of which a team has been sent its own in `data->cached`. */
tess_status image_data_for(image_run *run, int64_t output, sample_sets *data);

/** Density of an output's samples, NULL with natural weights, unless the survey has
 * made it: `data` gets it, to be applied. Collective. */
tess_status image_weigh(image_run *run, sample_sets *data, tess_density **density);

/** Change the weights of samples that are in memory, once, and give the density up.
 *  Collective. */
tess_status image_apply_density(image_run *run, sample_sets *data,
                                tess_density **density);

/** NULL-safe for a zeroed one. Local. */
void image_data_free(sample_sets *data);

/** End what set_up has begun. Collective. */
void image_free_run(image_run *run);

/* ---- run_ignored.c ---- */

/** Count how many visibilities are used, and ignored for which reasons; warn of many
 * that the grid does not reach. TESS_ERR_USAGE and TESS_ERR_INPUT when none is left: an
 *  option leaves all out, or the data are bad. Collective. */
tess_status image_check_ignored(image_run *run);

/* ---- run_samples.c ---- */

/** Take a model of other pixels out of samples. Collective. */
tess_status image_subtract_early(image_run *run, tess_samples *samples);

/** Whether that fits on every rank. Collective. */
tess_status image_fits_all(const image_run *run, double bytes, bool *fits);

/** Memory when all samples are kept; with several outputs, those of one are copied and
 * sent at a time. */
double image_cached_bytes(const image_run *run);

/** Read those of all outputs, or of one: times and channels. Local. */
void image_want_all(image_run *run);
void image_want_output(image_run *run, int64_t output);

/** An empty density for the weights asked for, of samples whose weights have been
 *  multiplied by `weight_scale`; NULL with natural ones. Collective. */
tess_status image_create_density(const image_run *run, int num_weight,
                                 double weight_scale, tess_density **density);

/** Read everything once to learn what the outputs are made of, and the density of a
 * single one. Collective. */
tess_status image_survey_blocks(image_run *run);

/** The largest output that this rank may have to hold. */
double image_largest_output_bytes(const image_run *run);

/** What one plan for all outputs must cover, and how many images it has. Collective. */
tess_status image_finish_survey(image_run *run);

/** How samples are kept, and what they tell: extents, weights, number of images. Data
 * are read once here; all of them stay if they fit. Collective. */
tess_status image_first_pass(image_run *run);

#endif
