/** @file gcf_order.h  (private to grid/gcf/)
 *  Sorts the places of points.
 */
#ifndef TESS_GCF_ORDER_H
#define TESS_GCF_ORDER_H

#include "tess_gcf_strategy.h"

/** Bytes of work memory for each place. */
enum { GCF_ORDER_BYTES = 32 };

/** The key that a place is sorted by. */
typedef uint64_t gcf_key(const void *context, const gcf_place *place);

/** Sort places by their keys; places of the same key keep their order. `scratch` has
 *  GCF_ORDER_BYTES for each place. */
void gcf_order(gcf_place *place, int64_t count, gcf_key *key, const void *context,
               void *scratch);
#endif
