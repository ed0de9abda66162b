/** @file pass_cuts.h  (private to app/imager/engine/exchange/)
 *  Cuts the bricks into passes over data if a device must take all samples of a pass at
 *  once.
 */
#ifndef TESS_PASS_CUTS_H
#define TESS_PASS_CUTS_H

#include "imager_passes.h"

/** Replace the passes by those that each rank has room for. fill[num_bricks] is the
 * share of that room which the samples of a brick of `owned` take on this rank.
 * TESS_ERR_ALLOC. Collective. */
tess_status pass_cuts_make(const imager_job *job, const tess_brick_list *owned,
                           const double *fill, imager_passes *passes);

#endif
