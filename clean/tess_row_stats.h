/** @file tess_row_stats.h
 *  Peak, rms, noise and sum of an image that is distributed by rows.
 */
#ifndef TESS_ROW_STATS_H
#define TESS_ROW_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"
#include "tess_rows.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Statistics of all pixels that are finite. */
typedef struct tess_row_stats {
    double count;
    double most, least;       /**< largest and smallest; NAN: there are none */
    double most_at, least_at; /**< the first of their pixels, row · nx + column; −1 */
    double sum, rms;
    double noise; /**< 1.4826 times the median absolute deviation from the median */
} tess_row_stats;

/** Measure this rank's rows of an image, by at most `threads` threads. The noise takes
 * several times as long, and is measured only if it is wanted. Nothing depends on ranks
 * or threads, not in a single bit. TESS_ERR_ALLOC. Collective. */
tess_status tess_row_stats_measure(tess_comm *comm, const tess_rows *rows, int threads,
                                   bool wants_noise, tess_row_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
