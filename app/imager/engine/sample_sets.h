/** @file sample_sets.h  (private to app/imager/)
 *  The samples of one image, set after set.
 */
#ifndef TESS_SAMPLE_SETS_H
#define TESS_SAMPLE_SETS_H

#include "source.h"
#include "spool.h"
#include "tess_polar.h"
#include "tess_profile.h"
#include "tess_samples.h"
#include "tess_weight.h"

struct imager_job_model;
struct imager_predictor;

/** Samples of one image, as a sequence of sets: one set when they fit in memory. */
typedef struct sample_sets {
    tess_source *source;
    tess_samples cached; /* all of them, when `in_memory` */
    tess_samples block;  /* the current set otherwise */
    bool in_memory;
    double kept_bytes;              /* beside these: samples of all outputs */
    int64_t num_sets;               /* the same on all ranks */
    int64_t next_set;               /* that is read without skipping */
    double largest_set_bytes;       /* of the sets so far, on this rank */
    int64_t set_blocks;             /* blocks of the source in a set */
    tess_spool *spool;              /* keeps sets that have been read, or NULL */
    bool force_scratch;             /* keep the spool, be it faster or not */
    const char *scratch;            /* folder for the passes of a set that is imaged
                                       more than once, or NULL; borrowed */
    int64_t num_vis;                /* of the image, over all ranks */
    int64_t num_runs;               /* formed by imager_count_bricks, on this rank */
    bool with_planes;               /* which it is to tell of each brick, too */
    double vis_scale, weight_scale; /* powers of two: samples are handed out times
                                       these, so that products of very small numbers
                                       are in range */
    bool is_scaled;                 /* `cached` is */
    const tess_density *density;    /* weights that are still to be applied, or NULL */
    /* a model that is subtracted where samples are read, or NULL, and how its Stokes
     * parameters make up their polarisations */
    struct imager_predictor *subtract;
    const struct imager_job_model *mix;
    int threads;
    tess_profile *profile;
} sample_sets;

/** The k-th set of samples, scaled, weights applied. Sets
 * must be asked for in order, from any one on. Local. */
tess_status sample_sets_get(sample_sets *data, int64_t k, tess_samples **samples);

#endif
