/** @file mask_regions.h  (private to clean/)
 *  Regions of masks that are distributed by rows: pixels that are not 0 and are
 *  connected by edges, over the borders between ranks, too.
 */
#ifndef TESS_MASK_REGIONS_H
#define TESS_MASK_REGIONS_H

#include <stdint.h>

#include "tess_comm.h"

/** This rank's rows of a mask of nx columns. Ranks have slabs in the order of their
 *  numbers; a rank may have none. */
typedef struct mask_rows {
    int64_t nx, num_rows;
    uint8_t *pixel; /**< [num_rows][nx] 0 or 1 */
} mask_rows;

/** Clear regions of less than `least` pixels. `*regions` is the number that there were,
 *  `*pruned` that of the cleared ones. A rank sends its first and its last row as runs
 *  of pixels to all. TESS_ERR_ALLOC. Collective. */
tess_status mask_prune(tess_comm *comm, const mask_rows *mask, double least,
                       int64_t *regions, int64_t *pruned);

/** Grow a mask: `steps` times, add the pixels by an edge of it that `within` has.
 * Pixels that `within` has not are taken out first. TESS_ERR_ALLOC. Collective. */
tess_status mask_grow(tess_comm *comm, const mask_rows *mask, const uint8_t *within,
                      int64_t steps);

#endif
