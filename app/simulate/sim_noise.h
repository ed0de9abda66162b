/** @file sim_noise.h  (private to app/simulate/)
 *  Thermal noise from a counter-based generator: a value depends on seed, row, channel
 *  and correlation alone, never on the order of drawing, ranks or threads.
 */
#ifndef TESS_SIM_NOISE_H
#define TESS_SIM_NOISE_H

#include <stdint.h>

/** Philox-4x32-10 (Salmon et al. 2011, SC'11, doi:10.1145/2063384.2063405). Local. */
void tess_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/** Two independent normal deviates of mean 0 and variance 1. Local. */
void tess_noise_pair(uint64_t seed, int64_t row, int64_t chan, int corr, double out[2]);

#endif
