/** @file bench_set.h  (tests)
 *  Visibilities for benchmarks: a workload's .npz, or tracks made up on the spot.
 */
#ifndef TESS_BENCH_SET_H
#define TESS_BENCH_SET_H

#include <stdbool.h>
#include <stdint.h>

/** Arrays belong to the set; free with bench_set_free. */
typedef struct bench_set {
    int64_t num_rows, num_chan;
    int64_t num_pixels; /**< image size of the workload */
    double scale_rad;
    double *uvw_m;      /**< [num_rows][3] */
    double *inv_lambda; /**< [num_chan] freq/c */
    float *vis;         /**< [num_rows][num_chan][2] */
} bench_set;

/** Read uvw, freq, vis, npix and cell_asec of an uncompressed .npz (numpy.savez).
 *  False, with a line on stderr, when it cannot be read. */
bool bench_set_read(const char *path, bench_set *set);

/** Tracks of a 64-antenna array of 8 km, densest in its middle, over `num_times`
 *  integrations of 8 s and 16 channels of 4 MHz at 1.28 GHz: like MeerKAT. */
bool bench_set_make(int64_t num_times, bench_set *set);

void bench_set_free(bench_set *set);

/** Single-precision FMA rate [FLOP/s] of one core, with the widest vectors here,
 *  measured for `seconds` of processor time. */
double bench_fma_rate(double seconds);

/** Processor seconds of this process so far, all threads. */
double bench_cpu_now(void);

#endif
