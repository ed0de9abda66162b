/** @file tess_gcf.h
 *  Tables of gridding convolution functions (GCF) for w-projection (Cornwell, Golap &
 *  Bhatnagar 2008, arXiv:0807.4161).
 *
 *  A grid of `field` direction cosines along each axis (cells × pixel size, so that one
 *  cell is 1/field wavelengths) takes a visibility at grid coordinates (a, b) [cells]
 *  and w [wavelengths] as V·G_w(x − a, y − b) on the cells (x, y) around it, and gives
 *  it back as the sum of conj(G_w)·grid:
 *
 *      G_w(x,y) = ∫∫ T(p) T(q) exp(−2πi w (n(l,m) − 1)) exp(2πi (x p + y q)) dp dq
 *
 *  over |p|, |q| ≤ 1, l = p·field_l, m = q·field_m, n − 1 as in tess_geom.h, nothing
 *  beyond the horizon. T is the transform of the gridding kernel of tess_kernel.h,
 *  which suppresses aliases; the image made from such a grid is divided by T(p)·T(q).
 *  The field of the grid ends at |p| = ½, where T is still large. If the integral ended
 *  there, G would have the slowly falling tails of a step.
 *
 *  G is even in x and in y, and G_{−w} = conj(G_w). A table therefore holds only planes
 *  of w ≥ 0 and, along each axis, only the first half of the `oversampling` offsets Q
 *  that a visibility may have in its cell. For every plane and pair of offsets the taps
 *  are stored as [S][S] with the second axis contiguous; S is the plane's support. The
 *  taps of an offset o > Q/2 are those of offset Q − o, read backwards.
 *
 *  Functions of a user that are not even (is_uneven) are tabulated at all offsets from
 *  0 to Q. For w < 0 the taps of offset Q − o are read backwards along both axes:
 *  G_{−w}(x,y) = conj(G_w(−x,−y)), which holds for functions whose image is real apart
 *  from the phase of w.
 */
#ifndef TESS_GCF_H
#define TESS_GCF_H

#include <stdbool.h>
#include <stddef.h>
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

/** What all tables have, whatever kernels they hold. */
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

/** A table. It is constant once it has been made. */
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
 *  one thread; taper of 6 cells for padding 2, cut 1e-3, supports 8 to 512, found;
 *  fields 0, to be set. */
void tess_gcf_opts_default(tess_gcf_opts *opts);

/** Compute w-kernels by one Fourier transform for each plane, planes in parallel.
 * TESS_ERR_USAGE for options outside of their limits, TESS_ERR_ALLOC. `*gcf` belongs to
 *  the caller; free it with tess_gcf_destroy(). Local. */
tess_status tess_gcf_create(const tess_gcf_opts *opts, tess_gcf **gcf);

/** The same, with a cache: a table that was made before is read from the folder of
 *  tess_cache.h, and a new one is written there. The file's name stands for all members
 *  of `opts` except threads. A damaged file, or a folder that cannot be written, is no
 *  error. Tables whose supports are given are always computed. Local. */
tess_status tess_gcf_create_cached(const tess_gcf_opts *opts, tess_gcf **gcf,
                                   bool *was_cached);

/** The value of a user's kernel at (x, y) [cells]. It is even in x and y unless the
 *  layout is uneven.
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

/** NULL is fine. */
void tess_gcf_destroy(tess_gcf *gcf);

/** The index of the plane that serves w. */
int tess_gcf_plane_of(const tess_gcf *gcf, double w_lambda);

/** G of a plane at whole numbers (x, y) of 1/Q cell, |x|, |y| ≤ S·Q/2. */
void tess_gcf_value(const tess_gcf *gcf, int plane, int x, int y, double value[2]);

/** T at p[count]. The grid correction is 1/T. */
void tess_gcf_taper(int taper_support, double padding, int64_t count, const double *p,
                    double *taper);

/** Bytes of the taps. */
int64_t tess_gcf_bytes(const tess_gcf *gcf);

/** Bytes of a tap, a visibility or a cell. */
static inline size_t gcf_value_bytes(const tess_gcf *gcf)
{
    return gcf->layout.is_double ? 2 * sizeof(double) : 2 * sizeof(float);
}

/** First complex value of the taps of a pair of offsets below half_offsets. */
static inline int64_t gcf_table_offset(const tess_gcf *gcf, int plane, int offset_u,
                                       int offset_v)
{
    const tess_gcf_plane *of = &gcf->plane[plane];
    return of->offset + ((int64_t)offset_u * gcf->half_offsets + offset_v) *
                            of->support * of->support;
}

#ifdef __cplusplus
}
#endif
#endif
