/** @file vis_gather.h  (private to io/)
 *  Brings the blocks of all ranks to rank 0, for formats that one rank writes.
 */
#ifndef VIS_GATHER_H
#define VIS_GATHER_H

#include "tess_vis.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What of a block travels beside its row numbers. */
typedef enum vis_carried {
    VIS_CARRY_ALL,
    VIS_CARRY_WEIGHT, /**< `weight` alone */
    VIS_CARRY_VIS     /**< `vis` alone */
} vis_carried;

/** Takes one block on rank 0. The block is the sink's to read until it returns. */
typedef tess_status (*vis_sink)(void *context, const tess_vis_block *block);

/** Hand the blocks of all ranks, those with rows, to `sink` on rank 0 in rank order.
 *  Few are moved at a time, so that rank 0 does not hold the blocks of all ranks at
 *  once. All ranks get a failure when any rank or the sink fails. Collective. */
tess_status vis_gather(tess_comm *comm, const tess_vis_block *block,
                       vis_carried carried, vis_sink sink, void *context);

#ifdef __cplusplus
}
#endif
#endif
