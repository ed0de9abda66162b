/** @file density_pages.h  (private to grid/)
 *  What a density is made of: pages, factors, tapers.
 */
#ifndef TESS_DENSITY_PAGES_H
#define TESS_DENSITY_PAGES_H

#include <string.h>

#include "density.h"
#include "tess_status.h"
#include "tess_weight.h"

/* ---- density.c: for samples that are elsewhere than in host memory ---- */

const density_layout *density_layout_of(const tess_density *density);

/** [DENSITY_PAGE_CELLS], the density's; NULL: no sample was there. */
const double *density_page(const tess_density *density, int64_t number);

/** The same, made of zeros if need be; NULL: no memory. */
double *density_page_made(tess_density *density, int64_t number);

/** Adds a cell to another; `fixed`: both are integers, which have the size of doubles.
 */
static inline void density_add_cell(bool fixed, double *to, const double *from)
{
    int64_t sum[2];
    if (!fixed) {
        *to += *from;
        return;
    }
    memcpy(&sum[0], to, sizeof *sum);
    memcpy(&sum[1], from, sizeof *sum);
    sum[0] += sum[1];
    memcpy(to, &sum[0], sizeof *sum);
}

/* ---- box_sum.c: densities summed over squares of cells ---- */

/** Writes to out[DENSITY_PAGE_CELLS] the sum over [x − reach, x + reach] and
 *  [y − reach, y + reach] of the cells around each cell of a page, and its conjugates
 *  where v < 0. Pages that are not there (NULL) are empty. rows[(DENSITY_PAGE + 2
 * reach) × DENSITY_PAGE] is the caller's, for sums in between. Local. */
void box_sum_page(const density_layout *layout, double *const *page, bool fixed,
                  int64_t reach, int64_t number, double *rows, double *out);

/* ---- rank_filter.c: factors limited to a multiple of the mean around them ---- */

typedef struct rank_filter rank_filter;

/** A filter of the pages of a density, which hold factors. It caps a cell's factor at
 *  `limit` × the mean of the occupied cells of [x − reach, x + reach) and
 *  [y − reach, y + reach). The caller keeps `layout` and page[number]; the pages within
 *  reach of those that are filtered are there. TESS_ERR_ALLOC. Local. */
tess_status rank_filter_create(double limit, int64_t reach,
                               const density_layout *layout, double *const *page,
                               rank_filter **filter);
void rank_filter_destroy(rank_filter *filter); /**< NULL is fine */

/** Writes the capped factors of a page to out[DENSITY_PAGE_CELLS]; cells without a
 *  factor keep what `out` has. Local. */
void rank_filter_page(rank_filter *filter, int64_t number, double *out);

/* ---- taper.c: by a baseline's length, and towards the edges of the grid ---- */

/** The Gaussian of a taper. Local. */
density_gauss taper_gauss(const tess_taper *taper);

/** The factor of a weight at (u, v) [wavelengths], 0 to 1. The grid ends at ±end_u and
 *  ±end_v. Local. */
double taper_at(const tess_taper *taper, double u, double v, double end_u,
                double end_v);

#endif
