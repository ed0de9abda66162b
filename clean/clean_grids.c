/* Chooses grids for large scales, and makes the weights of interpolation: see
 * clean_grids.h. */
#include "clean_grids.h"

#include <math.h>

#include "clean_ops.h"
#include "tess_const.h"
#include "tess_minmax.h"

/* The highest frequency that a grid is used for, of the highest that it has. */
static const double BAND = 0.6;

/* The fewest cells along an axis. Transforms of smaller planes take no time that would
 * matter. */
enum { FEWEST_CELLS = 512 };

int clean_grids_with(double frequency)
{
    int grids = 0;
    while (grids < CLEAN_GRIDS && frequency < BAND / (2 * clean_grid_cell(grids)))
        ++grids;
    return grids;
}

bool clean_grid_fits(const clean_setup *setup, int grid, int64_t lx, int64_t ly)
{
    const int64_t cell = clean_grid_cell(grid);
    const tess_clean_grids use = setup->opts.method.grids;
    const tess_clean_images *images = &setup->images;
    const int64_t least = tess_min_i64(images->nx, images->ny) / cell;
    if (use == TESS_CLEAN_FINE_GRIDS || !clean_is_multiscale(setup)) return false;
    if (lx % (2 * cell) != 0 || ly % (2 * cell) != 0) return false;
    if (least < 2 * CLEAN_GRID_CELLS) return false;
    return use == TESS_CLEAN_COARSE_GRIDS ||
           (!setup->opts.is_double && tess_min_i64(lx, ly) / cell >= FEWEST_CELLS);
}

int clean_grid_of(const clean_setup *setup, int64_t lx, int64_t ly,
                  const clean_grid_variance *variance)
{
    double all = 0, beyond = 0;
    int best = -1;
    for (int k = 0; k <= CLEAN_GRIDS; ++k)
        all += variance->by_grids[k];
    for (int grid = 0; grid < CLEAN_GRIDS; ++grid) {
        beyond += variance->by_grids[grid];
        if (!(beyond <= CLEAN_GRID_ERROR * CLEAN_GRID_ERROR * all)) break;
        if (clean_grid_fits(setup, grid, lx, ly)) best = grid;
    }
    return best;
}

/* The modified Bessel function I0, by its power series. */
static double bessel_i0(double x)
{
    double term = 1, sum = 1;
    for (int k = 1; term > 1e-17 * sum; ++k) {
        term *= x / (2 * k) * (x / (2 * k));
        sum += term;
    }
    return sum;
}

void clean_grid_weights(int grid, double *weight)
{
    const int cell = clean_grid_cell(grid);
    const double half = CLEAN_GRID_CELLS / 2;
    const double beta = TESS_PI * half * (1 - BAND);
    for (int pixel = 0; pixel < cell; ++pixel)
        for (int k = 0; k < CLEAN_GRID_CELLS; ++k) {
            const double x = k - CLEAN_GRID_BEFORE - (double)pixel / cell;
            const double inside = 1 - x / half * (x / half);
            const double window = bessel_i0(beta * sqrt(fmax(inside, 0)));
            const double sinc = x == 0 ? 1 : sin(TESS_PI * x) / (TESS_PI * x);
            const bool on_cell = pixel == 0 && x != 0;
            weight[pixel * CLEAN_GRID_CELLS + k] =
                on_cell ? 0 : sinc * window / bessel_i0(beta);
        }
}
