/** @file cuda_search.h  (private to clean/)
 *  What the cuda backend finds out about images on the device: what pixels are chosen
 *  by, peaks, candidates, and the order of values. As in cuda_kernels.h, arrays are in
 *  device memory unless the function says otherwise.
 */
#ifndef TESS_CLEAN_CUDA_SEARCH_H
#define TESS_CLEAN_CUDA_SEARCH_H

#include "cuda_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How the pixels of several images are joined: clean_join on the device. */
typedef struct cuda_join {
    bool roots, squares; /**< CLEAN_ROOTS, CLEAN_SQUARES; neither: CLEAN_MEAN */
    bool is_signed;
    int num_pol, num_channels;
    const double *share;   /**< [num_channels][num_pol] */
    const double *largest; /**< [num_channels] largest weight of a channel's images */
} cuda_join;

/** mean := what pixels are chosen by, times factor (NULL: 1); image[] is an array of
 * pointers. */
tess_status cuda_mean(const cuda_shape *shape, const cuda_join *join,
                      void *const *image, const void *factor, void *mean);

/** Where components may be, and which values count. */
typedef struct cuda_search {
    const void *mean;
    const uint8_t *allowed;
    const uint32_t *found; /**< with the bits that allow a pixel, or NULL */
    uint32_t bit;
    int64_t x_range[2], y_range[2];
    bool positive; /**< values count, not their magnitudes */
} cuda_search;

/** The best pixel of a row: the first of those with the largest value. */
typedef struct cuda_row_peak {
    double value;
    int64_t x; /**< −1: all pixels are 0, or none may have components */
} cuda_row_peak;

/** row[ny] := the best pixel of each row. */
tess_status cuda_row_peaks(const cuda_shape *shape, const cuda_search *search,
                           cuda_row_peak *row);

/** count[ny] := the number of candidates of each row, of `from` or more. */
tess_status cuda_row_counts(const cuda_shape *shape, const cuda_search *search,
                            double from, int64_t *count);

/** Candidates in the order of pixels. */
typedef struct cuda_list {
    int64_t count;
    int num_layers;
    int32_t *x, *y; /**< [count] */
    double *value;  /**< [num_layers][count] */
    double *factor; /**< [count], or NULL */
    int16_t *of;    /**< [count] places with gains of their own, or NULL: none */
} cuda_list;

/** list->of := place[y·nx + x] of its candidates. */
tess_status cuda_find_places(const cuda_shape *shape, const int16_t *place,
                             const cuda_list *list);

/** Fill a list; first[ny]: place of each row's first candidate. image[num_layers] is an
 * array of pointers. */
tess_status cuda_fill_list(const cuda_shape *shape, const cuda_search *search,
                           double from, const int64_t *first, void *const *image,
                           const void *factor, const cuda_list *list);

/** Values whose order is asked for: pixels, or their distances from a centre. */
typedef struct cuda_order {
    const void *image;
    const uint8_t *is_nan;
    bool distances;
    double centre;
} cuda_order;

enum { CUDA_BIN_BITS = 8, CUDA_BINS = 1 << CUDA_BIN_BITS };

/** bins[CUDA_BINS] += the number of values whose keys, whole numbers in the order of
 * the values, agree with `prefix` above the bits from `shift` on, by those bits. */
tess_status cuda_count_bins(const cuda_shape *shape, const cuda_order *order,
                            uint64_t prefix, int shift, unsigned long long *bins);

/** Sums of a row over its pixels that are not NaN. */
typedef struct cuda_row_sum {
    double squares, least; /**< least: +∞ without such a pixel */
    int64_t count;
} cuda_row_sum;

/** row[ny] := sums of an image of either precision. */
tess_status cuda_row_sums(const cuda_shape *shape, const cuda_pixels *image,
                          const uint8_t *is_nan, cuda_row_sum *row);

/** sample[count] := Σ w (value − mean)² over the channels of every step-th pixel, or −1
 * at NaN pixels; image[channels] are pointers, `weight` theirs, 0 without data. */
tess_status cuda_take_spreads(const cuda_shape *shape, int channels, void *const *image,
                              const double *weight, const uint8_t *is_nan, int64_t step,
                              int64_t count, double *sample);

#ifdef __cplusplus
}
#endif
#endif
