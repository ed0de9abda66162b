/** @file frame_check.h  (private to app/bench/)
 *  How far a convolution may be, and is, from the literal sum.
 */
#ifndef TESS_FRAME_CHECK_H
#define TESS_FRAME_CHECK_H

#include "frame_step.h"

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

#endif
