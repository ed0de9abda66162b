/** @file visset.h  (private to app/imager/)
 *  The visibility set: what one set of images is made of, once it has been read,
 *  weighted and sent to the owners of its bricks.
 *
 *  A set is made once. An image of it, the image of it less a model, and the image of
 * it less another model are then made without reading, weighting, sending or sorting
 *  anything. The set itself never changes.
 *
 *  A rank holds the samples of its bricks and their runs. Samples that do not fit in
 *  memory are kept on scratch (spool.h), pass by pass as they are gridded. Without
 *  scratch they are not held: every image goes over the data once more. On a GPU that
 * has room for the samples they stay there: they are imaged, subtracted from and imaged
 * again without being copied.
 */
#ifndef TESS_VISSET_H
#define TESS_VISSET_H

#include "exchange.h"
#include "imager_job.h"
#include "imager_passes.h"
#include "imager_product.h"
#include "imager_stages.h"
#include "spool.h"

typedef struct sample_sets sample_sets; /* sample_sets.h */

struct tess_exact;

/** Sums over the samples that the view of a target counts: those with a factor that is
 * not 0. */
typedef struct imager_response {
    double counted[TESS_MAX_POL]; /**< ΣW */
    double power[TESS_MAX_POL];   /**< ΣW times what the view takes of the correlations
                                       of a source of 1 Jy in this polarisation */
} imager_response;

/** The responses of the targets of a set. Zeros are none. */
typedef struct imager_responses {
    imager_response *sum; /**< [num_targets], over all ranks once the set has them, or
                             NULL: the view has none */
    struct tess_exact *exact; /**< [num_targets][2][num_pol] the same sums with
                                 --reproducible, or NULL */
    int64_t *unsolved;        /**< [num_targets] samples without a solution, likewise */
} imager_responses;

/** Sums over the samples of a set. */
typedef struct imager_sums {
    int num_weight;
    double weight[2 * TESS_MAX_POL];  /**< ΣW, over all ranks once the set has them */
    double largest[2 * TESS_MAX_POL]; /**< the largest of these weights, likewise */
    double
        inv_lambda; /**< Σ W ν/c over all weights, over all ranks once the set has it */
    struct tess_exact *exact; /**< [num_weight + 1] the same sums with --reproducible,
                                 that of frequencies the last, or NULL */
    imager_responses responses;
    double *map; /**< maps of --dump-stages, or NULL */
} imager_sums;

typedef struct visset {
    imager_job *job;   /**< the job whose plan, partition, planes and steps serve this
                          set; borrowed */
    sample_sets *data; /**< borrowed; where samples come from while they are read */
    bool single; /**< only one image will be made, so that samples are freed early */
    bool over;   /**< samples are not held in memory */
    tess_spool *spool;    /**< holds the samples pass by pass, or NULL */
    imager_passes passes; /**< passes of `spool` */
    bool is_counted;      /**< `sums` are complete */
    int num_made;         /**< images that have been made so far */
    bool has_left;        /**< the set has left the job at least once */
    imager_job_part
        part; /**< the job's part for this set, while another set has the job */
    imager_sums sums;
    tess_brick_list
        own_bricks; /**< bricks of this rank's slice of the data, or of its own */
    tess_exchange *exchange; /**< holds what was received, or NULL */
    tess_samples *samples; /**< samples that this rank owns, in `data` or `exchange` */
    tess_brick_list *bricks; /**< their bricks */
    tess_brick_list loaded;  /**< the samples as the backend holds them from image to
                                image. Zeros if the backend does not sort, has no room
                                for them, or `own_bricks` has them */
} visset;

/** Which images are made. */
typedef struct visset_request {
    bool psf;        /**< PSFs, too */
    bool less_model; /**< of the samples less the models of the job's targets, which
                        have been set */
    struct imager_predictor
        *subtract;   /**< predictor whose model is subtracted instead of these, or NULL;
                        borrowed, of the ranks of the job */
    bool of_sources; /**< in place of the samples, of a source of 1 Jy in the middle of
                        each target: a PSF in place of each image. The job has a view */
    bool with_gains; /**< such a source times the responses of samples: the beam of an
                        image, and not of gains of 1. Its peak is the mean response */
    int first_target, num_targets; /**< targets whose images are made; 0: all */
} visset_request;

/** Count this rank's bricks. If the data are in memory, they are sorted as imager_sort
 * does, and this is Local; otherwise Collective. */
tess_status imager_count_bricks(const imager_job *job, sample_sets *data, bool in_place,
                                tess_brick_list *bricks);

/** Make a set of an output's data, partition the job by it, and begin its checkpoints.
 * With `single`, one image alone can be made of it, in less memory. Otherwise samples
 * that do not fit into memory are kept in data->scratch, if that is a folder and the
 * backend leaves sorting to the host; TESS_ERR_IO: its disk is full. `data` must stay
 * until the set is freed. Collective. */
tess_status visset_create(imager_job *job, sample_sets *data, bool single,
                          const imager_stages *stages, visset *set);

/** Make images of all targets of the job: product[num_targets][TESS_MAX_IMAGES], of
 * which each has [num_pol] dirty or residual images, then [num_weight] PSFs. What is
 * subtracted is the sum of the models of all targets. The first image is of all
 * targets. Collective. */
tess_status visset_image(visset *set, const visset_request *request,
                         const imager_stages *stages, imager_product *product);

/** Sum the responses of targets anew: the job's view has other gains than those that
 * the set's responses are of. These stay in the set, until the caller puts the new ones
 * in their place. The set holds its samples, in memory or on scratch. TESS_ERR_ALLOC,
 * TESS_ERR_IO. Collective. */
tess_status visset_count_responses(visset *set, imager_responses *counted);
void imager_responses_free(imager_responses *responses); /**< Zeros are fine. Local. */

/** Mean frequency of the samples, weighted by their weights; 0 without weights. Local.
 */
double visset_freq_hz(const visset *set);

/** Release the job, so that another set of the same plan can be made or imaged. Local.
 */
void visset_leave(visset *set);

/** Take the job back, before a model is set. Local. */
void visset_enter(visset *set);

void visset_free(visset *set); /**< Zeros are fine. Collective. */

#endif
