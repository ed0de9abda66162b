/** @file tess_take.h
 *  What an image takes of the correlations of samples, with gains of antennas.
 *
 *  A source with the coherency B has the correlations V = G1 B G2ᴴ in a sample of
 *  antennas 1 and 2, whose Jones matrices are G. An image takes G1ᴴ V G2, and of that
 *  sums over correlations. The matrices are a table of times, antennas and channels, so
 *  that a backend with memory of its own needs nothing else to take them.
 */
#ifndef TESS_TAKE_H
#define TESS_TAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_origin.h"

enum { TESS_TAKE_MOST = 4 };

/** Arrays are in host memory, and borrowed. */
typedef struct tess_take {
    int num_pol, num_corr;       /**< values of an image, correlations of a sample: at
                                      most TESS_TAKE_MOST */
    int feed[TESS_TAKE_MOST][2]; /**< [num_corr] of antennas 1 and 2: 0 is X, 1 is Y */
    double taken[TESS_TAKE_MOST][TESS_TAKE_MOST][2]; /**< [num_pol][num_corr] complex,
                                                          without gains */
    bool is_scalar; /**< all correlations have the mean of the gains of XX and YY */
    const double *jones; /**< [num_times][num_antennas][num_chan][XX, XY, YX, YY][2];
                              NULL: all matrices are 1, and nothing below is needed */
    int64_t num_times, num_chan; /**< num_chan: of the channel table */
    const int32_t *time;         /**< [num_intervals] of the origins */
    const tess_origins *origins; /**< of the samples' rows */
} tess_take;

/** Bytes of the Jones matrices. Local. */
static inline int64_t tess_take_bytes(const tess_take *take)
{
    if (!take->jones) return 0;
    return 8 * (int64_t)sizeof *take->jones * take->num_times *
           take->origins->num_antennas * take->num_chan;
}

#endif
