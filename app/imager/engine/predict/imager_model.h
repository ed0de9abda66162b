/** @file imager_model.h  (private to app/imager/)
 *  Model images, and visibilities that are predicted from them.
 */
#ifndef TESS_IMAGER_MODEL_H
#define TESS_IMAGER_MODEL_H

#include "imager_job.h"
#include "imager_rows.h"
#include "model_cube.h"
#include "tess_comm.h"
#include "tess_fits.h"
#include "tess_geom.h"
#include "tess_imager_opts.h"
#include "tess_polar.h"
#include "tess_profile.h"
#include "tess_samples.h"

/** A model image that is predicted, or several for the channels. */
typedef struct imager_model {
    tess_fits_model fits; /* the image; the first one of several */
    model_cube *cube;     /* the images of several channels, or NULL; owned */
    int part;             /* the part of the cube that is loaded next */
    tess_geom geom;       /* geometry of its pixels, as its header has them */
    int num_stokes;
    int stokes_index[4]; /* plane of I, Q, U, V in the file, or -1 */
    int stokes[4];       /* codes 1..4 of the grids */
    bool per_beam;       /* its header says Jy/beam */
    bool is_checked; /* the sum of its pixels, and the number of blank ones, have been
                        checked */
    bool is_told;    /* other ranks warn of blank pixels */
    double scale; /* a power of two: predicted visibilities are those of the model times
                     this, so that products of very small pixels are in range */
} imager_model;

/** Open the model of a file, of a cube or of a set (model_cube_open, with its
 * `num_terms`); if `path` is NULL, of pixels in memory. Checks it against the phase
 * centre and, unless `scale_rad` is 0, against the image's pixels. Local. */
tess_status imager_model_open(const char *path, int num_terms,
                              const tess_fits_pixels *pixels, double ra_rad,
                              double dec_rad, double scale_rad, imager_model *model);
void imager_model_close(imager_model *model); /**< Local. */

/** Warn, on one rank, of a model whose unit is Jy/beam. Local. */
void imager_model_warn(const imager_model *model, tess_comm *comm);

/** Read the model into model planes of the job: its Stokes planes become their first
 * images, corrected for gridding. The first time, looks through its pixels and chooses
 * model->scale. TESS_ERR_INPUT: the pixels add up to too much. Collective. */
tess_status imager_model_load(const imager_job *job, imager_model *model,
                              tess_planes *planes);

/** Convert a row of a model, pixel[nx] in Jy/pixel, for model planes: out[nx], of the
 * plan's precision, is the row times `scale` and, unless the backend corrects later,
 * times the grid correction, for which correction[nx] is work memory. Pixels that are
 * blank or beyond the horizon become 0. Local. */
void imager_model_put_row(const imager_job *job, double scale, int64_t row,
                          const double *pixel, double *correction, void *out);

/** Announce, before the plan is made, that the job will subtract models of these
 * polarisations from its samples, one each, which imager_model_set() sets. Local. */
void imager_model_expect(imager_job *job, const tess_pol *pol, int num_pol);

/** How the Stokes parameters of a model make up polarisations, pol[num_pol], of
 *  samples: to->num and to->mix. Local. */
void imager_model_mix(const imager_model *model, const tess_pol *pol, int num_pol,
                      imager_job_model *to);

/** Make rows[model.num], in Jy/pixel and distributed as finished images, the model of
 * the job, which has model planes. NaN counts as 0. TESS_ERR_INTERNAL: the rows are
 * those of other ranks. Collective. */
tess_status imager_model_set(imager_job *job, const imager_rows *rows);

/** Like imager_model_set(), but put `num` of rows onto model planes of the job;
 * `*scale` gets the factor by which pixels have been multiplied. Collective. */
tess_status imager_model_put(const imager_job *job, const imager_rows *rows, int num,
                             tess_planes *planes, double *scale);

/** Have the backend correct `num` model images for gridding, once they are where
 * tess_planes_image says, if the backend does that (tess_grid_ops). Local. */
tess_status imager_model_place(const imager_job *job, tess_planes *planes, int num);

/** Predict the visibilities of samples that this rank owns, with as many planes at a
 * time as is best beside `other_bytes`. `steps`: of planes that hold the model.
 * Collective. */
tess_status imager_predict_owned(imager_job *job, tess_steps *steps, double other_bytes,
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
    imager_job job;
    int loaded; /* the part of a cube that lies on the model planes; −1: no part does */
    double loaded_scale;        /* factor by which its pixels have been multiplied */
    const imager_extent *whole; /* of all good samples that will come, in any number of
                                   calls, on one plan: ignored ones are left out; NULL:
                                   a plan for what comes, with ignored ones. Borrowed */
    const imager_rows *rows;    /* [model.num_stokes] rows of the model, which each call
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
 * positions: samples->num_pol is model.num_stokes. If the model has several planes,
 * each channel gets those of its own. Collective. */
tess_status imager_predictor_run(imager_predictor *predictor, tess_samples *samples);

/** Announce, before the first plan, that parts of these samples are predicted on one
 * plan, each at one or several channels. Collective. */
tess_status imager_predictor_expect(imager_predictor *predictor,
                                    const tess_samples *samples);

/** Like imager_predictor_run(), with one image for all channels: of a cube, model.part.
 * Collective. */
tess_status imager_predictor_run_part(imager_predictor *predictor,
                                      tess_samples *samples);

/** Subtract the model, times `vis_scale`, from samples at any positions, on a plan of
 * the predictor's own: the model has other pixels than the image. Of the job's model,
 * `mix` alone is used. Collective. */
tess_status imager_predictor_subtract(imager_predictor *predictor,
                                      const imager_job_model *mix, double vis_scale,
                                      tess_samples *samples);

/** Whether the model's pixels are those of `geom`, to a tenth of the accuracy at the
 *  longest baselines that the grid of `geom` has. Local. */
bool imager_model_is_on(const imager_model *model, const tess_geom *geom,
                        double accuracy);

#endif
