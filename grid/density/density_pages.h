/** @file density_pages.h  (private to grid/)
 *  What a density is made of: pages, factors, tapers.
 */
#ifndef TESS_DENSITY_PAGES_H
#define TESS_DENSITY_PAGES_H

#include "density.h"
#include "tess_status.h"
#include "tess_weight.h"

/* ---- density.c: for samples that are elsewhere than in host memory ---- */

const density_layout *density_layout_of(const tess_density *density);

/** [DENSITY_PAGE_CELLS], the density's; NULL: no sample was there. */
const double *density_page(const tess_density *density, int64_t number);

/** The same, made of zeros if need be; NULL: no memory. */
double *density_page_made(tess_density *density, int64_t number);

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
