/** @file pipeline.h  (tests)
 *  The computing core from arrays to arrays: visibilities to dirty image and PSF, and
 *  image to visibilities, through the same calls as `tessera image` and `predict` but
 *  without files and weights, on the backend of core_backend.h.
 */
#ifndef TESS_TEST_PIPELINE_H
#define TESS_TEST_PIPELINE_H

#include "tess_comm.h"
#include "tess_geom.h"
#include "tess_imager.h"
#include "tess_kernel.h"
#include "tess_origin.h"

/** What was planned, for tests that must know what they tested. */
typedef struct pipeline_facts {
    bool is_double, do_w;
    int num_planes, num_blocks;
    int num_groups, fft_ranks;
    int64_t num_split;
    tess_kernel kernel;
    int64_t nu, nv;
    double w_step_lambda, nm1_center;
    int64_t batch_vis;  /**< residuals that were held at a time, 0: all */
    int spooled_passes; /**< of a visibility set on scratch, 0: in memory */
} pipeline_facts;

/** This rank's rows and how all ranks work on them; arrays belong to the caller. */
typedef struct pipeline {
    tess_comm *comm;
    tess_geom geom;
    tess_gridding gridding;
    tess_layout layout;
    bool adjoint; /**< predict with the plan of an image, whose adjoint that is */
    int num_pol;
    /** Images of a model that is subtracted; 0: num_pol, one for each polarisation. A
     *  polarisation's visibilities are mix[num_pol][num_model][2] times those of the
     *  images. */
    int num_model;
    const double *mix;
    /** Samples have num_corr values in place of num_pol, of which targets take this
     *  view; NULL: they have not. `mix` is then that of these values. Row k has origin
     *  first_origin + k. */
    const struct imager_view *view;
    int num_corr;
    const tess_origins *origins;
    int32_t first_origin;
    int64_t num_rows, num_chan;
    const double *uvw_m;   /**< [num_rows][3] */
    const double *freq_hz; /**< [num_chan] */
    const char *scratch;   /**< folder for a set that takes several passes, or NULL */
    pipeline_facts *facts; /**< filled; may be NULL */
} pipeline;

/** The share of the rows that this rank of with->comm has: ranks have parts of them one
 * after the other, and this one's begins with row `*first`. Local. */
pipeline pipeline_share(const pipeline *with, int64_t *first);

/** dirty[num_pol][ny][nx] (whole, on every rank), and the PSF [ny][nx] unless NULL,
 * from vis[num_rows][num_chan][num_pol][2] and weight[num_rows][num_chan] (NULL: all
 * 1).
 *  `*sum_weights` may be NULL. Collective. */
tess_status pipeline_image(const pipeline *with, const double *vis,
                           const double *weight, double *dirty, double *psf,
                           double *sum_weights);

/** A visibility set of the same arrays is made once; then, for each of
 * model[num_models] [num_model][ny][nx] (whole, on every rank),
 * residual[num_models][num_pol][ny][nx] is the dirty image of the set less that model.
 * `psf` comes with the first, unless NULL. Collective. */
tess_status pipeline_residuals(const pipeline *with, const double *vis,
                               const double *weight, int num_models,
                               const double *model, double *residual, double *psf);

/** Images that are made of one visibility set: see pipeline_targets(). */
typedef struct pipeline_target {
    tess_geom geom;
    const double *model; /**< [num_pol][ny][nx] subtracted from the samples, or NULL */
    double *image;       /**< [num_pol][ny][nx] */
    double *psf;         /**< [ny][nx] */
    double *source;      /**< [num_pol][ny][nx] with a view: of a source of 1 Jy in the
                            middle      instead of the samples, or NULL */
    double counted[8], response[8]; /**< out: [num_pol], of the image */
} pipeline_target;

/** A visibility set of the same arrays is made once, and images of all targets are made
 * of it: `times` times in all, so that what one image leaves behind meets the next. If
 * the first target has a model, all have one, and the sum of them is subtracted.
 * With `only` ≥ 0, the set makes the images of this target alone, on the frame of all.
 * Collective. */
tess_status pipeline_targets(const pipeline *with, const double *vis,
                             const double *weight, pipeline_target *target,
                             int num_targets, int only, int times);

/** vis[num_rows][num_chan][num_pol][2] from image[num_pol][ny][nx], which is the same
 * on every rank; NaN counts as 0. Collective. */
tess_status pipeline_predict(const pipeline *with, const double *image, double *vis);

#endif
