/** @file row_deviation.h  (private to clean/)
 *  How far the pixels of an image that is distributed by rows lie from their median.
 */
#ifndef TESS_ROW_DEVIATION_H
#define TESS_ROW_DEVIATION_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"

/** σ of a Gaussian over the median absolute deviation: 1 / Φ⁻¹(3/4). */
#define ROW_SIGMA_PER_DEVIATION 1.482602218505602

/** This rank's pixels. */
typedef struct row_pixels {
    const void *value; /**< double or float */
    bool is_double;
    int64_t count;
    const uint8_t *is_blank; /**< [count] those that do not count; NULL: all that are
                                not finite */
    int threads;
} row_pixels;

/** The median, and the median of the distances from it, in the pixels' precision; 0
 *  where none counts. TESS_ERR_ALLOC. Collective. */
tess_status row_deviation(tess_comm *comm, const row_pixels *rows, double *middle,
                          double *deviation);

/** Values whose median is asked for, wherever they are. */
typedef struct row_values {
    bool is_double;
    int bits;       /**< by which they are counted at a time: 8 or 16 */
    int64_t count;  /**< of all values */
    bool distances; /**< distances from the centre are asked for, and not values */
    double centre;
    int64_t *bins; /**< [1 << bits] */
    /** bins[] := the number of values whose keys agree with `prefix` above the bits
     * from `shift` on, by those bits. Keys are whole numbers in the order of the
     * values. */
    tess_status (*count_bins)(struct row_values *from, uint64_t prefix, int shift);
    void *context;
} row_values;

/** The same of such values; errors are those of count_bins. */
tess_status row_values_deviation(row_values *from, double *middle, double *deviation);

#endif
