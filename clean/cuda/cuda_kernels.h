/** @file cuda_kernels.h  (private to clean/)
 *  What the cuda backend does on the device: a function for each pass over images or
 *  spectra, which is enqueued in tess_device_stream(). All arrays are in device memory
 *  unless the function says otherwise. Images are [ny][nx], planes [ly][lx] and spectra
 *  [ly][half] (complex), in the shape's precision.
 *
 *  All functions are Local, and return TESS_ERR_RESOURCE when the device reports an
 *  error.
 */
#ifndef TESS_CLEAN_CUDA_KERNELS_H
#define TESS_CLEAN_CUDA_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_shape {
    int64_t nx, ny;       /**< of images */
    int64_t lx, ly, half; /**< of planes and spectra; half = lx/2 + 1 */
    bool is_double;
} cuda_shape;

/** Rows of the caller: one pixel for each of an image. */
typedef struct cuda_pixels {
    void *value;
    int bytes; /**< of a pixel: double, float, or uint8_t of a mask */
} cuda_pixels;

/* ---- images (cuda_pixels.cu) ---- */

/** image += weight · pixels, where NaN counts as 0; is_nan := 1 at pixels that are
 * NaN, and stays elsewhere. */
tess_status cuda_take(const cuda_shape *shape, const cuda_pixels *from, double weight,
                      void *image, uint8_t *is_nan);

/** allowed := the mask (value NULL: everywhere) without pixels that are NaN. */
tess_status cuda_allow(const cuda_shape *shape, const cuda_pixels *mask,
                       const uint8_t *is_nan, uint8_t *allowed);

/** pixels := image, but for NaN of pixels that have is_nan. */
tess_status cuda_put(const cuda_shape *shape, const void *image, const uint8_t *is_nan,
                     const cuda_pixels *to);

/** pixels −= the plane, where they are finite. */
tess_status cuda_put_less(const cuda_shape *shape, const void *plane,
                          const cuda_pixels *to);

/** mean[ny][nx] (double) += share · pixels. */
tess_status cuda_add_pixels(const cuda_shape *shape, const cuda_pixels *from,
                            double share, double *mean);

/** to[count][num_images] (double) := the images' values at pixels 0, step, 2 step …;
 * NaN at those that have is_nan, or are none. `image` is in device memory. */
tess_status cuda_take_samples(const cuda_shape *shape, int64_t count, int64_t step,
                              int num_images, void *const *image, const uint8_t *is_nan,
                              double *to);

/** plane := the image, 0 beyond it; or its squares. */
tess_status cuda_pad(const cuda_shape *shape, const void *image, bool squares,
                     void *plane);

/** plane := pixels with (nx/2, ny/2) at cell (0, 0), 0 elsewhere; NaN counts as 0. */
tess_status cuda_pad_centred(const cuda_shape *shape, const cuda_pixels *from,
                             void *plane);

/** image := the plane, times factor (NULL: 1). */
tess_status cuda_crop(const cuda_shape *shape, const void *plane, const void *factor,
                      void *image);

/** image −= the plane. */
tess_status cuda_crop_less(const cuda_shape *shape, const void *plane, void *image);

/** PSFs around their centre, side by side: [2·half_y + 1][stride][width]. */
typedef struct cuda_window {
    int64_t half_x, half_y, stride;
    int width;
    void *value;
} cuda_window;

/** The window's values on one side := the plane around cell (0, 0). */
tess_status cuda_crop_window(const cuda_shape *shape, const void *plane, int side,
                             const cuda_window *window);

/** plane[cell index[k]] := value[k] for pixels y·nx + x; the plane is 0 elsewhere. */
tess_status cuda_scatter(const cuda_shape *shape, int64_t count, const int64_t *index,
                         const double *value, void *plane);

/* ---- places with gains of their own (cuda_borders.cu) ---- */

/** used[place[k]] := 1 (int32_t) where model[k] (double) is not 0. */
tess_status cuda_mark_places(const cuda_shape *shape, const void *model,
                             const int16_t *place, void *used);

/** plane := the model (double) in the pixels of one place, 0 elsewhere. */
tess_status cuda_pad_place(const cuda_shape *shape, const void *model,
                           const int16_t *place, int only, void *plane);

/** image −= seen[place] · the plane. */
tess_status cuda_crop_seen(const cuda_shape *shape, const void *plane,
                           const int16_t *place, const double *seen, void *image);

/* ---- kernels of scales (cuda_tables.cu) ---- */

/** A kernel: table[2·half + 1][2·half + 1] (double). */
typedef struct cuda_table {
    int64_t half;
    double *value;
} cuda_table;

/** table := the kernel of clean_kernel_fill(). Waits. */
tess_status cuda_fill_table(bool gaussian, double scale_px, const cuda_table *table);

/** plane := the table around cell (0, 0), as far as an image reaches, 0 elsewhere. */
tess_status cuda_pad_table(const cuda_shape *shape, const cuda_table *table,
                           void *plane);

/** Merged components in device memory. */
typedef struct cuda_components {
    int64_t count;
    const int64_t *index; /**< [count] y·nx + x, ascending */
    const double *flux;   /**< [count] */
} cuda_components;

/** model[num_rows][nx], the rows of an image from row_first on, += the table times the
 *  flux around the pixel of each component. */
tess_status cuda_add_components(int64_t nx, int64_t row_first, int64_t num_rows,
                                const cuda_components *merged, const cuda_table *table,
                                double *model);

/* ---- spectra (cuda_products.cu) ---- */

/** kernel := the real parts. */
tess_status cuda_real_parts(const cuda_shape *shape, const void *spectrum,
                            void *kernel);

/** to := from · psf · kernel^power · scale, where psf (complex) and kernel (real) may
 * be NULL for 1. */
typedef struct cuda_factors {
    const void *psf, *kernel;
    int power;
    double scale;
} cuda_factors;

tess_status cuda_multiply(const cuda_shape *shape, const void *from,
                          const cuda_factors *by, void *to);

/** sum += scale · from · psf · kernel. */
tess_status cuda_add_product(const cuda_shape *shape, const void *from,
                             const cuda_factors *by, void *sum);

/* ---- coarser grids, with cells of 2^shift pixels (cuda_grids.cu) ---- */

/** to[ly'][lx'/2 + 1] := the low frequencies of from · kernel, for a plane [ly'][lx']
 * of cells, normalised. */
tess_status cuda_multiply_low(const cuda_shape *shape, int shift, const void *from,
                              const void *kernel, void *to);

/** rows[ny][] := rows of pixels made of such a plane, with a column for each cell.
 *  `weight` is that of clean_grid_weights() in the
 *  shape's precision. */
tess_status cuda_refine_rows(const cuda_shape *shape, int shift, const void *plane,
                             const void *weight, void *rows);

/** image := the pixels of such rows, times factor (NULL: 1). */
tess_status cuda_refine(const cuda_shape *shape, int shift, const void *rows,
                        const void *weight, const void *factor, void *image);

/* ---- local rms (cuda_sigma.cu) ---- */

/** plane := 1 at pixels that are not NaN, 0 elsewhere. */
tess_status cuda_pad_valid(const cuda_shape *shape, const uint8_t *is_nan, void *plane);

/** plane := height · exp(−steepness · r²) around cell (0, 0), as far as an image
 * reaches. */
tess_status cuda_pad_gaussian(const cuda_shape *shape, double height, double steepness,
                              void *plane);

/** sigma := sqrt(plane), or sigma / sqrt(plane) with `divides`. */
tess_status cuda_take_root(const cuda_shape *shape, const void *plane, bool divides,
                           void *sigma);

/** sigma := at least `share` · |the least value of `image` up to `reach` pixels away in
 * x and y|; `room` is an image to work in. */
tess_status cuda_raise_to_minima(const cuda_shape *shape, const void *image,
                                 int64_t reach, double share, void *room, void *sigma);

/** sigma := (lowest / sigma)^strength. */
tess_status cuda_to_factor(const cuda_shape *shape, double lowest, double strength,
                           void *sigma);

/* ---- restored images (cuda_beam.cu) ---- */

/** plane := exp(−(along_x x² + along_y y² + across x y)) around cell (0, 0), as far as
 * an image reaches. */
tess_status cuda_pad_beam(const cuda_shape *shape, double along_x, double along_y,
                          double across, void *plane);

/** plane := pixels, 0 beyond them; those that are not finite count as 0. */
tess_status cuda_pad_pixels(const cuda_shape *shape, const cuda_pixels *from,
                            void *plane);

/** to := from + the plane; `to` may be `from`. */
tess_status cuda_add_plane(const cuda_shape *shape, const void *plane,
                           const cuda_pixels *from, const cuda_pixels *to);

#ifdef __cplusplus
}
#endif
#endif
