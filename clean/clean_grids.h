/** @file clean_grids.h  (private to clean/)
 *  Grids of large scales. The kernel of a scale passes low frequencies alone, so the
 *  residual at a large scale follows from its low frequencies: they make a plane whose
 *  cells are 2, 4 or 8 pixels wide, and the pixels are interpolated between these
 *  cells. Sums over a few cells cost less than a transform of all pixels.
 *
 *  Interpolation is by a sinc, windowed as Kaiser did (Kaiser 1974, Proc. IEEE Symp.
 *  Circuits and Systems, 20). It errs by at most 3e-5 of a wave up to the highest
 *  frequency that a grid is used for. What lies above that frequency is the error of
 *  the grid: CLEAN_GRID_ERROR at most.
 *
 *  All functions are Local.
 */
#ifndef TESS_CLEAN_GRIDS_H
#define TESS_CLEAN_GRIDS_H

#include <stdbool.h>
#include <stdint.h>

struct clean_setup;

enum {
    CLEAN_GRIDS = 3,        /**< grids with cells of 2, 4 and 8 pixels */
    CLEAN_GRID_CELLS = 16,  /**< cells along an axis of which a pixel is made */
    CLEAN_GRID_BEFORE = 7,  /**< of these, so many come before the pixel's own one */
    CLEAN_GRID_COARSEST = 8 /**< pixels of the widest cell */
};

/** The largest error of the residual at a scale: the root of the share of its variance
 *  that a grid does not hold. The residual is taken for noise whose spectrum is the
 *  magnitude of the PSF's. */
#define CLEAN_GRID_ERROR 3e-4

/** Pixels of a cell of a grid. */
static inline int clean_grid_cell(int grid)
{
    return 2 << grid;
}

/** How many of the grids hold a frequency [cycles per pixel, without sign]: the first
 *  ones. */
int clean_grids_with(double frequency);

/** Variance at a scale by the number of grids that hold it. */
typedef struct clean_grid_variance {
    double by_grids[CLEAN_GRIDS + 1];
} clean_grid_variance;

/** The coarsest grid that is good enough for a scale, with padded lengths; −1: none. */
int clean_grid_of(const struct clean_setup *setup, int64_t lx, int64_t ly,
                  const clean_grid_variance *variance);

/** Whether a grid can be used with these lengths for anything. */
bool clean_grid_fits(const struct clean_setup *setup, int grid, int64_t lx, int64_t ly);

/** The weights of cells in the pixels of a cell, weight[clean_grid_cell(grid)]
 *  [CLEAN_GRID_CELLS]. Those of pixel 0, which lies on its cell, are 0 and one 1. */
void clean_grid_weights(int grid, double *weight);

#endif
