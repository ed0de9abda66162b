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

/** Of the finite pixels of a row. */
typedef struct tess_row_measure {
    double sum, squares;
    double most, least;               /**< undefined if there are none */
    int64_t count, most_at, least_at; /**< the first columns of these; −1 */
} tess_row_measure;

/** Finite pixels in the order of whole numbers, their keys: the bits of a value, all
 * inverted if it is negative, else with the sign bit set. */
typedef struct tess_pixel_order {
    bool distances; /**< |value − centre| takes the place of values */
    double centre;
    uint64_t prefix; /**< keys that agree with it above the bits from `shift` on … */
    int shift;       /**< … are counted by the TESS_PIXEL_BITS bits from there on */
} tess_pixel_order;

enum { TESS_PIXEL_BITS = 8, TESS_PIXEL_BINS = 1 << TESS_PIXEL_BITS };

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
    /** Measure rows, row[num_rows] in host memory; or count pixels, single or double,
     * in bins. Both wait. TESS_ERR_ALLOC. */
    tess_status (*measure)(const tess_pixels *of, tess_row_measure *row);
    tess_status (*count)(const tess_pixels *of, const tess_pixel_order *order,
                         int64_t bins[TESS_PIXEL_BINS]);
} tess_place;

#endif
