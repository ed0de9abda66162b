/** @file gcf_factor.h  (private to grid/gcf/)
 *  Writes the kernels of a plan as sums of products of one-dimensional factors.
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

#ifdef __cplusplus
}
#endif
#endif
