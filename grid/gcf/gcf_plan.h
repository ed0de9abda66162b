/** @file gcf_plan.h  (private to grid/gcf/)
 *  A plan: a table, the options, and what a strategy has prepared from them.
 */
#ifndef TESS_GCF_PLAN_H
#define TESS_GCF_PLAN_H

#include "gcf_loops.h"
#include "gcf_table.h"
#include "tess_gcf_grid.h"

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

struct tess_gcf_plan {
    const tess_gcf *gcf;
    tess_gcf_grid_opts opts;
    gcf_factors *factors; /**< [num_planes], of strategy `factored` only */
    void *cube; /**< complex [num_planes][C][C], C = max_support·Q/2 + 1, if the probe
                     `cube` asks for it */
    float
        *single_taps; /**< on a CPU, with opts.single_taps: the table's taps, rounded */
    struct gcf_cuda *cuda; /**< tables and factors on a GPU, or NULL */
    int repeat;            /**< as in tess_gcf_plan_repeat() */
    tess_gcf_meter *meter;
    void *context;
};

/** The taps that the plan uses on a CPU. */
static inline const void *gcf_taps_of(const tess_gcf_plan *plan)
{
    return plan->single_taps ? plan->single_taps : plan->gcf->data;
}

/** The precision of the points, the cells and these taps: GCF_SINGLE, ... */
static inline int gcf_precision(const tess_gcf_plan *plan)
{
    return !plan->gcf->layout.is_double ? GCF_SINGLE
           : plan->single_taps          ? GCF_MIXED
                                        : GCF_DOUBLE;
}

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

#ifdef __cplusplus
}
#endif
#endif
