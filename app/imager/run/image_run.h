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

/* Densities that serve an output later. */
typedef struct image_densities {
    tess_density *single; /* of the only output, when the survey made it */
    tess_density *shared; /* of all channels of an interval (--mf-weighting) */
    int64_t interval;     /* of which it is */
    double scale;         /* of weights in it */
} image_densities;

/* One run of `image` or `plan`. */
typedef struct image_run {
    tess_comm *comm; /* of all ranks, or of a team that cleans and writes outputs by
                        itself; job.comm: of those that make an output's images */
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
    image_densities densities;
    imager_model model;        /* of --subtract, on the job's plan … */
    imager_predictor subtract; /* … or of other pixels, on a plan of its own */
    imager_job job;            /* one plan for all outputs */
    imager_checkpoint checkpoint;
    image_files output, means; /* by the team, and by all ranks */
    imager_summary summary;
    imager_counts counts;
    image_holding holds;
    imager_teams teams;
} image_run;

/** The checkpoints in which the work on an output is kept, or NULL: several teams have
 *  none within an output. Local. */
static inline imager_checkpoint *image_checkpoint(image_run *run)
{
    return run->job.keeper ? &run->checkpoint : NULL;
}

static inline bool image_subtracts(const tess_image_opts *opts)
{
    return opts->subtract.model || opts->subtract.pixels;
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

/** Form teams where that is faster, once the job is planned; from here on job.comm is
 * the team's, and so is `comm` unless all ranks clean channels together. `kept`:
 * samples are, or will be, in memory. Collective. */
tess_status image_form_teams(image_run *run, bool kept);

/** Samples of an output; a team has been sent its own in `data->cached`. Collective. */
tess_status image_data_for(image_run *run, int64_t output, sample_sets *data);

/** Density of an output's samples, NULL with natural weights, unless the survey has
 * made it: `data` gets it, to be applied. Collective. */
tess_status image_weigh(image_run *run, sample_sets *data, tess_density **density);

/** With --mf-weighting, the density of all channels of an interval, once; image_weigh
 *  applies it. Before image_data_for. Collective. */
tess_status image_share_density(image_run *run, int64_t interval);

/** Change the weights of samples that are in memory, once, and give the density up.
 *  Collective. */
tess_status image_apply_density(image_run *run, sample_sets *data,
                                tess_density **density);

/** NULL-safe for a zeroed one. Local. */
void image_data_free(sample_sets *data);

/** The samples of an output, weighted (image_data_for, image_weigh). `*density` is to
 * be applied to samples that are not in memory, and belongs to the caller, or is NULL.
 *  variance[num_pol]: Σ W²/w of each image, for image_measure_made. Collective. */
tess_status image_weighted_data(image_run *run, int64_t output, sample_sets *data,
                                double *variance, tess_density **density);

/** Note what is known of dirty images and PSFs that have just been made: their
 *  variances, and found[num_pol] the beam. Collective. */
tess_status image_measure_made(const image_run *run, int64_t output,
                               const double *variance, imager_product *made,
                               struct imager_found *found);

/** The images of nothing: models of zero, all others blank; shared by rows. Collective.
 */
tess_status image_empty_products(const image_run *run, imager_product *product);

/** Number of PSFs of an output. Local. */
static inline int image_num_psf(const image_run *run)
{
    return run->job.num_images - run->num_pol;
}

/** End what set_up has begun. Collective. */
void image_free_run(image_run *run);

/* ---- run_ignored.c ---- */

/** Count how many visibilities are used, and ignored for which reasons; warn of many
 * that the grid does not reach. TESS_ERR_USAGE and TESS_ERR_INPUT when none is left: an
 *  option leaves all out, or the data are bad. Collective. */
tess_status image_check_ignored(image_run *run);

#endif
