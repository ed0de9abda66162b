/** @file tess_fft.h
 *  One-dimensional transforms of many lines, by FFTW. Measured plans of single
 *  lines, with lines and groups of columns copied through cache, beat FFTW's own plans
 *  for planes by a factor of three and take seconds instead of minutes to measure. Out
 *  of place, they beat those in place by up to a factor of 1.9.
 */
#ifndef TESS_FFT_H
#define TESS_FFT_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

typedef struct tess_fft tess_fft;

/** Plan for transforms of `length` complex values, forward (sign −1) or backward (+1),
 *  unnormalised. `lines`: how many will be transformed, which decides whether measuring
 *  pays; 0: always the same plan, whatever was measured before. Wisdom is kept in the
 *  cache (tess_cache.h); a folder that cannot be written is no error. Local. */
tess_status tess_fft_create(int64_t length, bool forward, bool is_double, int64_t lines,
                            tess_fft **fft);

/** The same for `length` real values, which are transformed to length/2 + 1 complex
 * ones (forward), or made from those (backward). Local. */
tess_status tess_fft_create_real(int64_t length, bool forward, bool is_double,
                                 int64_t lines, tess_fft **fft);

/** Transform `line` to `out`, which must not overlap; both aligned to 64 bytes. What is
 *  left in `line` is undefined. Thread-safe. */
void tess_fft_execute(const tess_fft *fft, void *line, void *out);

void tess_fft_destroy(tess_fft *fft); /**< NULL is fine */

/** Whoever makes or frees plans of FFTW by itself holds this lock: its planner takes
 * one thread at a time. Local. */
void tess_fft_lock_planner(void);
void tess_fft_unlock_planner(void);

#endif
