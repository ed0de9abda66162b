/** @file gcf_factored.h  (private to grid/gcf/)
 *  Grids and degrids the points of one tile with factored kernels.
 */
#ifndef TESS_GCF_FACTORED_H
#define TESS_GCF_FACTORED_H

#include "gcf_plan.h"

/** Grid or degrid points of a tile whose planes are all factored. The first cell of
 *  job->cells is (job->u0, job->v0). `work` has gcf_factored_work_bytes(). */
void gcf_factored_grid(const tess_gcf_plan *plan, const gcf_job *job, void *work);
void gcf_factored_degrid(const tess_gcf_plan *plan, const gcf_job *job);

/** Bytes of work memory for a tile of this many lines and cells. */
int64_t gcf_factored_work_bytes(const tess_gcf_plan *plan, int64_t lines,
                                int64_t cells);

/** Whether points are best added to the grid itself: a buffer of the tile is worth its
 *  time only where there are many products. */
bool gcf_factored_direct(const tess_gcf_plan *plan, const gcf_place *place,
                         int64_t count);
#endif
