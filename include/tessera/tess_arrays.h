/** @file tess_arrays.h
 *  Gridding of arrays in memory: visibilities to a dirty image, and back.
 *
 *      D(i,j) = Σ_k w_k Re{V_k exp(−2πi(u l + v m + w(n−1)))} [/ n]    vis_to_dirty
 *
 *      V_k = w_k Σ_ij D(i,j) [/ n] exp(+2πi(u l + v m + w(n−1)))       dirty_to_vis
 *
 *  with k over rows and channels, u = uvw[row]·freq[chan]/c, n = √(1−l²−m²) and
 *
 *      l(i) = center_l + (i − ⌊nx/2⌋)·step_l,    m(j) = center_m + (j − ⌊ny/2⌋)·step_m.
 *
 *  Steps may be negative (East to the left has step_l < 0) and need not be equal; the
 *  image need not contain l = m = 0. Image sizes may be of any parity. Pixels beyond
 *  the horizon are 0. The two are adjoints: Σ_k Re(V_k* P(x)_k) = Σ D(V)_ij x_ij.
 *
 *  Arrays belong to the caller. Steps between elements are in bytes, as in numpy, and
 *  may have any size and sign; addresses need no alignment beyond that of the element.
 *  `vis` is used in place when its channels and rows follow one another without gaps
 *  (step_chan = size of an element, step_row = num_chan·step_chan) and no change of
 *  precision is asked for; `weight` is used in place under the same conditions when
 *  there is no mask. Otherwise the call makes a copy of its own.
 *
 *  Memory of a call, beside the arrays given: the copies above (8 or 16 bytes a
 *  visibility and 4 or 8 a weight; weights always when there is a mask), 40 bytes a
 *  row, positions among them, and up to 80 a run of neighbouring channels in one tile,
 *  the occupied tiles of W + 8 w-planes, one plane's occupied lines cropped to the
 *  image, and one image.
 */
#ifndef TESS_ARRAYS_H
#define TESS_ARRAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tess_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Image geometry, accuracy and resources. Start with tess_array_opts_default(). */
typedef struct tess_array_opts {
    int64_t nx, ny;            /**< image size [pixels] */
    double step_l, step_m;     /**< pixel size with sign [direction cosines] */
    double center_l, center_m; /**< of pixel (⌊nx/2⌋, ⌊ny/2⌋), default 0 */
    double accuracy; /**< ε: relative L2 error of the image, and of the visibilities of
                          any pixel; default 1e-4; from 1e-2 to 1e-12, in single
                          precision to 1e-5. An image of N pixels whose visibilities
                          cancel is relative to √(N Σ|W V|²)/ΣW, if that is more than
                          its norm */
    bool do_w;       /**< false: w is taken as 0 and n as 1; default true */
    bool negate_w;   /**< use −w */
    bool divide_by_n; /**< default false */
    bool double_grid; /**< single-precision data are gridded and transformed in
                           double precision */
    double padding_min,
        padding_max; /**< allowed grid size over image size; 0: chosen */
    int threads;     /**< 0: OMP_NUM_THREADS, or the cores of the allocation */
} tess_array_opts;

/** Visibilities and where they were measured. */
typedef struct tess_array_vis {
    bool is_double; /**< precision of vis and weight */
    int64_t num_rows, num_chan;
    const double *uvw; /**< [num_rows][3] metres */
    int64_t uvw_step_row, uvw_step_axis;
    const double *freq; /**< [num_chan] Hz, > 0 */
    int64_t freq_step;
    void *vis; /**< [num_rows][num_chan] complex; only dirty_to_vis writes */
    int64_t vis_step_row, vis_step_chan;
    const void *weight; /**< [num_rows][num_chan] real, or NULL: all 1 */
    int64_t weight_step_row, weight_step_chan;
    const uint8_t *mask; /**< [num_rows][num_chan], 0: visibility is left out (and
                              predicted as 0); or NULL */
    int64_t mask_step_row, mask_step_chan;
} tess_array_vis;

/** Real pixels (i, j) at data + i·step_x + j·step_y. */
typedef struct tess_array_image {
    bool is_double;
    void *data;
    int64_t step_x, step_y;
} tess_array_image;

/** What a call did; seconds by stage. */
typedef struct tess_array_report {
    int64_t num_vis;        /**< used: not masked, weight not 0 */
    int64_t grid_u, grid_v; /**< cells; u and v as the image's fast and slow axis ask */
    int num_planes, support, threads;
    bool double_grid;
    double error_estimate;    /**< relative L2 error expected */
    double rounding_estimate; /**< the part of it that rounding has */
    double grid_utilisation;  /**< busy share of the threads in grid_s */
    double prepare_s;         /**< checks, copies */
    double plan_s;            /**< choice of kernel and grid, FFT plans */
    double sort_s;            /**< sorting to tiles */
    double grid_s;            /**< gridding or degridding */
    double join_s;            /**< tile sums to and from lines of planes */
    double fft_s;             /**< FFT and w-screens */
    double correct_s; /**< grid correction, image to or from the caller's array */
    double total_s;
    int64_t peak_bytes; /**< largest resident size of the process so far */
    char plan[512];     /**< in words */
} tess_array_report;

TESS_API void tess_array_opts_default(tess_array_opts *opts);

/** Make the dirty image of visibilities. `report` may be NULL. Without rows, channels
 *  or used visibilities the image is 0.
 *
 *  Errors: TESS_ERR_USAGE (sizes, steps or accuracy out of range, or an accuracy that
 *  is not reached within the paddings), TESS_ERR_INPUT (a position, frequency, or a
 *  value or weight that is used is not finite: the message names it),
 *  TESS_ERR_ALLOC. */
TESS_API tess_status tess_vis_to_dirty(const tess_array_opts *opts,
                                       const tess_array_vis *vis,
                                       const tess_array_image *dirty,
                                       tess_array_report *report);

/** Predict all visibilities of an image and write them to vis->vis. A NaN pixel is an
 *  error. The other errors are those of tess_vis_to_dirty(). */
TESS_API tess_status tess_dirty_to_vis(const tess_array_opts *opts,
                                       const tess_array_image *dirty,
                                       const tess_array_vis *vis,
                                       tess_array_report *report);

#ifdef __cplusplus
}
#endif
#endif
