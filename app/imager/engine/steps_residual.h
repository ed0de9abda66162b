/** @file steps_residual.h  (private to app/imager/)
 *  Steps that grid residuals: samples less what is predicted of a model, without an
 * array of all residuals.
 */
#ifndef TESS_STEPS_RESIDUAL_H
#define TESS_STEPS_RESIDUAL_H

#include "steps.h"

/** Copies of some samples at a time, their runs and what is predicted of them. Memory
 *  is kept from use to use. Starts as zeros; freed with tess_steps_batch_free(). */
typedef struct tess_steps_batch {
    tess_samples samples;   /**< rows are borrowed */
    tess_samples predicted; /**< the same with the visibilities of model images */
    tess_brick_list bricks; /**< and their bricks, or parts of one, with `planes` */
    int64_t *slice_first;   /**< first sample of each slice of the runs */
    int64_t vis_capacity, weight_capacity, predicted_capacity; /**< bytes */
    int64_t run_capacity, slice_capacity;
    int64_t key_capacity, first_capacity, count_capacity, planes_capacity;
} tess_steps_batch;

void tess_steps_batch_free(tess_steps_batch *batch); /**< Zeros are fine. Local. */

/** A model that is subtracted on the way. */
typedef struct tess_steps_model {
    tess_steps *steps; /**< of the same plan and partition; their planes hold it */
    int num_images;    /**< model images, whose visibilities are predicted */
    /** samples := samples less what is made of the predicted ones. Local. */
    void (*subtract)(const void *context, const tess_samples *predicted,
                     tess_samples *samples);
    const void *context;
    int64_t batch_vis;       /**< samples that are copied at a time */
    bool keep_whole;         /**< bricks are not cut: those of the list are rounded as
                                  they are */
    tess_steps_batch *batch; /**< memory for them */
} tess_steps_model;

/** As tess_steps_image for all steps at once, of the samples less a model, without an
 *  array of all residuals: in each step a batch of samples is predicted, subtracted
 *  from, and gridded into sums of its own before the next. Sums of the model are held
 *  beside those of the samples. With keep_whole the images are, bit by bit, those of
 *  tess_steps_predict and tess_steps_image. Backend cpu. Collective. */
tess_status tess_steps_residual(tess_steps *steps, const tess_steps_model *model,
                                const tess_samples *samples,
                                const tess_brick_list *bricks, bool psf);

#endif
