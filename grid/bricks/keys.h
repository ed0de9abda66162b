/** @file keys.h  (private to grid/)
 *  Brick keys of the channels of a row; compiled for each instruction set (keys_isa.c).
 */
#ifndef TESS_KEYS_H
#define TESS_KEYS_H

#include "locate.h"

typedef struct key_table {
    /** key[k] := key of the brick in which the footprint at inv_lambda[k] starts, for
     *  k < count. Keys are whole numbers below 2^53. All instruction sets agree. */
    void (*row)(const tess_grid_plan *plan, const tess_row_scale *row,
                const double *inv_lambda, int count, double *key);
} key_table;

/** The table for this processor, see tess_isa_best(). */
const key_table *key_table_best(void);

extern const key_table key_table_portable;
#if defined(__x86_64__)
extern const key_table key_table_avx2;
extern const key_table key_table_knl;
extern const key_table key_table_avx512;
#endif

#endif
