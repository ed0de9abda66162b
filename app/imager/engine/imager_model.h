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

/** A model image to predict from, or several for the channels. */
typedef struct imager_model {
    tess_fits_model fits; /* of several, the first */
    model_cube *cube;     /* several, or NULL; owned */
    int part;             /* the part of the cube that is loaded next */
    tess_geom geom;       /* of its pixels, where its header has them */
    int num_stokes;
    int stokes_index[4]; /* plane of I, Q, U, V in the file, or -1 */
    int stokes[4];       /* codes 1..4 of the grids */
    bool per_beam;       /* its header says Jy/beam */
    bool is_checked;     /* what its pixels add up to, and how many are blank */
    bool is_told;        /* other ranks warn of blank pixels */
    double scale; /* a power of two: visibilities are predicted of the model times
                     this, so that products of very small pixels are in range */
} imager_model;

/** Open the model of a file, of a cube or of a set (model_cube_open, with its
 * `num_terms`) or, where `path` is NULL, of pixels in memory, and check it against the
 * phase centre and, when `scale_rad` is not 0, against the image's pixels. Local. */
tess_status imager_model_open(const char *path, int num_terms,
                              const tess_fits_pixels *pixels, double ra_rad,
                              double dec_rad, double scale_rad, imager_model *model);
void imager_model_close(imager_model *model); /**< Local. */

/** Warn, on one rank, of a model whose unit is Jy/beam. Local. */
void imager_model_warn(const imager_model *model, tess_comm *comm);

/** Read the model into model planes of the job, its Stokes planes as their first
 * images, corrected for gridding. The first time pixels are looked through:
 * model->scale is chosen, TESS_ERR_INPUT for those that add up to too much. Collective.
 */
tess_status imager_model_load(const imager_job *job, imager_model *model,
                              tess_planes *planes);

/** One row of a model, pixel[nx] in Jy/pixel, as it lies on model planes: out[nx], of
 * the plan's precision, is the row times `scale` and, unless the backend corrects it
 * later, the grid correction, which needs correction[nx] to work in. Pixels that are
 * blank or beyond the horizon become zero. Local. */
void imager_model_put_row(const imager_job *job, double scale, int64_t row,
                          const double *pixel, double *correction, void *out);

/** The job will subtract models of these polarisations of its samples, one each, which
 *  imager_model_set() sets: before the plan is made. Local. */
void imager_model_expect(imager_job *job, const tess_pol *pol, int num_pol);

/** How the Stokes parameters of a model make up polarisations, pol[num_pol], of
 *  samples: to->num and to->mix. Local. */
void imager_model_mix(const imager_model *model, const tess_pol *pol, int num_pol,
                      imager_job_model *to);

/** Have rows[model.num], in Jy/pixel and where finished images lie, become the model of
 *  the job, whose model planes are there. NaN counts as 0. TESS_ERR_INTERNAL for rows
 * of other ranks. Collective. */
tess_status imager_model_set(imager_job *job, const imager_rows *rows);

/** As imager_model_set(), `num` of rows onto model planes of the job; *scale is what
 * the pixels have been multiplied by. Collective. */
tess_status imager_model_put(const imager_job *job, const imager_rows *rows, int num,
                             tess_planes *planes, double *scale);

/** Once `num` model images lie where tess_planes_image says, have the backend correct
 *  them for gridding, if it does that itself (tess_grid_ops). Local. */
tess_status imager_model_place(const imager_job *job, tess_planes *planes, int num);

/** Predict the visibilities of samples that this rank owns, of as many planes at a time
 *  as is best beside `other_bytes`; `steps`: of planes that hold the model. Collective.
 */
tess_status imager_predict_owned(imager_job *job, tess_steps *steps, double other_bytes,
                                 tess_samples *owned, const tess_brick_list *bricks);

/** Prediction from a model for one set of samples after the other. Plan, FFT plans and
 *  the corrected model are kept as long as they serve the next set too. */
typedef struct imager_predictor {
    imager_model model;
    imager_job job;
    int loaded; /* part of a cube that lies on the model planes; −1: none has */
    double loaded_scale;        /* what its pixels have been multiplied by */
    const imager_extent *whole; /* of all good samples that will come, in any number of
                                   calls, on one plan: ignored ones are left out; NULL:
                                   a plan for what comes, with ignored ones. Borrowed */
    const imager_rows *rows; /* [model.num_stokes] of the model, which may be others in
                                each call; NULL: those of model.fits. Borrowed */
} imager_predictor;

/** A predictor for a model that is open, and is the predictor's then. Nothing is
 * planned yet. Collective. */
tess_status imager_predictor_create(tess_comm *comm, const imager_model *model,
                                    const tess_gridding *gridding,
                                    const tess_layout *layout, tess_profile *profile,
                                    imager_predictor *predictor);
void imager_predictor_free(imager_predictor *predictor); /* Collective. */

/** Predict the Stokes visibilities of the model, times model.scale, at the samples'
 *  positions: samples->num_pol is model.num_stokes. Where the model has several planes,
 *  those of each channel's. Collective. */
tess_status imager_predictor_run(imager_predictor *predictor, tess_samples *samples);

/** Before the first plan: parts of these samples are to be predicted on one plan, each
 * at one or several channels. Collective. */
tess_status imager_predictor_expect(imager_predictor *predictor,
                                    const tess_samples *samples);

/** As imager_predictor_run() of one image for all channels: of a cube, model.part.
 * Collective. */
tess_status imager_predictor_run_part(imager_predictor *predictor,
                                      tess_samples *samples);

/** Subtract the model, times `vis_scale`, from samples that lie anywhere, on a plan of
 *  the predictor's own: of a model whose pixels are not the image's. Only `mix` is
 *  looked at of what is given with it. Collective. */
tess_status imager_predictor_subtract(imager_predictor *predictor,
                                      const imager_job_model *mix, double vis_scale,
                                      tess_samples *samples);

/** Whether the model's pixels are those of `geom`, to a tenth of the accuracy at the
 *  longest baselines that the grid of `geom` has. Local. */
bool imager_model_is_on(const imager_model *model, const tess_geom *geom,
                        double accuracy);

#endif
