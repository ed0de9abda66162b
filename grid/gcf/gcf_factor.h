/** @file gcf_factor.h  (private to grid/gcf/)
 *  Writes the kernels of a plan as sums of products of one-dimensional factors
 *  (gcf_factor.c), and grids and degrids the points of a tile with them
 *  (gcf_factored.c).
 */
#ifndef TESS_GCF_FACTOR_H
#define TESS_GCF_FACTOR_H

#include "gcf_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Factor the kernels of all planes, in parallel. TESS_ERR_ALLOC. */
tess_status gcf_factor_planes(tess_gcf_plan *plan);

/** A factor of the first term of a plane, for one offset, at its first tap. `which` is
 * 0 for the column and 1 for the row. The next term is Q lines further. */
const void *gcf_factor_at(const tess_gcf_plan *plan, int plane, int which, int offset);

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

#ifdef __cplusplus
}
#endif
#endif
