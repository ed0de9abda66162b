/** @file density.h  (private to grid/)
 *  Where a sample lies on the grid of densities, and how its cells are kept. One source
 *  for the processor and for devices.
 */
#ifndef TESS_DENSITY_H
#define TESS_DENSITY_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "tess_const.h"
#include "tess_shared_code.h"

enum { DENSITY_PAGE = 64, DENSITY_PAGE_CELLS = DENSITY_PAGE * DENSITY_PAGE };

/** A Gaussian on the sky. */
typedef struct density_gauss {
    double fwhm_rad;       /**< of its major axis; 0: none */
    double minor_rad;      /**< FWHM of its minor axis; 0: it is round */
    double sin_pa, cos_pa; /**< of the major axis, from North through East */
} density_gauss;

typedef struct density_layout {
    int num_grids;           /**< one per weight, or one for all */
    int64_t nx, ny;          /**< of the weight grid; rows [0, ny/2) are used */
    double scale_x, scale_y; /**< cells per wavelength */
    int64_t pages_x, pages_y;
    double empty_factor; /**< of the weights in a cell without density, whose value is
                            0; a factor of 0 has a negative value */
    density_gauss gauss; /**< a taper that cells do not have */
} density_layout;

TESS_SHARED_FUNCTION int64_t density_num_pages(const density_layout *layout)
{
    return layout->num_grids * layout->pages_x * layout->pages_y;
}

/** Page and cell of a sample's weight `which`; false when it lies outside the grid. */
TESS_SHARED_FUNCTION bool density_cell_of(const density_layout *layout, int which,
                                          double u, double v, int64_t *page, int *cell)
{
    const int grid = which < layout->num_grids ? which : 0;
    const double sign = v < 0 ? -1.0 : 1.0;
    const double x = floor(sign * u * layout->scale_x + (double)(layout->nx / 2));
    const double y = floor(sign * v * layout->scale_y);
    if (!(x >= 0 && x < (double)layout->nx && y < (double)(layout->ny / 2)))
        return false;
    const int64_t i = (int64_t)x, j = (int64_t)y;
    *page = (grid * layout->pages_y + j / DENSITY_PAGE) * layout->pages_x +
            i / DENSITY_PAGE;
    *cell = (int)(j % DENSITY_PAGE) * DENSITY_PAGE + (int)(i % DENSITY_PAGE);
    return true;
}

/** Factor of a weight in a cell of this value. */
TESS_SHARED_FUNCTION double density_factor(const density_layout *layout, double value)
{
    return value > 0 ? value : value < 0 ? 0 : layout->empty_factor;
}

/** The transform of a Gaussian at (u, v): exp(−2 (π σ ρ)²) with FWHM = √(8 ln 2) σ,
 *  where both axes of an ellipse have a σ, and a ρ along them, of their own. */
TESS_SHARED_FUNCTION double density_gaussian(const density_gauss *gauss, double u,
                                             double v)
{
    double x = gauss->fwhm_rad * hypot(u, v);
    if (!(gauss->fwhm_rad > 0)) return 1;
    if (gauss->minor_rad > 0)
        x = hypot(gauss->fwhm_rad * (u * gauss->sin_pa + v * gauss->cos_pa),
                  gauss->minor_rad * (u * gauss->cos_pa - v * gauss->sin_pa));
    x *= TESS_PI;
    return exp(-x * x / (4 * log(2.0)));
}

#endif
