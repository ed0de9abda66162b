/** @file predictor.h  (private to app/imager/)
 *  Visibilities that are predicted from model images.
 */
#ifndef TESS_PREDICTOR_H
#define TESS_PREDICTOR_H

#include "imager_job.h"
#include "imager_model.h"
#include "tess_profile.h"

/** Choose the number of planes whose sums are held at a time (0: all) while samples of
 * these bricks are predicted, and this rank holds `other_bytes` beside the sums.
 * Collective in the job's team. */
tess_status imager_predict_window(imager_job *job, double other_bytes,
                                  const tess_brick_list *bricks, int *planes_at_once);

/** Predict the visibilities of samples that this rank owns, with that number of planes
 * at a time. `steps`: of planes that hold the model. Collective. */
tess_status imager_predict_owned(tess_steps *steps, int planes_at_once,
                                 tess_samples *owned, const tess_brick_list *bricks);

/** Predict samples->vis: positions are sent to the owners of bricks, and visibilities
 * return. With `skip_ignored`, ignored samples at the ends of runs are left as they
 * are; `runs` are the samples' runs, made with the same `skip_ignored`. The model
 * images must be set. Collective. */
tess_status imager_job_predict(imager_job *job, tess_samples *samples,
                               bool skip_ignored, const tess_brick_list *runs);

/** Prediction from a model for one set of samples after the other. Plan, FFT plans and
 * the corrected model are kept as long as they serve the next set, too. */
typedef struct imager_predictor {
    imager_model model;
    imager_job_model mix; /* how the model makes up the polarisations of samples that it
                             is subtracted from; only `num` and `mix` of it are used */
    imager_job job;
    int loaded; /* the part of a cube that lies on the model planes; −1: no part does */
    int weighed; /* the plane whose channels the weights of parts are of; −1: none. Not
                    `loaded`: a plane may have weights, and no samples to be loaded for,
                    and planes are loaded anew with each plan */
    double loaded_scale;        /* factor by which its pixels have been multiplied */
    const imager_extent *whole; /* of all good samples that will come, in any number of
                                   calls, on one plan: ignored ones are left out; NULL:
                                   a plan for what comes, with ignored ones. Borrowed */
    const tess_rows *rows;      /* [model.num_stokes] rows of the model, which each call
                                     may change; NULL: the model is model.fits. Borrowed */
} imager_predictor;

/** Make a predictor for an open model, which then belongs to the predictor. Nothing is
 * planned yet. Collective. */
tess_status imager_predictor_create(tess_comm *comm, const imager_model *model,
                                    const tess_gridding *gridding,
                                    const tess_layout *layout, tess_profile *profile,
                                    imager_predictor *predictor);
void imager_predictor_free(imager_predictor *predictor); /* Collective. */

/** Predict the Stokes visibilities of the model, times model.scale, at the samples'
 * positions: samples->num_pol is model.num_stokes. With parts of the model, these are
 * the correlations that the job's view makes of the sum of all parts, or of each part,
 * one after the other, if the view is apart. If the model has several planes, each
 * channel gets those of its own. Collective. */
tess_status imager_predictor_run(imager_predictor *predictor, tess_samples *samples);

/** Announce, before the first plan, that parts of these samples are predicted on one
 * plan, each at one or several channels. Collective. */
tess_status imager_predictor_expect(imager_predictor *predictor,
                                    const tess_samples *samples);

/** Like imager_predictor_run(), with one image for all channels: of a cube, model.part.
 * Collective. */
tess_status imager_predictor_run_part(imager_predictor *predictor,
                                      tess_samples *samples);

#endif
