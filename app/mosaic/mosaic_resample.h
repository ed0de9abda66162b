/** @file mosaic_resample.h  (private to app/mosaic/)
 *  Values between the pixels of a strip, and the sums that a mosaic is made of.
 */
#ifndef TESS_MOSAIC_RESAMPLE_H
#define TESS_MOSAIC_RESAMPLE_H

#include "mosaic_lines.h"
#include "mosaic_strip.h"

/** The sums of this rank's rows of a plane of the mosaic. */
typedef struct mosaic_sums {
    int64_t nx, row_first, num_rows;
    double *flux;   /**< Σ B D / σ², [num_rows][nx]; owned */
    double *weight; /**< Σ B² / σ², the same */
} mosaic_sums;

/** Pixels around a place that a value is made of: this many to each side. Local. */
int64_t mosaic_kernel_reach(tess_mosaic_kernel kernel);

/** Fill in Lanczos' weights. Local. */
void mosaic_weights_fill(mosaic_weights *weights);

/** An image, and where it goes. */
typedef struct mosaic_source {
    const mosaic_strip *strip;
    const mosaic_way *way;         /**< from the mosaic to the image */
    const mosaic_weights *weights; /**< NULL: values come from 2 × 2 pixels */
    double noise_jy;
} mosaic_source;

/** Add an image to the rows and columns of `box`. A pixel of the mosaic gets nothing
 *  where a pixel of the image that it is made of is NaN or outside of the image.
 *  Local. */
void mosaic_sums_add(const mosaic_source *source, const mosaic_box *box, int threads,
                     const mosaic_sums *sums);

#endif
