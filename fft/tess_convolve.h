/** @file tess_convolve.h
 *  Two-dimensional transforms of real images that are distributed by rows, for
 *  convolving them with one another. A rank holds rows of images and columns of
 * spectra.
 *
 *  Nothing wraps: an image of nx × ny pixels, a PSF that reaches half of that to each
 *  side, and `reach` pixels more to each side, fit into the padded lengths Lx and Ly,
 *  which have the factors 2, 3, 5 and 7 only. A spectrum has Lx/2 + 1 columns of Ly
 *  complex values; a rank owns consecutive columns of it, about 1/P.
 *
 *  A transform is two passes of one-dimensional transforms, each by one rank as a
 * whole, and one exchange between them in which each rank sends its part once. With
 *  `repeatable` the values do not depend on the number of ranks or threads at all.
 *
 *  A coarser plan is for inverse transforms of the low frequencies of such a spectrum:
 *  the plane is as large, with fewer cells. A rank owns the columns of it that it owns
 *  of the whole spectrum, and says which cells it wants.
 *
 *  Callbacks give and take lines, so that products and sums of spectra need no memory
 * of their own. They are called from several threads, for different lines.
 */
#ifndef TESS_CONVOLVE_H
#define TESS_CONVOLVE_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tess_convolve tess_convolve;

typedef struct tess_convolve_opts {
    int64_t nx, ny;
    int64_t row_first, num_rows; /**< of images on this rank; slabs in rank order */
    int64_t reach;  /**< pixels beyond image and PSF, at each side, see above */
    int coarser;    /**< the plane has cells of so many pixels along both axes, and half
                         its lengths are whole numbers; 0 means 1 */
    int64_t uses;   /**< about how many transforms, to judge FFT planning */
    bool is_double; /**< precision of lines */
    bool repeatable;
    int threads;
} tess_convolve_opts;

/** A line of `row` or of `column`, its number counted from this rank's first one.
 * False: the line is zero, and may be left unfilled. */
typedef bool tess_convolve_give(void *context, int64_t number, void *line);

/** Take a line, which may be changed. */
typedef void tess_convolve_take(void *context, int64_t number, void *line);

/** Check the rows of all ranks, and plan. TESS_ERR_USAGE: they do not cover the image
 * in the order of ranks. TESS_ERR_ALLOC. Collective. */
tess_status tess_convolve_create(tess_comm *comm, const tess_convolve_opts *opts,
                                 tess_convolve **plan);
void tess_convolve_destroy(tess_convolve *plan); /**< NULL is fine. Collective. */

/** A length >= `least` with no prime factor above 7: the fastest up to a sixteenth
 * longer, or else the shortest. Local. */
int64_t tess_convolve_length(int64_t least);

/** Padded lengths of a plan with these options, in its cells. Local. */
void tess_convolve_lengths(const tess_convolve_opts *opts, int64_t *lx, int64_t *ly);

/** This rank's columns of spectra, and their length Ly. Local. */
void tess_convolve_columns(const tess_convolve *plan, int64_t *first, int64_t *count,
                           int64_t *length);

/** Transform an image: `give` fills its rows of nx values in the plan's precision,
 *  `take` gets columns of Ly complex values. `centred`: pixel (⌊nx/2⌋, ⌊ny/2⌋) is the
 *  origin, as in a PSF; else pixel (0, 0) is. Collective. */
tess_status tess_convolve_forward(tess_convolve *plan, bool centred,
                                  tess_convolve_give *give, tess_convolve_take *take,
                                  void *context);

/** Part of the plane that an inverse transform yields: columns [x_first, x_first +
 *  num_x) of it, and this rank's rows [y_first, y_first + num_y); both periodic in the
 *  padded lengths. */
typedef struct tess_convolve_part {
    int64_t x_first, num_x, y_first, num_y;
} tess_convolve_part;

/** The inverse, normalised for the plan's number of cells: `give` fills columns, `take`
 *  gets rows of num_x values. `part` NULL: the image and this rank's rows of it, of a
 *  plan that is not coarser. Collective. */
tess_status tess_convolve_inverse(tess_convolve *plan, const tess_convolve_part *part,
                                  tess_convolve_give *give, tess_convolve_take *take,
                                  void *context);

/** Free memory of exchanges until the next transform. Collective. */
void tess_convolve_rest(tess_convolve *plan);

/** Transforms so far, each direction one, and this rank's seconds in them. Local. */
void tess_convolve_spent(const tess_convolve *plan, double *transforms,
                         double *seconds);

/** Bytes of a plan on a rank that holds `num_rows` rows, without spectra, and bytes of
 * a spectrum over all ranks. Local. */
void tess_convolve_bytes(const tess_convolve_opts *opts, double *plan_bytes,
                         double *spectrum_bytes);

#ifdef __cplusplus
}
#endif
#endif
