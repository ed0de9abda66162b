/** @file visset.h  (private to app/imager/)
 *  The visibility set: what one set of images is made of, once it has been read,
 *  weighted and sent to the owners of its bricks.
 *
 *  A set is made once. An image of it, the image of it less a model, and the image of
 * it less another model are then made without reading, weighting, sending or sorting
 *  anything. The set itself never changes.
 *
 *  A rank holds the samples of its bricks and their runs. Samples that do not fit in
 *  memory are kept on scratch (pass_spool.h), pass by pass as they are gridded. Without
 *  scratch they are not held: every image goes over the data once more. On a GPU that
 * has room for the samples they stay there: they are imaged, subtracted from and imaged
 * again without being copied.
 */
#ifndef TESS_VISSET_H
#define TESS_VISSET_H

#include "exchange.h"
#include "imager_job.h"
#include "imager_passes.h"
#include "imager_rows.h"
#include "imager_stages.h"
#include "sample_sets.h"

struct pass_spool;
struct tess_exact;

/** What is summed over the samples of a set. */
typedef struct imager_sums {
    int num_weight;
    double weight[2 * TESS_MAX_POL]; /**< ΣW, over all ranks once the set has them */
    double inv_lambda;               /**< Σ W ν/c over all weights, likewise */
    struct tess_exact *exact; /**< [num_weight + 1] of the same with --reproducible, the
                                   last of frequencies, or NULL */
    double *map;              /**< for --dump-stages, or NULL */
} imager_sums;

typedef struct visset {
    imager_job *job;   /**< whose plan, partition, planes and steps serve this set;
                            borrowed */
    sample_sets *data; /**< borrowed; where samples come from while they are read */
    bool single;       /**< one image will be made: samples are given up early */
    bool over;         /**< samples are not held in memory */
    struct pass_spool *spool; /**< has them, pass by pass, or NULL */
    imager_passes passes;     /**< that `spool` has */
    bool is_counted;          /**< `sums` are complete */
    int num_made;             /**< images so far */
    bool has_left;            /**< the job at least once */
    imager_job_part part; /**< of the job for this set, while another set has the job */
    imager_sums sums;
    tess_brick_list own_bricks; /**< of this rank's slice of the data, or its bricks */
    tess_exchange *exchange;    /**< holds what was received, or NULL */
    tess_samples *samples;      /**< that this rank owns, in `data` or `exchange` */
    tess_brick_list *bricks;    /**< and its bricks */
    tess_brick_list loaded;     /**< the samples as the backend holds them from image to
                                     image; zeros where it sorts none, or has no room for
                                     them, or `own_bricks` has them */
} visset;

/** Which images are made. */
typedef struct visset_request {
    bool psf;        /**< PSFs, too */
    bool less_model; /**< of the samples less job->model, which is set */
    struct imager_predictor *subtract; /**< of the samples less its model, or NULL;
                                            borrowed, of the ranks of the job */
    const imager_job_model *mix; /**< how that model's Stokes parameters make up the
                                      polarisations of the samples; of it only `num`
                                      and `mix` are looked at */
} visset_request;

/** This rank's bricks and their counts; with the data in memory, sorted as imager_sort
 *  does, and this is local; else collective. */
tess_status imager_count_bricks(const imager_job *job, sample_sets *data, bool in_place,
                                tess_brick_list *bricks);

/** Make a set of an output's data, partition the job by it, and begin the checkpoint's
 *  part. With `single` only one image can be made of it, in less memory. Else samples
 *  that do not fit into memory go to data->scratch, if that is a folder and the backend
 *  leaves sorting to the host; TESS_ERR_IO when its disk is full. `data` are to stay
 *  until the set is freed. Collective. */
tess_status visset_create(imager_job *job, sample_sets *data, bool single,
                          const imager_stages *stages, visset *set);

/** Make images: product[num_pol] dirty ones (or residual ones), then [num_weight] PSFs.
 *  Collective. */
tess_status visset_image(visset *set, const visset_request *request,
                         const imager_stages *stages, imager_product *product);

/** Mean frequency by weight; 0 without weights. Local. */
double visset_freq_hz(const visset *set);

/** Give the job up, for another set of the same plan to be made or imaged, and take it
 *  again: before a model is set. Local. */
void visset_leave(visset *set);
void visset_enter(visset *set);

void visset_free(visset *set); /**< Zeros are fine. Collective. */

#endif
