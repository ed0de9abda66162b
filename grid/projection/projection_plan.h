/** @file projection_plan.h  (private to grid/)
 *  What a gridding plan of w-projection has in common with the gridders.
 */
#ifndef TESS_PROJECTION_PRIVATE_H
#define TESS_PROJECTION_PRIVATE_H

#include "tess_gcf_grid.h"
#include "tess_grid.h"
#include "tess_projection.h"

struct tess_projection {
    tess_projection_opts opts; /* oversampling and strategy as chosen */
    tess_gcf *gcf;
    tess_gcf_plan *gridder;
    bool was_cached;
    int taper_support;     /* of computed kernels, … */
    double cut;            /* … and the part of their peak that they end at; else 0 */
    double *taper_line[2]; /* of a user's: sums of plane 0 across u, and v, complex … */
    int taper_half;        /* … from −taper_half to taper_half */
    double padding;
    double nm1_spread; /* rms of n − 1 about its mean */
    double nm1_mean;   /* over the image; taken out of what is between planes */
};

/** Choose and make everything but corrections. TESS_ERR_USAGE where the field or its
 *  w-kernels are too large, TESS_ERR_ALLOC. Local. */
tess_status projection_plan(tess_grid_plan *plan, const tess_projection_opts *asked);
void projection_destroy(tess_projection *projection); /**< NULL is fine */

/** T along an axis (0: l) at p[count], and of its sign; see tess_gcf_taper. */
void projection_taper(const tess_projection *projection, int axis, int64_t count,
                      const double *p, double *taper);

/** 1/T of columns and rows. */
tess_status projection_corrections(tess_grid_plan *plan);

double projection_cost_vis(const tess_grid_plan *plan);

/** Cells of a visibility's kernel, the mean over planes. */
double projection_cells(const tess_grid_plan *plan);
void projection_text(const tess_grid_plan *plan, char *text, int size);

/** exp(2πi · turns) that a visibility of this w (≥ 0) is gridded with, for the part of
 *  its phase that lies between planes. */
void projection_phase(const tess_projection *projection, double w_lambda,
                      double phase[2]);

#endif
