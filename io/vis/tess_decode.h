/** @file tess_decode.h
 *  Visibilities of UVFITS groups to values of this machine; compiled for each
 *  instruction set (decode_isa.c).
 */
#ifndef TESS_DECODE_H
#define TESS_DECODE_H

#include <stdint.h>

typedef struct decode_table {
    /** `count` triples of big-endian singles, real, imaginary and weight, at any
     *  address: to vis[count][2] and weight[count], a weight ≤ 0 as
     *  TESS_WEIGHT_FLAGGED. */
    void (*triples)(const void *from, int64_t count, float *vis, float *weight);
} decode_table;

/** The table for this processor, see tess_isa_best(). */
const decode_table *decode_table_best(void);

extern const decode_table decode_table_portable;
#if defined(__x86_64__)
extern const decode_table decode_table_avx2;
extern const decode_table decode_table_knl;
extern const decode_table decode_table_avx512;
#endif

#endif
