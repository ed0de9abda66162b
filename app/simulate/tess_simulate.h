/** @file tess_simulate.h
 *  A simulated observation: geometry, rows, and the streaming of blocks to a writer.
 */
#ifndef TESS_SIMULATE_H
#define TESS_SIMULATE_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"
#include "tess_status.h"
#include "tess_vis.h"

/** When the observation begins, and how long it is. */
typedef struct tess_simulate_time {
    double start_mjd_s;  /**< UTC */
    bool has_hour_angle; /**< begin when hour_angle_rad is reached */
    double hour_angle_rad;
    double duration_s, integration_s;
    double dut1_s; /**< UT1 - UTC */
} tess_simulate_time;

/** Pointings that the array observes one after another, again and again. */
typedef struct tess_simulate_mosaic {
    const char *pointings;    /**< "hex:N,SPACING" or a CSV file; NULL: one, the phase
                                   centre */
    double scan_s;            /**< time on a pointing; 0: an integration */
    const char *primary_beam; /**< of tess_beam_models.h; NULL: none */
} tess_simulate_mosaic;

/** What to simulate, checked by the caller. */
typedef struct tess_simulate_opts {
    const char *layout;     /**< built-in name or FILE.csv */
    const char *sky;        /**< FILE.csv or FILE.fits */
    const char *output;     /**< OBS.uvfits or OBS.ms */
    const char *object;     /**< name of the field */
    double ra_rad, dec_rad; /**< phase centre, J2000 */
    bool has_center;        /**< else it is the middle of the pointings of a file */
    tess_simulate_mosaic mosaic;
    tess_simulate_time time;
    double freq_hz, chan_width_hz; /**< centre of the band, width of a channel */
    int64_t num_chan;
    int num_corr;
    tess_corr corr[TESS_MAX_CORR];
    double noise_jy, sefd_jy; /**< add in quadrature; 0 = none */
    uint64_t seed;
    int num_antennas;    /**< 0 = all */
    double max_radius_m; /**< 0 = all */
    bool autocorrelations;
    bool flag_low; /**< flag below min_elevation_rad */
    double min_elevation_rad;
    int threads; /**< 0 = from the allocation */
    bool overwrite;
} tess_simulate_opts;

/** Make the observation and write it. Rows are ordered by time, then baseline; ranks
 *  make contiguous ranges of them in blocks. Errors as in README's table of exit
 *  statuses. Collective. */
tess_status tess_simulate(tess_comm *comm, const tess_simulate_opts *opts);

#endif
