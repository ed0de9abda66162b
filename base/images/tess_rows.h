/** @file tess_rows.h
 *  Rows of an image: where their pixels live, and which part of which image they are.
 *
 *  Pixels live in host memory or in that of a backend's device (tess_place.h). Code
 *  that computes on the host reads and changes them in views, which are in host memory:
 *
 *      TESS_TRY(tess_rows_view(rows, &view));        tess_rows_edit(rows, true, &view)
 *      ... tess_rows_pixel(&view, k) ...             ... tess_rows_set(&view, k, x) ...
 *      tess_rows_free(&view);                        tess_rows_put_back(rows, &view)
 *
 *  A view of pixels in host memory is those pixels, and costs nothing. A view of pixels
 *  on a device is a copy. (libCEED has vectors with such accessors: Brown et al. 2021,
 *  JOSS 6, 2945.)
 *
 *  Functions return TESS_ERR_ALLOC if memory is short, and errors of the device. Those
 *  without a status, beside tess_rows_free(), are for rows in host memory. All are
 *  Local.
 */
#ifndef TESS_ROWS_H
#define TESS_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tess_place.h"
#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Zeros are no rows. */
typedef struct tess_rows {
    int64_t nx, ny;              /**< size of the whole image */
    int64_t row_first, num_rows; /**< the part: these rows of the image, */
    int64_t col_first, num_cols; /**< and these columns */
    tess_pixel type;
    const tess_place *place; /**< where the pixels live; NULL: host memory */
    bool is_borrowed;        /**< the pixels belong to somebody else */
    void *value;             /**< [num_rows][num_cols] */
} tess_rows;

/* ---- which part, of which pixels ---- */

static inline tess_pixel tess_pixel_of(bool is_double)
{
    return is_double ? TESS_PIXEL_DOUBLE : TESS_PIXEL_SINGLE;
}

/** Rows [row_first, row_first + num_rows) of an image, with all columns and without
 * memory; their place is the host's. */
static inline tess_rows tess_rows_of(int64_t nx, int64_t ny, int64_t row_first,
                                     int64_t num_rows, tess_pixel type)
{
    return (tess_rows){.nx = nx,
                       .ny = ny,
                       .row_first = row_first,
                       .num_rows = num_rows,
                       .num_cols = nx,
                       .type = type};
}

/** The same part with pixels of this type and without memory; its place is the host's.
 */
static inline tess_rows tess_rows_like(const tess_rows *rows, tess_pixel type)
{
    tess_rows like = *rows;
    like.type = type;
    like.place = NULL;
    like.is_borrowed = false;
    like.value = NULL;
    return like;
}

/** Such rows with pixels in host memory that belong to the caller, who knows whether
 * they may be changed. */
tess_rows tess_rows_borrow(const tess_rows *like, const void *value);

/** Bytes of a pixel. */
static inline int64_t tess_pixel_bytes(tess_pixel type)
{
    return type == TESS_PIXEL_DOUBLE ? 8 : type == TESS_PIXEL_MASK ? 1 : 4;
}

/** Number of pixels. */
static inline int64_t tess_rows_count(const tess_rows *rows)
{
    return rows->num_rows * rows->num_cols;
}

static inline int64_t tess_rows_bytes(const tess_rows *rows)
{
    return tess_rows_count(rows) * tess_pixel_bytes(rows->type);
}

/** Whether the rows have all columns of the image. */
static inline bool tess_rows_are_whole(const tess_rows *rows)
{
    return rows->col_first == 0 && rows->num_cols == rows->nx;
}

/** TESS_ERR_INTERNAL: they have not; `what` names them in the message. */
tess_status tess_rows_check_whole(const tess_rows *rows, const char *what);

/* ---- memory ---- */

/** Give the rows memory of their place. Pixels are undefined, or 0. Free it with
 * tess_rows_free(). */
tess_status tess_rows_alloc(tess_rows *rows);
tess_status tess_rows_alloc_zero(tess_rows *rows);

/** Free the pixels, unless they are borrowed; `*rows` becomes zeros. */
void tess_rows_free(tess_rows *rows);

/** A copy of the rows in the same place, owned by the caller. */
tess_status tess_rows_copy(const tess_rows *from, tess_rows *to);

/** Move the pixels to another place. Borrowed ones stay there, too. */
tess_status tess_rows_move(tess_rows *rows, const tess_place *place);

/* ---- views ---- */

/** View all pixels, or `count` rows from row `first` of these rows on. What is not
 * tess_rows_edit() is only read. The rows must outlive the view. */
tess_status tess_rows_view(const tess_rows *rows, tess_rows *view);
tess_status tess_rows_view_some(const tess_rows *rows, int64_t first, int64_t count,
                                tess_rows *view);

/** View all pixels as such of another type; a copy, made by at most `threads` threads,
 * unless they have this type. */
tess_status tess_rows_view_as(const tess_rows *rows, tess_pixel type, int threads,
                              tess_rows *view);

/** View all pixels to change them. Without `keeps` every pixel is written, and the view
 * need not have the present ones. */
tess_status tess_rows_edit(const tess_rows *rows, bool keeps, tess_rows *view);

/** Give the pixels of such a view to the rows, and free the view, also on failure. */
tess_status tess_rows_put_back(const tess_rows *rows, tess_rows *view);

/* ---- pixels of host memory ---- */

/** Pixel k of all rows, which is row · num_cols + column. */
static inline double tess_rows_pixel(const tess_rows *rows, int64_t k)
{
    if (rows->type == TESS_PIXEL_DOUBLE) return ((const double *)rows->value)[k];
    if (rows->type == TESS_PIXEL_MASK) return ((const uint8_t *)rows->value)[k];
    return (double)((const float *)rows->value)[k];
}

static inline void tess_rows_set(const tess_rows *rows, int64_t k, double value)
{
    if (rows->type == TESS_PIXEL_DOUBLE)
        ((double *)rows->value)[k] = value;
    else if (rows->type == TESS_PIXEL_MASK)
        ((uint8_t *)rows->value)[k] = (uint8_t)(value < 0 || value > 0);
    else
        ((float *)rows->value)[k] = (float)value;
}

/** Address of pixel k. */
static inline void *tess_rows_at(const tess_rows *rows, int64_t k)
{
    return (char *)rows->value + k * tess_pixel_bytes(rows->type);
}

/** Pixels [first, first + count) in double precision. */
void tess_rows_doubles(const tess_rows *rows, int64_t first, int64_t count,
                       double *out);

/* ---- arithmetic, wherever the pixels live ---- */

/** Make every pixel NaN, or 0 in a mask: an image without weights is undefined, not
 * zero. */
tess_status tess_rows_blank(const tess_rows *rows);

/** Multiply every pixel, by at most `threads` threads. */
tess_status tess_rows_scale(const tess_rows *rows, double factor, int threads);

/** to += weight · from, where both have pixels of the image, by at most `threads`
 * threads. A sum is rounded to the precision of `to` once. TESS_ERR_INTERNAL: they are
 * of images of different sizes, or `to` is a mask. */
tess_status tess_rows_add(const tess_rows *from, double weight, int threads,
                          const tess_rows *to);

/** Sum all pixels, and find the largest magnitude of the finite ones. */
tess_status tess_rows_sum(const tess_rows *rows, tess_pixel_sums *sums);

/** All pixels as a rectangle of their place. */
tess_pixels tess_rows_pixels(const tess_rows *rows);

#ifdef __cplusplus
}
#endif
#endif
