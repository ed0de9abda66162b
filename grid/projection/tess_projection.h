/** @file tess_projection.h
 *  W-projection (Cornwell, Golap & Bhatnagar 2008, arXiv:0807.4161) as a way to make a
 *  gridding plan: one plane of the grid, and tables of w-kernels (gcf/tess_gcf.h) in
 *  place of planes of w.
 *
 *  A visibility is gridded at the nearest of Q offsets in its cell and with the kernel
 *  of the nearest plane of w. On an axis the offset δ, uniform in ±1/2Q cell, turns a
 *  pixel at p = l/field by 2πδp; over an image with |p| ≤ 1/2σ, σ being the padding,
 *  both axes together come to √2·2π/√12Q · 1/√12σ = 0.74/Qσ rms. The distance Δ of
 *  planes turns it by 2π·Δ/√12 times n − 1. The mean of n − 1 over the image is made
 *  up for exactly: what is left is its spread. The offsets decide: 4.6 % for Q = 8,
 *  0.6 % for Q = 64. Planes, tapers and cuts are chosen so that they add little.
 */
#ifndef TESS_PROJECTION_H
#define TESS_PROJECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

struct tess_gcf;
struct tess_gcf_strategy;

/** Convolution functions of a user, in place of computed w-kernels. They determine the
 *  planes, the offsets and the size of the grid. Their taper is the real part of their
 *  image at w = 0, which must be a product of a function of l and one of m. */
typedef struct tess_projection_kernels {
    int support, oversampling, num_planes; /**< S even */
    bool is_linear; /**< planes are evenly spaced in w, else in √w */
    double w_max_lambda;
    double field_l, field_m; /**< of the grid [direction cosines] */
    bool is_uneven;          /**< in u or v; Q is then TESS_GCF_MAX_UNEVEN at most */
    const double *value; /**< complex [num_planes][half][half], half = S·Q/2 + 1: cells
                              from 0 to S/2 along u and v in steps of 1/Q; uneven:
                              [num_planes][S·Q + 1][S·Q + 1], from −S/2; borrowed until
                              the plan is made */
} tess_projection_kernels;

/** Options of w-projection. tess_projection_opts_default() sets all of them. */
typedef struct tess_projection_opts {
    bool is_linear;   /**< planes are evenly spaced in w, else in √w */
    int oversampling; /**< Q; 0: with which tables that reach the accuracy are smallest,
                           and 8 where none do */
    const struct tess_gcf_strategy *strategy; /**< NULL: what tess_gcf_tuned() says, if
                                                   it is to be asked, else factored (on
                                                   a GPU tiled, for narrow kernels) */
    bool tuned;                               /**< ask it */
    bool cached;        /**< tables are kept on disk, tess_gcf_create_cached() */
    int64_t most_bytes; /**< of computed tables */
    const tess_projection_kernels *kernels; /**< or NULL: computed */
} tess_projection_opts;

void tess_projection_opts_default(tess_projection_opts *opts);

/** W-kernels and a strategy, made by tess_grid_plan_create(). */
typedef struct tess_projection tess_projection;

struct tess_grid_plan;
struct tess_samples;

/** The table of a plan, which owns it. */
const struct tess_gcf *tess_projection_table(const struct tess_grid_plan *plan);

/** Sums of squared errors and of squared true values, to be summed over ranks. */
typedef struct tess_projection_error {
    double error, norm;
    int64_t num_vis;
} tess_projection_error;

/** Measure the error of gridding. Some samples are gridded, each alone, and the result
 *  at 16 × 16 pixels all over the image is compared with exp(−2πi(ul + vm + w(n−1))).
 *  Degridding has the same errors, because it is the adjoint. With `weighted`, samples
 *  of weight 0 are left out. TESS_ERR_ALLOC. Local. */
tess_status tess_projection_measure(const struct tess_grid_plan *plan,
                                    const struct tess_samples *samples, bool weighted,
                                    tess_projection_error *error);

/** Text for a message: which option makes the error of a plan of w-projection smaller.
 */
const char *tess_projection_advice(const struct tess_grid_plan *plan);

/** Refuse a measured error of more than 0.3 of the image, with TESS_ERR_USAGE.
 *  tess_grid_plan_create() refuses such an expected error in the same way before it
 *  makes tables. Convolution functions of a user are never refused, because they may be
 *  made for something else than a plain image. Local. */
tess_status tess_projection_accept(const struct tess_grid_plan *plan,
                                   double measured_error);

#endif
