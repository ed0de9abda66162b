/** @file tess_bench.h
 *  The gridder and degridder of a backend, timed on visibilities made up on the spot.
 */
#ifndef TESS_BENCH_H
#define TESS_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tess_bench_peer.h"
#include "tess_grid.h"

typedef enum tess_bench_order {
    TESS_BENCH_TRACKS, /**< of an array with a dense middle, in order of time */
    TESS_BENCH_RANDOM  /**< anywhere on the grid, in any order */
} tess_bench_order;

/** One line of the table. */
typedef struct tess_bench_case {
    bool degrid;
    tess_bench_order order;
    int64_t num_vis; /**< about */
    int64_t size;    /**< image [pixels along each axis] */
    double accuracy;
    tess_precision precision;
    int support;      /**< of the kernel; 0: as the accuracy asks for */
    const char *peer; /**< to time as well (tess_bench_peer.h), or NULL */
} tess_bench_case;

/** What was found: medians over the repetitions. */
typedef struct tess_bench_result {
    int64_t num_vis;
    bool is_double;
    int support, num_planes;
    int64_t nu, nv;
    double sort_s;  /**< to where the backend works, and into bricks */
    double seconds; /**< of (de)gridding alone */
    double sum;     /**< of the absolute values gridded or read off, to compare
                         backends by */
    tess_bench_peer_result peer; /**< if there is one */
} tess_bench_result;

/** Positions of an integration's baselines, pairs of antennas in order, [..][3] m, of
 * an array at 30° South that looks at −30°; `east` and `north` in m. */
void tess_bench_track(int num_antennas, const double *east, const double *north,
                      double hour_rad, double *uvw_m);

/** Once to warm up, then `repeat` times, and the same of the peer. The backend has been
 *  started. Errors as of tess_grid_plan_create, gridding and tess_bench_peer_run.
 *  Local. */
tess_status tess_bench_run(const tess_backend *backend, const tess_bench_case *what,
                           int threads, int repeat, tess_bench_result *result);

#endif
