/** @file gcf_plan.h  (private to grid/gcf/)
 *  The factors of a plan's kernels, and the strategy that both strategies of this
 * module run.
 */
#ifndef TESS_GCF_PLAN_H
#define TESS_GCF_PLAN_H

#include "gcf_loops.h"
#include "gcf_table.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The kernel of a plane as Σ_r column_r(x)·row_r(y). Both factors of each term r are
 *  tabulated for all Q offsets. */
typedef struct gcf_factors {
    int rank;                    /**< number of terms; 0: the plane is not factored */
    int skip;                    /**< taps at either end of all lines that are zero and
                                      are left out */
    uint16_t half[GCF_MAX_RANK]; /**< of each term: taps that are this many cells or
                                    more from the middle are zero; S/2 if none is, and
                                      always on a GPU */
    double error; /**< of the sum of products, relative to the kernel's L2 norm */
    void *data; /**< complex [2][rank][Q][gcf_factor_line(S)]: columns, then rows, with
                     zeros around the taps */
} gcf_factors;

/** The number of cells by which footprints of a plane are narrower on each side than
 * the support of its table. */
static inline int gcf_skip(const tess_gcf_plan *plan, int plane)
{
    return plan->factors ? plan->factors[plane].skip : 0;
}

/** Complex values of a line of a factor: its taps and the zeros around them. */
static inline int64_t gcf_factor_line(int support)
{
    return support + 2 * GCF_BLOCK_CELLS;
}

/** How a plan's tiles are made. */
const tess_gcf_tiling *gcf_tiling_of(const tess_gcf_plan *plan);

/** `tiled`, and `factored`, on a CPU. */
gcf_run gcf_run_tiled;

#ifdef __cplusplus
}
#endif
#endif
