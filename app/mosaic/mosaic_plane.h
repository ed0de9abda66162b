/** @file mosaic_plane.h  (private to app/mosaic/)
 *  One plane of the mosaic, from the images to rows of the files.
 */
#ifndef TESS_MOSAIC_PLANE_H
#define TESS_MOSAIC_PLANE_H

#include "mosaic_resample.h"

/** The images that a mosaic has. */
typedef enum mosaic_product {
    MOSAIC_FLAT,  /**< of even noise: flux times beam */
    MOSAIC_FLUX,  /**< the flux */
    MOSAIC_BEAM,  /**< √weight over its largest */
    MOSAIC_NOISE, /**< of the flux */
    MOSAIC_PRODUCTS
} mosaic_product;

/** What all planes share. */
typedef struct mosaic_job {
    tess_comm *comm;
    const tess_mosaic_opts *opts;
    tess_mosaic_frame frame; /**< complete */
    mosaic_input *input;     /**< [opts->num_images]; owned */
    mosaic_sums sums;
    mosaic_strips strips;
    mosaic_weights *weights; /**< of Lanczos' kernel, or NULL; owned */
} mosaic_job;

/** Sum a plane up. `meta` gets its header: that of the first image with data, with the
 *  pixels of the mosaic and the beam that all images were convolved to. Errors of
 *  tess_mosaic(). Collective. */
tess_status mosaic_plane_sum(mosaic_job *job, int plane, tess_image_meta *meta);

/** What is made of the sums. */
typedef struct mosaic_taken {
    mosaic_product product;
    double largest; /**< weight of all ranks */
    bool is_double;
} mosaic_taken;

/** Rows of a product from the sums, rows[num_rows][nx]; NaN where no image has counted.
 *  Local. */
void mosaic_plane_take(const mosaic_job *job, const mosaic_taken *taken, void *rows);

#endif
