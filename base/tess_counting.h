/** @file tess_counting.h
 *  Counting sorts by several threads, each of which counts and moves a share of the
 *  elements, in order.
 */
#ifndef TESS_COUNTING_H
#define TESS_COUNTING_H

#include <stdint.h>

/** The share of thread number `thread` of `num_threads` begins here, and ends where the
 *  next one's begins. */
static inline int64_t tess_share_first(int64_t count, int thread, int num_threads)
{
    return count * thread / num_threads;
}

/** Counts [num_threads][digits] become places: where a thread's first element of a
 * digit goes, digits in order and of each the threads in order, so that the sort is
 * stable. Returns how many there are. */
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
