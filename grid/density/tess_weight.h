/** @file tess_weight.h
 *  Imaging weights by WSClean's definition: natural, uniform, Briggs.
 *
 *  Each side of the density grid has n = 1.2 (or `padding`) × as many cells as the
 * image has pixels, rounded up, and then up to a multiple of four. `super_weight`
 * divides this; the quotient is rounded, and then up to a multiple of two. The cells
 * measure 1/(n·scale) wavelengths and cover the half plane v ≥ 0; a sample falls into
 * the cell ⌊·⌋ of its (u, v), times `stretch`. With W_c the sum of natural weights in
 * the cell, uniform w' = w / W_c Briggs   w' = w / (1 + W_c f²),  f² = (5·10^−R)² / (Σ
 * W_c² / Σ W_c) (Briggs 1995, eq. 3.18). A taper multiplies the factor of a cell by its
 * value at the cell's corner of least u and v, as in WSClean. Weights are global: cells
 * live in pages of 64 × 64, a rank holds only pages that its own rows touch, and pages
 * are summed at their owners (page number modulo ranks) by sparse exchange. w plays no
 * part.
 */
#ifndef TESS_WEIGHT_H
#define TESS_WEIGHT_H

#include <stdbool.h>

#include "tess_comm.h"
#include "tess_geom.h"
#include "tess_mover.h"

typedef struct tess_samples tess_samples; /* tess_samples.h */

typedef enum tess_weighting { TESS_NATURAL, TESS_UNIFORM, TESS_BRIGGS } tess_weighting;

typedef struct tess_density tess_density;

/** Factors of weights by ρ = √(u² + v²), and by the distance from the edges of the grid
 *  of densities; zeros: none. */
typedef struct tess_taper {
    double fwhm_rad;  /**< of the Gaussian whose transform multiplies the weights */
    double minor_rad; /**< FWHM of its minor axis if it is an ellipse; 0: it is round */
    double angle_rad; /**< of its major axis, from North through East */
    bool at_visibilities; /**< it is that at the visibility, and not at its cell's
                             corner of least u and v */
    double outer_lambda;  /**< weights fall from 1 to 0 over so much up to max_lambda,
                             and are 0 beyond: ½ − ½ cos(π (max − ρ)/outer) */
    double inner_lambda;  /**< weights rise from 0 at min_lambda to 1 over so much */
    bool cuts;            /**< factors of 0 below min_lambda and above max_lambda */
    double min_lambda, max_lambda; /**< max 0: none */
    double edge_lambda;       /**< weights nearer than this to an edge of the grid of
                                 densities are 0 */
    double edge_tukey_lambda; /**< from there inwards they rise to 1 over so much, in u
                                 and in v: the product of both */
} tess_taper;

/** Whether a taper changes nothing. Local. */
bool tess_taper_is_none(const tess_taper *taper);

typedef struct tess_weight_opts {
    tess_weighting weighting;
    double robust;       /**< R of Briggs */
    double rank_filter;  /**< > 0: limit the factor of a cell to this many times the
                              mean of the occupied cells around it, as WSClean's
                              -weighting-rank-filter does */
    int64_t rank_cells;  /**< side of this window in cells, rounded down to an even
                              number; 0: 16 */
    bool first_density;  /**< several weights (Stokes): W_c and f² of the first count
                              for all, as in a run of WSClean, instead of their own.
                              Where the first has no weights, Briggs leaves a weight
                              as it is, and uniform takes it away */
    double quantum;      /**< > 0: natural weights are rounded to multiples of it, and
                              cells are sums of integers: the same in any order. No
                              cell may reach 2^62 of them (tess_density_quantum) */
    double padding;      /**< cells per pixel of each side; 0: 1.2 */
    double super_weight; /**< times as wide a cell; 0: 1 */
    int64_t box_cells;   /**< > 0: W_c is the sum over the square of cells that reaches
                              so many beyond the cell on each side, as CASA's
                              superuniform weights have it. Cells of v < 0 hold
                              conjugates */
    double stretch; /**< (u, v) are multiplied by it before their cell is found; 0: 1 */
    tess_taper taper; /**< natural weights have a density for its sake */
} tess_weight_opts;

/** The smallest quantum, a power of two, for sums of `num_vis` weights up to `largest`:
 * 2e-19 of their largest possible sum. */
double tess_density_quantum(double largest, int64_t num_vis);

/** An empty density of samples with `num_weight` weights each. Local. */
tess_status tess_density_create(const tess_geom *geom, const tess_weight_opts *opts,
                                int num_weight, tess_density **density);
void tess_density_destroy(tess_density *density); /**< NULL is fine */

/** Add the natural weights of rows [row_first, row_end); of samples in the memory of a
 *  backend all of them. Local. */
tess_status tess_density_add(tess_density *density, const tess_samples *samples,
                             int64_t row_first, int64_t row_end, int num_threads);

/** Sum over ranks and turn each cell a rank touched into the factor of its samples'
 *  weights. Collective, once. */
tess_status tess_density_finish(tess_density *density, tess_comm *comm,
                                int num_threads);

/** Turn natural weights of rows [row_first, row_end) into imaging weights, in place; of
 *  samples in the memory of a backend all of them, which alone can fail. Local, after
 *  tess_density_finish. */
tess_status tess_density_apply(const tess_density *density, tess_samples *samples,
                               int64_t row_first, int64_t row_end, int num_threads);

/** Have the cell at (u, v) sum up what other ranks have there, although samples of this
 *  rank may not be in it; before tess_density_finish. TESS_ERR_ALLOC. Local; several
 *  threads may call. */
tess_status tess_density_reach(tess_density *density, double u_lambda, double v_lambda);

/** Factor of the weight `which` of a sample at (u, v), of whose cell this rank has had
 *  a sample, or which it has reached; 0 outside the grid. Local, after
 *  tess_density_finish. */
double tess_density_factor(const tess_density *density, int which, double u_lambda,
                           double v_lambda);

/** Bytes of the pages of a density with samples everywhere. Local. */
int64_t tess_density_most_bytes(const tess_density *density);

/** Σ W²/w over the samples of all ranks that have a weight `which`, with natural
 * weights w and imaging weights W: Σ W_c (factor of c)² over the cells. Where weights
 * are 1/σ², it is the variance of Σ W Re V. NAN before tess_density_finish, and for
 * weights that the density is not made of (first_density), and for densities of
 *  squares (box_cells). Local. */
double tess_density_variance(const tess_density *density, int which);

/** Whether tess_density_finish has been at it. Local. */
bool tess_density_is_finished(const tess_density *density);

/** Write the density as it is, or have it become what was written of one with the same
 *  options and number of ranks. TESS_ERR_ALLOC, and the mover's errors. Local. */
tess_status tess_density_move(tess_density *density, tess_mover *mover);

/** Bytes that this writes. Local. */
int64_t tess_density_bytes(const tess_density *density);

#endif
