/** @file image_run.h  (private to app/imager/run/)
 *  A run of `image` or `plan`: what its parts share.
 */
#ifndef TESS_IMAGE_RUN_H
#define TESS_IMAGE_RUN_H

#include <stdbool.h>

#include "image_bookmark.h"
#include "image_checkpoint.h"
#include "image_files.h"
#include "image_found.h"
#include "image_holding.h"
#include "image_summary.h"
#include "imager_job.h"
#include "imager_teams.h"
#include "output_table.h"
#include "predictor.h"
#include "sample_parts.h"
#include "tess_grid.h"
#include "tess_samples.h"

typedef struct sample_sets sample_sets; /* sample_sets.h */

/* Densities that were made before the output that they serve. */
typedef struct image_densities {
    tess_density *single; /* of the only output, if the survey has made it */
    tess_density *shared; /* of all channels of an interval (--mf-weighting) */
    int64_t interval;     /* the interval of `shared` */
    double scale;   /* factor by which the weights in `shared` had been multiplied */
    double stretch; /* frequencies of --density-frame over those of the data */
} image_densities;

/* A model of --subtract: of the pixels of the job's plan, or with a plan of its own. */
typedef struct image_less {
    imager_model model;
    imager_predictor predictor;
} image_less;

/* Images as wholes, and their patches: those of facets, of a mosaic, or NULL. */
typedef struct image_whole {
    tess_geom geom;
    const struct image_patches *patches;
    struct image_facets *facets;
    struct image_mosaic *mosaic;
} image_whole;

/* One run of `image` or `plan`. */
typedef struct image_run {
    tess_comm
        *comm; /* of all ranks, or of a team that cleans and writes outputs by itself.
                  job.comm has the ranks that make the images of an output */
    const tess_image_opts *opts;
    tess_profile *profile;
    tess_source *source;
    const tess_source_info *info;
    tess_pol pol[2 * TESS_MAX_POL];
    int num_pol;
    int64_t block_bytes;
    data_mode mode;
    tess_samples all;   /* all samples of this rank, in DATA_CACHED; those of some
                           outputs in DATA_PER_OUTPUT */
    sample_parts parts; /* how they are parted, if there are several outputs */
    bool *chan_wanted;  /* [num_chan] of the current outputs */
    output_table outputs;
    image_survey survey;
    image_densities densities;
    image_less less;
    image_whole whole;
    imager_job job; /* one plan for all outputs */
    image_checkpoint checkpoint;
    image_files output,
        means; /* files that the team writes, and that all ranks write */
    image_found_table summary;
    image_counts counts;
    image_holding holds;
    imager_teams teams;
} image_run;

/** The checkpoints that hold the work on an output. NULL: several teams have no
 * checkpoints within an output. Local. */
static inline image_checkpoint *image_run_checkpoint(image_run *run)
{
    return run->job.keeper ? &run->checkpoint : NULL;
}

/** Outputs that the checkpoint counts as complete. Local. */
static inline int64_t image_outputs_done(const image_run *run)
{
    return run->checkpoint.state.outputs_done;
}

/* Whether a model is subtracted from whole rows: before their continuum is fitted, or
 * as each field of a mosaic sees it. */
static inline bool image_subtracts_rows(const tess_image_opts *opts)
{
    return (opts->subtract.model || opts->subtract.pixels) &&
           (opts->selection.continuum.subtracts || opts->selection.joins_pointings);
}

/* Whether a model is subtracted from samples. */
static inline bool image_subtracts(const tess_image_opts *opts)
{
    return (opts->subtract.model || opts->subtract.pixels) &&
           !image_subtracts_rows(opts);
}

/* Whether the model is subtracted where samples are read. */
static inline bool image_subtracts_early(const image_run *run)
{
    return run->less.predictor.model.num_stokes > 0;
}

/* Whether the samples of a round's outputs are in memory, to be sent to teams of ranks.
 */
static inline bool image_deals_samples(const image_run *run)
{
    return run->teams.num > 1 && (run->mode == DATA_CACHED ||
                                  (run->mode == DATA_PER_OUTPUT && run->holds.parts));
}

static inline bool image_is_double(const image_run *run)
{
    return run->opts->gridding.accuracy < TESS_SINGLE_ACCURACY;
}

/* ---- image_setup.c ---- */

/** Open everything, and learn the geometry and outputs. Collective. */
tess_status image_set_up(image_run *run);

/** Number of PSFs of an output: of patches one. Local. */
static inline int image_num_psf(const image_run *run)
{
    if (run->whole.patches) return run->opts->make_psf;
    return run->job.num_images - run->num_pol;
}

/** Free what image_set_up and later steps have made, without models that cleaning
 * continues (clean_inputs_free). Collective. */
void image_free_run(image_run *run);

/* ---- run_ignored.c ---- */

/** Count the visibilities that are used, and those that are ignored for each reason.
 * Warns if many lie beyond the grid. TESS_ERR_USAGE and TESS_ERR_INPUT: none is left,
 * because of an option or because the data are bad. Collective. */
tess_status image_check_ignored(image_run *run);

#endif
