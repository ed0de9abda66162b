/** @file facet_columns.h  (private to app/imager/run/)
 *  The names of data columns that hold the predictions of one facet each.
 */
#ifndef FACET_COLUMNS_H
#define FACET_COLUMNS_H

#include "image_facets.h"

typedef struct facet_columns {
    char **name; /**< [num] of the targets of the facets, in their order */
    int num;
} facet_columns;

/** Name columns PREFIX_FACET, where a character of a facet's name that a column cannot
 * have becomes _. TESS_ERR_INPUT naming the region file `path` and both facets if two
 * would share a column. TESS_ERR_ALLOC. Local. */
tess_status facet_columns_create(const image_facets *facets, const char *prefix,
                                 const char *path, facet_columns *columns);
void facet_columns_free(facet_columns *columns); /**< Local. */

#endif
