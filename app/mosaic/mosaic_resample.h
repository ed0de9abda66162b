/** @file mosaic_resample.h  (private to app/mosaic/)
 *  Values between the pixels of a strip, and the sums that a mosaic is made of.
 */
#ifndef TESS_MOSAIC_RESAMPLE_H
#define TESS_MOSAIC_RESAMPLE_H

#include "mosaic_strip.h"

/** The sums of this rank's rows of a plane of the mosaic. */
typedef struct mosaic_sums {
    int64_t nx, row_first, num_rows;
    double *flux;   /**< Σ B D / σ², [num_rows][nx]; owned */
    double *weight; /**< Σ B² / σ², the same */
} mosaic_sums;

/** Pixels around a place that a value is made of: this many to each side. Local. */
int64_t mosaic_kernel_reach(tess_mosaic_kernel kernel);

/** Add an image of this noise to the rows and columns of `box`. A pixel of the mosaic
 *  gets nothing where a pixel of the image that it is made of is NaN or outside of the
 *  image. Local. */
void mosaic_sums_add(const tess_mosaic_opts *opts, const mosaic_way *way,
                     const mosaic_strip *strip, const mosaic_box *box, double noise_jy,
                     const mosaic_sums *sums);

#endif
