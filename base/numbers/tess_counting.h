/** @file tess_counting.h
 *  Counting sorts by several threads. Each thread counts and moves a share of the
 *  elements, in their order.
 */
#ifndef TESS_COUNTING_H
#define TESS_COUNTING_H

#include <stdint.h>

/** First element of the share of thread number `thread` of `num_threads`. The share
 * ends where the share of the next thread begins. */
static inline int64_t tess_share_first(int64_t count, int thread, int num_threads)
{
    return count * thread / num_threads;
}

/** Turn counts [num_threads][digits] into places: places[t][d] is where the first
 * element of digit d in the share of thread t goes. Places are in the order of digits,
 * and those of one digit in the order of threads, so the sort is stable. Returns the
 * number of elements. */
static inline int64_t tess_counts_to_places(int64_t *counts, int64_t digits,
                                            int num_threads)
{
    int64_t at = 0;
    for (int64_t d = 0; d < digits; ++d)
        for (int t = 0; t < num_threads; ++t) {
            const int64_t n = counts[t * digits + d];
            counts[t * digits + d] = at;
            at += n;
        }
    return at;
}

#endif
