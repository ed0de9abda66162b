/** @file clean_components.h  (private to clean/)
 *  A growing list of components: pixel and flux in each image.
 */
#ifndef TESS_CLEAN_COMPONENTS_H
#define TESS_CLEAN_COMPONENTS_H

#include <stdint.h>

#include "tess_status.h"

typedef struct clean_components {
    int num_images;
    int64_t count, index_room, flux_room;
    int64_t *index; /**< [count] y·nx + x */
    double *flux;   /**< [count][num_images] Jy */
} clean_components;

/** Append one. TESS_ERR_INTERNAL: its flux is not finite. TESS_ERR_ALLOC. Local. */
tess_status clean_components_add(clean_components *list, int64_t index,
                                 const double *flux);

/** Append components [from, from + count) of another list. Local. */
tess_status clean_components_copy(clean_components *list, const clean_components *other,
                                  int64_t from, int64_t count);

/** Sort by pixel; fluxes of one pixel are summed in their order. Local. */
tess_status clean_components_merge(clean_components *list);

/** The first component at or behind a pixel, of a merged list. Local. */
int64_t clean_components_from(const clean_components *list, int64_t index);

/** Forget all; memory is kept. Local. */
void clean_components_clear(clean_components *list);
void clean_components_free(clean_components *list); /**< of its arrays. Local. */

#endif
