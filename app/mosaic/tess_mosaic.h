/** @file tess_mosaic.h
 *  A mosaic of images that were made one by one. With the image D_i of pointing i [flux
 *  times primary beam], its primary beam B_i and its noise σ_i, all at a direction of
 *  the mosaic,
 *
 *      I = Σ_i B_i D_i / σ_i² / Σ_i B_i² / σ_i²
 *
 *  is the flux of the least variance 1 / Σ_i B_i² / σ_i² (Cornwell 1988, A&A 202, 316;
 *  Sault, Staveley-Smith and Brouw 1996, A&AS 120, 375).
 */
#ifndef TESS_MOSAIC_H
#define TESS_MOSAIC_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"
#include "tess_fits.h"
#include "tess_status.h"

/** How values between pixels are found. */
typedef enum tess_mosaic_kernel {
    TESS_MOSAIC_LINEAR, /**< from 2 × 2 pixels */
    TESS_MOSAIC_LANCZOS /**< from 6 × 6, by sinc(x) sinc(x/3) (Duchon 1979, J. Appl.
                             Meteor. 18, 1016) */
} tess_mosaic_kernel;

/** The pixels of the mosaic. Zeros are found: the middle of the images, the size that
 *  holds all of them, and the smallest of their pixels. */
typedef struct tess_mosaic_frame {
    bool has_center;
    double ra_rad, dec_rad;
    int64_t nx, ny;
    double scale_rad;
} tess_mosaic_frame;

typedef struct tess_mosaic_opts {
    const char *const *path; /**< [num_images] images or cubes [Jy/beam], all of the
                                  same channels and Stokes parameters */
    int num_images;
    const char *output; /**< NAME of NAME-image.fits and the files beside it */
    tess_mosaic_frame frame;
    tess_mosaic_kernel kernel;
    const char *primary_beam; /**< "files": NAME-pb.fits beside each NAME-image.fits;
                                   "none"; or a model of tess_primary_beam.h, which
                                   points at the reference pixel of each image */
    double limit;             /**< pixels where the beam is below it do not count */
    const double *noise_jy;   /**< [num_images], or NULL: each plane's is measured */
    tess_fits_beam beam; /**< that all images are convolved to; zeros: the smallest that
                              contains those of a plane's images */
    bool overwrite, repeatable;
    int threads;
    const char *command_line; /**< for HISTORY */
} tess_mosaic_opts;

/** Make a mosaic: NAME-image.fits of even noise (I times the beam), NAME-image-pb.fits
 *  (I), NAME-pb.fits, the beam √(Σ_i B_i²/σ_i²) over its largest value, and
 *  NAME-noise.fits, the noise of I. Without primary beams, NAME-image.fits is the mean
 *  I, and the second and third file are not written.
 *
 *  A rank holds its share of the rows of a plane of the mosaic, and of one image at a
 *  time its share and the rows that its rows of the mosaic are made of.
 *
 *  TESS_ERR_USAGE: a model of a beam is unknown. TESS_ERR_INPUT: images do not fit one
 *  another, are not in Jy/beam, have no beam, or none of them lies in the mosaic.
 *  TESS_ERR_IO, TESS_ERR_ALLOC. Collective. */
tess_status tess_mosaic(tess_comm *comm, const tess_mosaic_opts *opts);

#endif
