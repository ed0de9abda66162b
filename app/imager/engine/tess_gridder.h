/** @file tess_gridder.h
 *  Gridding and degridding between samples in memory and one image, by this process
 *  alone, on its processor.
 */
#ifndef TESS_GRIDDER_H
#define TESS_GRIDDER_H

#include <stdbool.h>

#include "tess_geom.h"
#include "tess_grid.h"
#include "tess_status.h"

typedef struct tess_gridder tess_gridder;

/** Seconds of the parts of the work. */
typedef struct tess_gridder_report {
    double plan_s; /**< plan and buffers */
    double sort_s; /**< sorting samples to bricks */
    double fft_s;  /**< FFT and w-screens, without join_s */
    double join_s; /**< adding tile sums to grid lines, or taking them from there */
    double grid_utilisation; /**< busy share of the threads while gridding */
} tess_gridder_report;

/** Make a plan, sort the samples, and make one image of zeros. With `forward`, the
 * samples are to be gridded, otherwise to be degridded. Options and geometry are
 * copied; samples, of one polarisation, are borrowed. If they have weights, those of
 * weight 0 are left out. The image lies in `pixels` [ny][nx], borrowed and of the
 * samples' precision; NULL: in memory of its own. TESS_ERR_ALLOC, and errors of
 * tess_grid_plan_create(). Local. */
tess_status tess_gridder_create(const tess_geom *geom, const tess_grid_opts *opts,
                                tess_samples *samples, bool forward, void *pixels,
                                tess_gridder **gridder);

/** Grid the samples to the image, which then holds sums without the grid correction.
 * TESS_ERR_ALLOC. Local. */
tess_status tess_gridder_image(tess_gridder *gridder);

/** Degrid the image, which the caller has corrected (tess_grid_correction_row), to the
 *  samples' visibilities. TESS_ERR_ALLOC. Local. */
tess_status tess_gridder_predict(tess_gridder *gridder);

const tess_grid_plan *tess_gridder_plan(const tess_gridder *gridder);

/** The pixels of the image [ny][nx], float or double as the plan is. */
void *tess_gridder_pixels(const tess_gridder *gridder);

void tess_gridder_report_make(const tess_gridder *gridder, tess_gridder_report *report);

void tess_gridder_destroy(tess_gridder *gridder); /**< NULL is fine. */

#endif
