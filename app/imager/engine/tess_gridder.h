/** @file tess_gridder.h
 *  Gridding and degridding between samples in memory and one image, by this process
 *  alone, on its processor.
 */
#ifndef TESS_GRIDDER_H
#define TESS_GRIDDER_H

#include <stdbool.h>

#include "tess_geom.h"
#include "tess_grid.h"
#include "tess_samples.h"
#include "tess_status.h"

typedef struct tess_gridder tess_gridder;

/** Where the time went. */
typedef struct tess_gridder_report {
    double plan_s;           /**< plan and buffers */
    double sort_s;           /**< samples into bricks */
    double fft_s;            /**< FFT and w-screens, and … */
    double join_s;           /**< … tile sums to and from grid lines */
    double grid_utilisation; /**< busy share of the threads while gridding */
} tess_gridder_report;

/** Plan, sort the samples, and set up one image of zeros, to grid them when `forward`,
 *  else to degrid. Options and geometry are copied; samples of one polarisation are
 *  borrowed. Those of weight 0, where there are weights, are left out. TESS_ERR_ALLOC,
 *  and errors of tess_grid_plan_create(). Local. */
tess_status tess_gridder_create(const tess_geom *geom, const tess_grid_opts *opts,
                                tess_samples *samples, bool forward,
                                tess_gridder **gridder);

/** Grid the samples: the image's sums, without the grid's correction. TESS_ERR_ALLOC.
 *  Local. */
tess_status tess_gridder_image(tess_gridder *gridder);

/** Degrid the image, which the caller has corrected (tess_grid_correction_row), to the
 *  samples' visibilities. TESS_ERR_ALLOC. Local. */
tess_status tess_gridder_predict(tess_gridder *gridder);

const tess_grid_plan *tess_gridder_plan(const tess_gridder *gridder);

/** The image's pixels [ny][nx], float or double as the plan is. */
void *tess_gridder_pixels(const tess_gridder *gridder);

void tess_gridder_report_make(const tess_gridder *gridder, tess_gridder_report *report);

void tess_gridder_destroy(tess_gridder *gridder); /**< NULL is fine. */

#endif
