/** @file tess_gcf.h
 *  Tables of gridding convolution functions (GCF) for w-projection (Cornwell, Golap &
 *  Bhatnagar 2008, arXiv:0807.4161).
 *
 *  A grid of `field` direction cosines along each axis (cells × pixel size, so that one
 *  cell is 1/field wavelengths) takes a visibility at grid coordinates (a, b) [cells]
 * and w [wavelengths] as V·G_w(x − a, y − b) on the cells (x, y) around it, and gives
 * it back as the sum of conj(G_w)·grid:
 *
 *      G_w(x,y) = ∫∫ T(p) T(q) exp(−2πi w (n(l,m) − 1)) exp(2πi (x p + y q)) dp dq
 *
 *  over |p|, |q| ≤ 1, l = p·field_l, m = q·field_m, n − 1 as in tess_geom.h, nothing
 *  beyond the horizon. T is the transform of the gridding kernel of tess_kernel.h,
 * which keeps aliases out; the image made from such a grid is divided by T(p)·T(q). The
 * grid's own field ends at |p| = ½, where T has not yet fallen: cut off there, G would
 * have the tails of a step.
 *
 *  G is even in x and in y, and G_{−w} = conj(G_w): a table holds w ≥ 0 only, and of
 * the `oversampling` offsets of a visibility in its cell, along each axis, those up to
 * the middle. For every plane and pair of offsets the taps lie one after another,
 * [S][S] with the second axis contiguous, S being the plane's support. What is asked
 * beyond that is the mirror image: offset o > Q/2 is offset Q − o read backwards.
 *
 *  Functions of a user's that are not even (is_uneven) are tabulated at all offsets
 * from 0 to Q, and for w < 0 read backwards along both axes, from offset Q − o:
 *  G_{−w}(x,y) = conj(G_w(−x,−y)), as those have whose response is real but for w.
 */
#ifndef TESS_GCF_H
#define TESS_GCF_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TESS_GCF_STEP = 8,           /**< supports are multiples of this: whole vectors */
    TESS_GCF_MAX_SUPPORT = 1024, /**< [cells] */
    TESS_GCF_MAX_OVERSAMPLING = 64,
    TESS_GCF_MAX_UNEVEN = 62, /**< offsets of a cell, of kernels that are not even */
    TESS_GCF_MAX_PLANES = 4096
};

typedef enum tess_gcf_spacing {
    TESS_GCF_SQRT,  /**< plane = round(√(|w|·scale)): as fine as kernels change */
    TESS_GCF_LINEAR /**< plane = round(|w|·scale) */
} tess_gcf_spacing;

/** What a table has in common, whoever fills it. */
typedef struct tess_gcf_layout {
    int num_planes;      /**< of w; the last one lies at w_max */
    double w_max_lambda; /**< ≥ 0; larger |w| are taken for it */
    tess_gcf_spacing spacing;
    int oversampling; /**< Q, offsets per cell, from 1 */
    bool is_uneven;   /**< kernels of a user's that are not even in x and y: tables of
                           all Q + 1 offsets, Q up to TESS_GCF_MAX_UNEVEN, of which no
                           plane is factored */
    bool is_double;   /**< precision of taps, visibilities and grids */
    int threads;
} tess_gcf_layout;

/** W-kernels. */
typedef struct tess_gcf_opts {
    tess_gcf_layout layout;
    double field_l, field_m;      /**< of the whole grid [direction cosines] */
    int taper_support;            /**< of the kernel behind T [cells] */
    double padding;               /**< grid over image, which T is made for */
    double cut;                   /**< a plane's support ends where |G| stays below
                                       cut × its maximum */
    int min_support, max_support; /**< and is at least and at most this [cells]; equal
                                       ones make all planes alike */
    const int *support;           /**< [num_planes] instead of all that: multiples of
                                       TESS_GCF_STEP [cells]; NULL: found by the cut */
} tess_gcf_opts;

typedef struct tess_gcf_plane {
    double w_lambda;
    int support;    /**< S [cells], a multiple of TESS_GCF_STEP */
    bool is_cut;    /**< max_support cut it above opts->cut */
    int64_t offset; /**< of its taps in data [complex values] */
} tess_gcf_plane;

/** Kernels that may be computed instead of read (strategy computed), of the form that
 *  studies of degridding used: at r = √(x² + y²) [cells] and its plane's w
 *
 *      G = exp(log_peak − decay·r) · exp(2πi w (1 − √(1 − (step·r)²)))
 *
 *  times exp(2πi·turns·r²) and 1 + ½ sin(2π·ripple·r), where these are not 0. */
typedef struct tess_gcf_formula {
    double log_peak, decay; /**< decay [1/cell] */
    double step; /**< [direction cosine a cell]; |step·r| < 1 in a footprint */
    double turns, ripple; /**< an extra phase [1/cell²], an extra sine [1/cell] */
} tess_gcf_formula;

/** Written by create, then constant. */
typedef struct tess_gcf {
    tess_gcf_layout layout;
    double scale;             /**< planes as a function of w, see tess_gcf_spacing */
    tess_gcf_plane *plane;    /**< [num_planes] */
    int max_support;          /**< of the planes */
    int half_offsets;         /**< Q/2 + 1 tables along each axis; uneven: Q + 1 */
    int64_t num_values;       /**< of data */
    bool is_formula;          /**< made by tess_gcf_create_formula(), from … */
    tess_gcf_formula formula; /**< … this */
    void *data;               /**< complex, [plane][half_offsets][half_offsets][S][S] */
} tess_gcf;

/** One plane of 32 wavelengths' w_max, spacing sqrt, oversampling 8, single precision,
 * one thread; taper of 6 cells for padding 2, cut 1e-3, supports 8 to 512, found;
 * fields 0, to be set. */
void tess_gcf_opts_default(tess_gcf_opts *opts);

/** Compute w-kernels by one transform a plane, planes in parallel. TESS_ERR_USAGE for
 *  options outside of their limits, TESS_ERR_ALLOC. `*gcf` is the caller's; end with
 *  tess_gcf_destroy(). Local. */
tess_status tess_gcf_create(const tess_gcf_opts *opts, tess_gcf **gcf);

/** As tess_gcf_create(), from the folder of tess_cache.h if it was made before, else
 *  kept there: under a name that stands for everything in `opts` but threads. A file
 *  that is damaged, and a folder that cannot be written, do no harm. Tables of given
 *  supports are computed each time. Local. */
tess_status tess_gcf_create_cached(const tess_gcf_opts *opts, tess_gcf **gcf,
                                   bool *was_cached);

/** Value of a user's kernel, even in x and y [cells] unless the layout says otherwise.
 */
typedef void tess_gcf_function(const void *context, int plane, double x, double y,
                               double value[2]);

/** A table of any kernels, support[num_planes] multiples of TESS_GCF_STEP. Errors as of
 *  tess_gcf_create(). Local. */
tess_status tess_gcf_create_from(const tess_gcf_layout *layout, const int *support,
                                 tess_gcf_function *function, const void *context,
                                 tess_gcf **gcf);

/** A table of kernels of a formula; also TESS_ERR_USAGE where step·r reaches 1. */
tess_status tess_gcf_create_formula(const tess_gcf_layout *layout, const int *support,
                                    const tess_gcf_formula *formula, tess_gcf **gcf);

/** Scale the kernels so that the taps of each plane and pair of offsets sum to 1: a
 *  grid of ones is then read off as ones. Kernels of a formula are a table's
 *  afterwards. TESS_ERR_USAGE where a sum is 0. */
tess_status tess_gcf_normalise(tess_gcf *gcf);

/** NULL is fine. */
void tess_gcf_destroy(tess_gcf *gcf);

/** Plane that |w| is taken from. */
int tess_gcf_plane_of(const tess_gcf *gcf, double w_lambda);

/** G of a plane at whole numbers (x, y) of 1/Q cell, |x|, |y| ≤ S·Q/2. */
void tess_gcf_value(const tess_gcf *gcf, int plane, int x, int y, double value[2]);

/** T at p[count], the grid correction being 1/T. */
void tess_gcf_taper(int taper_support, double padding, int64_t count, const double *p,
                    double *taper);

/** Bytes of the taps, and of a cube of all planes, offsets and the largest support,
 * which tables are often kept as. */
int64_t tess_gcf_bytes(const tess_gcf *gcf);
int64_t tess_gcf_cube_bytes(const tess_gcf *gcf);

#ifdef __cplusplus
}
#endif
#endif
