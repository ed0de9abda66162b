/** @file correct.h  (private to grid/)
 *  The grid correction of an image row; compiled for each instruction set
 *  (correct_isa.c).
 */
#ifndef TESS_CORRECT_H
#define TESS_CORRECT_H

#include "tess_grid.h"

/** Terms of a fit along w (tess_kernel_correction_fit) that matter in double
 *  precision. */
static inline int correct_terms(const double c[TESS_CORRECTION_TERMS])
{
    const double least = 1e-16 * (c[0] < 0 ? -c[0] : c[0]);
    int terms = TESS_CORRECTION_TERMS;
    while (terms > 1 && c[terms - 1] < least && -c[terms - 1] < least)
        --terms;
    return terms;
}

typedef struct correct_table {
    /** As tess_grid_correction_row. */
    void (*row)(const tess_grid_plan *plan, int64_t j, double *out);
} correct_table;

extern const correct_table correct_table_portable;
#if defined(__x86_64__)
extern const correct_table correct_table_avx2;
extern const correct_table correct_table_knl;
extern const correct_table correct_table_avx512;
#endif

#endif
