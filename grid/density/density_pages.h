/** @file density_pages.h  (private to grid/)
 *  The pages of a density, for samples that are elsewhere than in host memory.
 */
#ifndef TESS_DENSITY_PAGES_H
#define TESS_DENSITY_PAGES_H

#include "density.h"
#include "tess_weight.h"

const density_layout *density_layout_of(const tess_density *density);

/** [DENSITY_PAGE_CELLS], the density's; NULL: no sample was there. */
const double *density_page(const tess_density *density, int64_t number);

/** The same, made of zeros if need be; NULL: no memory. */
double *density_page_made(tess_density *density, int64_t number);

#endif
