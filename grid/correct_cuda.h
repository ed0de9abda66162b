/** @file correct_cuda.h  (private to grid/)
 *  The grid correction in device memory: correct_cuda.cu, or
 *  tests/emulated/correct_emulated.c.
 */
#ifndef TESS_CORRECT_CUDA_H
#define TESS_CORRECT_CUDA_H

#include "tess_grid.h"

#ifdef __cplusplus
extern "C" {
#endif

/** tess_grid_ops.correct; waits. TESS_ERR_ALLOC, TESS_ERR_RESOURCE. Local. */
tess_status correct_cuda(const tess_grid_plan *plan, double factor, bool is_model,
                         int64_t row_first, int64_t num_rows, void *rows,
                         int64_t *num_bad);

#ifdef __cplusplus
}
#endif
#endif
