/** @file tess_costs.h
 *  The costs of the parts of the work, in seconds on one thread. From them the planner
 *  chooses support, padding and planes, and estimates how long a run takes. All
 *  functions are Local.
 */
#ifndef TESS_COSTS_H
#define TESS_COSTS_H

#include <stdbool.h>

#include "tess_kernel.h"

/** Kinds of work whose speed is limited by memory: beyond some number, more threads do
 *  not help. */
typedef enum tess_traffic {
    TESS_TRAFFIC_COPY, /**< images put together and converted */
    TESS_TRAFFIC_SORT, /**< runs moved to where their bricks are */
    TESS_TRAFFIC_READ, /**< rows of a file decoded */
    TESS_NUM_TRAFFIC
} tess_traffic;

/** Arrays are by [is_double], and by support of the kernel. */
typedef struct tess_costs {
    bool measured; /**< on this machine; else of a present server's core */
    /** of a visibility: position, phase, kernel values; and of adding one polarisation
     *  of it to one w-plane */
    double vis_s[2][TESS_MAX_SUPPORT + 1], update_s[2][TESS_MAX_SUPPORT + 1];
    double cell_s;        /**< of a cell of a brick sum: zero, store, load and add */
    double sort_s;        /**< of a visibility: cutting into runs and sorting those */
    double fft_flop_s[2]; /**< 5 n log2 n of them transform n values */
    double line_s[2];     /**< of a value of a grid line: sum, crop, gather */
    double pixel_s[2];    /**< of a pixel and plane: w-screen, accumulation */
    double correct_s;     /**< of a pixel of a finished image */
    /* of all the threads together */
    double touch_bytes_s; /**< bytes of new memory that are got in a second */
    double copy_bytes_s;  /**< bytes that are read and written in a second */
    /** fewest threads that saturate memory; 0: unknown */
    int enough_threads[TESS_NUM_TRAFFIC];
} tess_costs;

/** Built-in costs, which are the same on every machine. */
extern const tess_costs tess_costs_builtin;

/** Seconds of gridding (or degridding) a visibility of num_pol polarisations. */
double tess_costs_vis(const tess_costs *costs, int support, int w_support,
                      bool is_double, int num_pol);

/** The number of threads, at most `threads`, beyond which more do not help. */
int tess_costs_threads(const tess_costs *costs, tess_traffic traffic, int threads);

/** Seconds of transforming one plane of nu × nv cells, of whose lines along v this
 *  share is occupied, to nx × ny pixels. */
double tess_costs_plane(const tess_costs *costs, bool is_double, double nu, double nv,
                        double nx, double ny, double occupied);

#endif
