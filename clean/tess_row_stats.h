/** @file tess_row_stats.h
 *  Peak, rms, noise and sum of an image that is distributed by rows.
 */
#ifndef TESS_ROW_STATS_H
#define TESS_ROW_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/** This rank's rows [num_rows][nx], double or float. */
typedef struct tess_stat_rows {
    const void *value;
    bool is_double;
    int64_t nx, row_first, num_rows;
    int threads;
} tess_stat_rows;

/** Statistics of all pixels that are finite. */
typedef struct tess_row_stats {
    double count;
    double most, least;       /**< largest and smallest; NAN: there are none */
    double most_at, least_at; /**< the first of their pixels, row · nx + column; −1 */
    double sum, rms;
    double noise; /**< 1.4826 times the median absolute deviation from the median */
} tess_row_stats;

/** Measure the rows. The noise takes several times as long, and is measured only if it
 * is wanted. Nothing depends on ranks or threads, not in a single bit. TESS_ERR_ALLOC.
 * Collective. */
tess_status tess_row_stats_measure(tess_comm *comm, const tess_stat_rows *rows,
                                   bool wants_noise, tess_row_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
