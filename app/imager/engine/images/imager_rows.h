/** @file imager_rows.h  (private to app/imager/)
 *  Finished images, distributed over the ranks by rows.
 */
#ifndef TESS_IMAGER_ROWS_H
#define TESS_IMAGER_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_real.h"
#include "tess_status.h"

/** Rows of a finished image on this rank. */
typedef struct imager_rows {
    int64_t row_first, num_rows, nx;
    bool is_double; /**< whether values are double: the precision of the plan; true for
                       means and without rows */
    void *value;    /**< [num_rows][nx] double or float; owned */
} imager_rows;

/** Pixel k of all rows. */
static inline double imager_pixel(const imager_rows *rows, int64_t k)
{
    return tess_real_at(rows->value, rows->is_double, k);
}

/** Pixels [first, first + count) in double precision. */
void imager_pixels(const imager_rows *rows, int64_t first, int64_t count, double *out);

/** sum[k] += weight · pixel k of all rows, by at most `threads` threads. Local. */
void imager_rows_add(const imager_rows *rows, double weight, int threads, double *sum);

/** sum[k] += weight · value[k] for `pixels` pixels, by at most `threads` threads.
 * Local. */
void imager_rows_add_values(const double *value, int64_t pixels, double weight,
                            int threads, double *sum);

/** Write all pixels in single precision to `out`, by at most `threads` threads. Local.
 */
void imager_rows_to_single(const imager_rows *rows, int threads, float *out);

/** Rows of zeros, in double precision. TESS_ERR_ALLOC. Local. */
tess_status imager_rows_zero(int64_t row_first, int64_t num_rows, int64_t nx,
                             imager_rows *rows);

/** Make every pixel NaN: an image without weights is undefined, not zero. Local. */
void imager_rows_blank(const imager_rows *rows);

/** One image (dirty or PSF) of one polarisation. */
typedef struct imager_product {
    imager_rows rows;
    double sum_weights;
    double effective_vis; /**< ΣW over the largest W; NAN if unknown */
    double
        variance; /**< Σ W²/w, with statistical weights w; 0 for PSFs, NAN if unknown */
} imager_product;

void imager_rows_free(imager_rows *rows);

#endif
