/** @file rank_filter.h  (private to grid/)
 *  Limits the factors of a density's cells to a multiple of the mean around them.
 */
#ifndef TESS_RANK_FILTER_H
#define TESS_RANK_FILTER_H

#include "density.h"
#include "tess_status.h"

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

#endif
