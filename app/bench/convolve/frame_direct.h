/** @file frame_direct.h  (private to app/bench/)
 *  Sums in the image that take rows by pointers and columns without wrapping.
 *  frame_loops_isa.c has the loops, compiled for each instruction set.
 */
#ifndef TESS_FRAME_DIRECT_H
#define TESS_FRAME_DIRECT_H

#include "frame_step.h"

/** Rows of the result that the loops make together. */
enum { FRAME_ROWS = 4 };

/** Loops over pixels of which no footprint wraps. line[t] is the row of the frame that
 *  belongs to row t of the PSF, from the leftmost column of the first pixel's
 *  footprint. */
typedef struct frame_loops {
    /** out[count] of one row: line[ky], psf[ky][kx]. */
    void (*row)(const frame_shape *shape, const float *psf, const float *const *line,
                int64_t count, float *out);
    /** out[FRAME_ROWS][stride] of rows that follow one another: line[ky + FRAME_ROWS −
     * 1], spread[ky + FRAME_ROWS − 1][kx][FRAME_ROWS], where spread[t][i][r] is psf[t −
     * r][i], or 0 outside. */
    void (*rows)(const frame_shape *shape, const float *spread,
                 const float *const *line, int64_t count, float *out, int64_t stride);
} frame_loops;

extern const frame_loops frame_table_portable;
#if defined(__x86_64__)
extern const frame_loops frame_table_avx2;
extern const frame_loops frame_table_knl;
extern const frame_loops frame_table_avx512;
#endif

#endif
