/** @file study_loops.h  (private to app/bench/gcf/strategies/)
 *  The loops over points and cells of the strategies for comparison. They are compiled
 *  from one source (study_isa.c) for each instruction set, and one set is chosen at run
 *  time.
 */
#ifndef TESS_STUDY_LOOPS_H
#define TESS_STUDY_LOOPS_H

#include "tess_gcf_strategy.h"

/** Functions of one instruction set: of tables by precision, others by [is_double]. */
typedef struct study_table {
    gcf_function *grid_plain[GCF_NUM_PRECISIONS], *degrid_plain[GCF_NUM_PRECISIONS];
    gcf_function *grid_atomic[GCF_NUM_PRECISIONS];
    gcf_function *grid_cube[2]; /**< with taps from a cube */
    /** kernels of a formula, computed; [is_double][with fast functions, in single] */
    gcf_function *grid_computed[2][2], *grid_computed_atomic[2][2];
    gcf_function *degrid_computed[2][2];
} study_table;

extern const study_table study_table_portable;
#if defined(__x86_64__)
extern const study_table study_table_avx2;
extern const study_table study_table_knl;
extern const study_table study_table_avx512;
#endif

/** The table for this processor, see tess_isa_best(). */
const study_table *study_table_best(void);
#endif
