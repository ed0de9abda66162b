/** @file frame_step.h  (private to app/bench/)
 *  A way to convolve frames of one size with one PSF: create, execute, destroy.
 *  tess_bench_convolve.h says what is computed.
 */
#ifndef TESS_FRAME_STEP_H
#define TESS_FRAME_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A frame float [ny][nx] and a PSF float [ky][kx], of which kx ≤ nx and ky ≤ ny. */
typedef struct frame_shape {
    int64_t nx, ny, kx, ky;
} frame_shape;

/** What a step keeps from frame to frame. */
typedef struct frame_plan frame_plan;

typedef struct frame_step {
    const char *name, *what;
    bool threaded;  /**< works with several threads */
    bool transform; /**< not a sum in the image: its rounding errors spread */
    /** `psf` is copied, and is in host memory. TESS_ERR_ALLOC, TESS_ERR_RESOURCE. */
    tess_status (*create)(const frame_shape *shape, const float *psf, int threads,
                          frame_plan **plan);
    /** out[ny][nx] := the convolution. On a GPU it is of the frame that was uploaded,
     * and is downloaded: neither argument is read. */
    tess_status (*execute)(frame_plan *plan, const float *frame, float *out);
    void (*destroy)(frame_plan *plan); /**< NULL is fine */
    /** Copies of a GPU's step, which wait for them; NULL on the processor. */
    tess_status (*upload)(frame_plan *plan, const float *frame);
    tess_status (*download)(frame_plan *plan, float *out);
} frame_step;

extern const frame_step frame_step_literal, frame_step_lines, frame_step_simd,
    frame_step_blocks, frame_step_fft;

/** The k-th step on a GPU, NULL past the last one; a build without has none. */
const frame_step *frame_device_step(int k);

/** `at` within [0, n), one period away at most. */
static inline int64_t frame_wrap(int64_t at, int64_t n)
{
    return at < 0 ? at + n : at >= n ? at - n : at;
}

/* ---- frame_check.c ---- */

/** How far a step's result lies from the literal one, and the bound that rounding
 *  explains. Both are the largest of a pixel / (Σ|psf| max|frame|) or, if the step
 *  transforms, the rms of all pixels / (Σ|psf| rms(frame)). */
typedef struct frame_error {
    double difference, bound;
} frame_error;

/** Compare a step's result `out` with the literal one.
 *
 *  A sum of K products is off by at most γ_K Σ|products|, γ_n = n u/(1 − n u) with
 *  u = 2⁻²⁴ (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., eq. 3.4):
 *  two of them differ by 2 γ_K. A transform of N values is off by log2 N · 6.7 u in the
 *  2-norm (Higham, theorem 24.2, with roots of unity to u), so three of them and a
 * product by 3 log2 N · 6.7 u + 4 u, of the norm of the frame extended to both sides.
 */
frame_error frame_compare(const frame_step *step, const frame_shape *shape,
                          const float *psf, const float *frame, const float *literal,
                          const float *out);

/* ---- frame_loops_isa.c ---- */

/** Rows of the result that the loops make together. */
enum { FRAME_ROWS = 4 };

/** Loops that take rows by pointers, over pixels of which no footprint wraps. line[t]
 * is the row of the frame that belongs to row t of the PSF, from the leftmost column of
 * the first pixel's footprint. */
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

#ifdef __cplusplus
}
#endif
#endif
