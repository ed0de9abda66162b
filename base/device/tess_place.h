/** @file tess_place.h
 *  Memory of a backend's device as a table of functions, for code that keeps arrays
 *  there and does not know the device. Host memory has no table: its place is NULL.
 *
 *  The functions do what those of tess_device.h do, and have their errors. All are
 *  Local.
 */
#ifndef TESS_PLACE_H
#define TESS_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

typedef enum tess_pixel {
    TESS_PIXEL_SINGLE,
    TESS_PIXEL_DOUBLE,
    TESS_PIXEL_MASK /**< uint8_t: 0, or not 0 */
} tess_pixel;

enum { TESS_PIXEL_TYPES = 3 };

/** Pixels of a rectangle in such memory. */
typedef struct tess_pixels {
    void *value;
    tess_pixel type;
    int64_t num_rows, num_cols;
    int64_t stride; /**< pixels from the begin of a row to that of the next */
} tess_pixels;

/** A pixel becomes own · itself + weight · another + constant, in double precision,
 * rounded once. What is multiplied by 0 is not read. */
typedef struct tess_mixture {
    double own, weight, constant;
    bool is_finite; /**< a result that is not finite becomes 0 */
} tess_mixture;

typedef struct tess_pixel_sums {
    double sum;     /**< sum of all pixels */
    double largest; /**< largest magnitude of a finite pixel */
} tess_pixel_sums;

typedef struct tess_place {
    /** Memory of this many bytes, at least 1. `what` is for the message of a failure.
     */
    tess_status (*alloc)(int64_t bytes, const char *what, void **memory);
    void (*free)(void *memory);
    tess_status (*zero)(void *memory, int64_t bytes);
    /** From host memory, which may be changed when the call has returned; and to host
     * memory, where the bytes are when the call has returned. */
    tess_status (*upload)(void *to, const void *from, int64_t bytes);
    tess_status (*download)(void *to, const void *from, int64_t bytes);
    /** Copy `count` rows of `bytes` bytes inside this memory. */
    tess_status (*copy_rows)(void *to, int64_t to_stride, const void *from,
                             int64_t from_stride, int64_t bytes, int64_t count);
    /** Mix rectangles of equal size. `from` may be NULL if its weight is 0. */
    tess_status (*mix)(const tess_mixture *how, const tess_pixels *from,
                       const tess_pixels *to);
    /** Sum pixels, always in the same order; waits. TESS_ERR_ALLOC. */
    tess_status (*sum)(const tess_pixels *of, tess_pixel_sums *sums);
} tess_place;

#endif
