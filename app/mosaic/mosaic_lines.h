/** @file mosaic_lines.h  (private to app/mosaic/)
 *  The inner loops of a mosaic, compiled for several instruction sets: values of an
 *  image and of its beam at places between pixels.
 */
#ifndef TESS_MOSAIC_LINES_H
#define TESS_MOSAIC_LINES_H

#include <stdbool.h>
#include <stdint.h>

/** Lanczos' kernel has this many lobes to each side, and as many weights for an axis
 * as a vector has lanes, of which the last two are 0. */
enum { MOSAIC_LOBES = 3, MOSAIC_TAPS = 2 * MOSAIC_LOBES, MOSAIC_LANES = 8 };

/** The weights are tabulated at this many steps of a pixel, and interpolated linearly.
 *  The second derivative of sinc(x) sinc(x/3) is at most (π²/3)(1 + 1/9) = 3.66, so
 *  that a weight is wrong by at most 3.66 / 8 / 2048² = 1.1e-7, about the rounding of
 *  single precision. The magnitudes of six weights add up to at most 1.55, so that the
 *  errors of six along both axes change a value by at most 2 × 6 × 1.55 × 1.1e-7 =
 *  2e-6 of the largest pixel that it is made of. */
enum { MOSAIC_STEPS = 2048 };

/** A whole number of pixels is read at a time; so many beyond the last one of a strip
 * have to be there. Their values do not matter. */
enum { MOSAIC_BEYOND = MOSAIC_LANES };

/** The weights of pixels −2 to 3 from the one below a place. */
typedef struct mosaic_weights {
    float single[MOSAIC_STEPS + 1][MOSAIC_LANES];
    double both[MOSAIC_STEPS + 1][MOSAIC_LANES];
} mosaic_weights;

/** Places on an image, of at most MOSAIC_LINE pixels of a row of the mosaic, and what
 * is found there. */
enum { MOSAIC_LINE = 64 };
typedef struct mosaic_line {
    const void *image, *beam; /**< [num_rows][nx] and MOSAIC_BEYOND; borrowed */
    int64_t nx, num_rows;
    int count;
    double x[MOSAIC_LINE], y[MOSAIC_LINE]; /**< NaN: nowhere */
    double value[MOSAIC_LINE]; /**< NaN where a pixel that it is made of is NaN or
                                    outside of the strip */
    double power[MOSAIC_LINE]; /**< of the beam, from 2 × 2 pixels; the same */
} mosaic_line;

/** Finds the values of a line, from 2 × 2 pixels where `weights` is NULL. Local. */
typedef void mosaic_line_fill(const mosaic_weights *weights, mosaic_line *line);

typedef struct mosaic_loops {
    mosaic_line_fill *fill[2]; /**< of single and of double precision */
} mosaic_loops;

/** The loops for this processor. Local. */
const mosaic_loops *mosaic_loops_best(void);

extern const mosaic_loops mosaic_loops_portable;
#if defined(__x86_64__)
extern const mosaic_loops mosaic_loops_avx2;
extern const mosaic_loops mosaic_loops_knl;
extern const mosaic_loops mosaic_loops_avx512;
#endif

#endif
