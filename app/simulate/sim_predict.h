/** @file sim_predict.h  (private to app/simulate/)
 *  Visibilities of a list of sources as the direct sum, in double precision.
 */
#ifndef TESS_SIM_PREDICT_H
#define TESS_SIM_PREDICT_H

#include <stdint.h>

#include "sim_sky.h"
#include "tess_vis.h"

/** What is added to the sum before it is rounded to float. */
typedef struct tess_sim_noise {
    double sigma_jy; /**< of real and of imaginary part; 0 = none */
    uint64_t seed;
    int64_t row_offset; /**< row number in the set of the block's first row */
} tess_sim_noise;

/** Channels and correlations to predict. */
typedef struct tess_sim_channels {
    int64_t num_chan;
    const double *freq_hz; /**< [num_chan] */
    int num_corr;
    const tess_corr *corr; /**< [num_corr] */
} tess_sim_channels;

/** What pairs of antennas receive of each source, in proportion to its flux: the power
 *  of their primary beams. Pairs are of kinds of antennas. */
typedef struct tess_sim_gains {
    const double *gain; /**< [num_sources][num_chan][num_pairs] */
    int num_pairs;
    const int *kind; /**< [num_antennas] */
} tess_sim_gains;

/** The number of a pair of kinds, in either order. */
static inline int tess_sim_pair(int a, int b)
{
    return a < b ? b * (b + 1) / 2 + a : a * (a + 1) / 2 + b;
}

/** Rows to predict. */
typedef struct tess_sim_rows {
    int64_t num;
    const double *uvw_m;                /**< [num][3] */
    const int32_t *antenna1, *antenna2; /**< [num]; unused without gains */
    const tess_sim_gains *gains;        /**< NULL: sources are seen with their fluxes */
} tess_sim_rows;

/** vis[rows->num][num_chan][num_corr][2] = sum over sources, plus noise, rounded once,
 *  with num_threads threads. Every value is computed alike whatever the number of rows
 *  or threads. Allocates nothing and cannot fail. Local. */
void tess_sim_predict(const tess_sky *sky, const tess_sim_channels *channels,
                      const tess_sim_noise *noise, const tess_sim_rows *rows,
                      int num_threads, float *vis);

/** Sources times visibilities per second and thread, for estimates. */
#define TESS_SIM_RATE 2.0e8

/* ---- noise ---- */

/* A value depends on seed, row, channel and correlation alone, never on the order of
 * drawing, ranks or threads. */

/** Philox-4x32-10 (Salmon et al. 2011, SC'11, doi:10.1145/2063384.2063405). Local. */
void tess_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/** Two independent normal deviates of mean 0 and variance 1. Local. */
void tess_noise_pair(uint64_t seed, int64_t row, int64_t chan, int corr, double out[2]);

#endif
