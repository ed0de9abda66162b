/** @file sample_sets.h  (private to app/imager/)
 *  The samples of one image, set after set.
 */
#ifndef TESS_SAMPLE_SETS_H
#define TESS_SAMPLE_SETS_H

#include "parted_spool.h"
#include "source.h"
#include "spool.h"
#include "tess_polar.h"
#include "tess_profile.h"
#include "tess_samples.h"
#include "tess_weight.h"

struct imager_predictor;

/** Samples of one image, as a sequence of sets; they are one set when they fit in
 * memory. */
typedef struct sample_sets {
    tess_source *source;
    tess_samples cached; /* all samples, if `in_memory` */
    tess_samples block;  /* the current set, if not `in_memory` */
    bool in_memory;
    double
        kept_bytes;   /* bytes of the samples of all outputs, which stay beside these */
    int64_t num_sets; /* the same on all ranks */
    int64_t next_set; /* the next set that is read without skipping any */
    double largest_set_bytes;   /* bytes of the largest set so far, on this rank */
    int64_t set_blocks;         /* blocks of the source in a set */
    tess_spool *spool;          /* keeps sets that have been read, or NULL */
    const parted_spool *parted; /* has the samples of all outputs, or NULL; borrowed */
    int64_t output;             /* the output of `parted` that this image is of */
    int64_t set_batches;        /* batches of `parted` in a set */
    bool force_scratch;         /* keep the spool whether it is faster or not */
    const char *scratch;        /* folder for the passes of a set that is imaged
                                   more than once, or NULL; borrowed */
    int64_t num_vis;            /* visibilities of the image, over all ranks */
    int64_t num_runs; /* runs that imager_count_bricks has formed, on this rank */
    bool with_planes; /* imager_count_bricks finds the planes of each brick, too */
    double vis_scale, weight_scale; /* powers of two by which samples are multiplied
                                       when they are handed out, so that products of
                                       very small numbers are in range */
    bool is_scaled;                 /* `cached` has been multiplied */
    const tess_density
        *density; /* density by which weights are still to be divided, or NULL */
    struct imager_predictor *subtract; /* of a model that is subtracted where samples
                                          are read, or NULL */
    int threads;
    tess_profile *profile;
} sample_sets;

/** Get the k-th set of samples, scaled and with weights applied. Sets are asked for in
 * order, from any one on. Local. */
tess_status sample_sets_get(sample_sets *data, int64_t k, tess_samples **samples);

#endif
