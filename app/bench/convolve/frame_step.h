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

#ifdef __cplusplus
}
#endif
#endif
