/** @file imager_model.h  (private to app/imager/)
 *  Model images, and their way onto model planes.
 */
#ifndef TESS_IMAGER_MODEL_H
#define TESS_IMAGER_MODEL_H

#include "imager_job.h"
#include "imager_product.h"
#include "model_cube.h"
#include "tess_comm.h"
#include "tess_fits.h"
#include "tess_geom.h"
#include "tess_imager_opts.h"
#include "tess_polar.h"

/** Set weight[nx] of a row of a target's pixels, by which those of the model are
 * multiplied. Several threads call it at a time. TESS_ERR_ALLOC. Local. */
typedef tess_status imager_part_weights(const void *context, int target, int64_t row,
                                        double *weight);

/** Set the weights to those of the channels to which a plane of a model of several is
 * the nearest. TESS_ERR_ALLOC, TESS_ERR_IO. Local. */
typedef tess_status imager_part_plane(void *owner, const model_cube *cube, int plane);

/** Parts of a model image, of which each is predicted by a target of a job, with the
 * factors of the job's view (imager_view.from_model). */
typedef struct imager_parts {
    int num; /* 0: the model is one target */
    const tess_geom
        *geom; /* [num] pixels of the targets; borrowed, as are the others */
    const int64_t (*first)[2]; /* [num] column and row of the model where they begin */
    imager_part_weights *weigh;
    const void *context;
    imager_part_plane *take_plane; /* NULL: weights are those of all channels */
    void *owner;
} imager_parts;

/** A model image that is predicted, or several for the channels. */
typedef struct imager_model {
    tess_fits_model fits; /* the image; the first one of several */
    model_cube *cube;     /* the images of several channels, or NULL; owned */
    int part;             /* the part of the cube that is loaded next */
    imager_parts parts;   /* parts of the image, each of a target, or zeros */
    tess_geom geom;       /* geometry of its pixels, as its header has them */
    int num_stokes;
    int stokes_index[4]; /* plane of I, Q, U, V in the file, or -1 */
    int stokes[4];       /* codes 1..4 of the grids */
    bool per_beam;       /* its header says Jy/beam */
    bool is_checked;     /* the sum of its pixels has been checked */
    double scale; /* a power of two: predicted visibilities are those of the model times
                     this, so that products of very small pixels are in range */
} imager_model;

/** Open the model of a file, of a cube or of a set (model_cube_open); if its path is
 * NULL, of pixels in memory. Checks it against the phase
 * centre and, unless `scale_rad` is 0, against the image's pixels. Local. */
tess_status imager_model_open(const model_name *name, const tess_fits_pixels *pixels,
                              double ra_rad, double dec_rad, double scale_rad,
                              imager_model *model);
void imager_model_close(imager_model *model); /**< Local. */

/** Warn, on one rank, of a model whose unit is Jy/beam. Local. */
void imager_model_warn(const imager_model *model, tess_comm *comm);

/** Read the model into model planes of the job: its Stokes planes become their first
 * images, corrected for gridding. The first time, looks through its pixels and chooses
 * model->scale. TESS_ERR_INPUT: a pixel is not finite (model_pixels_read), or the
 * pixels add up to too much. Collective. */
tess_status imager_model_load(const imager_job *job, imager_model *model,
                              tess_planes *planes);

/** Like imager_model_load(), with the parts of the model on the planes of all targets.
 * Collective. */
tess_status imager_model_load_parts(imager_job *job, imager_model *model);

/** Multiply rows of the target at work, in double precision and host memory, by the
 * weights of its part. Local. */
tess_status imager_model_weigh(const imager_job *job, const imager_model *model,
                               const tess_rows *rows);

/** The rows of a model of the target at work that this rank has to give to
 * imager_model_put(), in double precision and without memory. Local. */
tess_rows imager_model_rows(const imager_job *job);

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
tess_status imager_model_set(imager_job *job, const tess_rows *rows);

/** Like imager_model_set(), but put `num` of rows onto model planes of the job;
 * `*scale` gets the factor by which pixels have been multiplied. Collective. */
tess_status imager_model_put(const imager_job *job, const tess_rows *rows, int num,
                             tess_planes *planes, double *scale);

/** Have the backend correct `num` model images for gridding, once they are where
 * tess_planes_image says, if the backend does that (tess_grid_ops). Local. */
tess_status imager_model_place(const imager_job *job, tess_planes *planes, int num);

/** Whether the model's pixels are those of `geom`, to a tenth of the accuracy at the
 *  longest baselines that the grid of `geom` has. Local. */
bool imager_model_is_on(const imager_model *model, const tess_geom *geom,
                        double accuracy);

#endif
