/** @file steps_residual.h  (private to app/imager/)
 *  Steps that grid residuals, that is samples less predictions of a model, without an
 *  array of all residuals.
 */
#ifndef TESS_STEPS_RESIDUAL_H
#define TESS_STEPS_RESIDUAL_H

#include "steps.h"
#include "tess_samples.h"

/** Copies of some samples, their runs and what is predicted of them. Memory is kept
 * from use to use. NULL at first; freed with tess_steps_batch_free(). */
typedef struct tess_steps_batch {
    tess_samples samples;   /**< rows are borrowed */
    tess_samples predicted; /**< the same rows with the visibilities of model images */
    tess_brick_list bricks; /**< the samples' bricks, or parts of one, with `planes` */
    int64_t *slice_first;   /**< first sample of each slice of the runs */
    int64_t vis_capacity, weight_capacity, predicted_capacity; /**< bytes */
    int64_t run_capacity, slice_capacity;
    int64_t key_capacity, first_capacity, count_capacity, planes_capacity;
} tess_steps_batch;

void tess_steps_batch_free(tess_steps_batch **batch); /**< It becomes NULL. Local. */

/** A model that is subtracted from the samples before they are gridded. */
typedef struct tess_steps_model {
    tess_steps *
        steps; /**< steps of the same plan and partition, whose planes hold the model */
    int num_images; /**< model images, whose visibilities are predicted */
    /** Subtract what follows from the predicted visibilities from the samples. Local.
     */
    void (*subtract)(const void *context, const tess_samples *predicted,
                     tess_samples *samples);
    const void *context;
    int64_t batch_vis; /**< samples that are copied at a time */
    bool keep_whole; /**< bricks are not cut, so that sums are rounded as those of whole
                        bricks */
    tess_steps_batch **batch; /**< memory for the copies */
} tess_steps_model;

/** As tess_steps_image for all steps at once, for the samples less a model. In each
 * step a batch of samples is copied, the model is predicted and subtracted, and the
 * batch is gridded before the next one. Sums of the model are held beside those of the
 * samples. With keep_whole the images are, bit by bit, those of tess_steps_predict and
 * tess_steps_image. Backend cpu. Collective. */
tess_status tess_steps_residual(tess_steps *steps, const tess_steps_model *model,
                                const tess_samples *samples,
                                const tess_brick_list *bricks, bool psf);

#endif
