/** @file tess_data.h
 *  Visibilities that the calling program has, in place of files: a function that fills
 * in rows as they are asked for. Nothing is copied to a disk, and no more is held than
 * the engine needs.
 *
 *      char name[32];
 *      tess_data_add(&set, name);
 *      tess_image_set(image, "obs", name);
 *      tess_image_run(image);
 *      tess_data_remove(name);
 */
#ifndef TESS_DATA_H
#define TESS_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Rows that share their channels and correlations: a spectral window. */
typedef struct tess_data_window {
    int64_t num_rows, num_chan;
    const double *freq_hz, *chan_width_hz; /**< [num_chan] centres, and widths > 0 */
    int num_corr;                          /**< 1 to 4 */
    const char *const *corr; /**< [num_corr] "XX", "RR", "I" ..., in order of `vis` */
} tess_data_window;

/** Rows [row_first, + num_rows) of a window, and its channels [chan_first, + num_chan):
 *  arrays of the library, which the function fills in. */
typedef struct tess_data_rows {
    int window;
    int64_t row_first, num_rows, chan_first, num_chan;
    int num_corr;
    double *uvw_m; /**< [num_rows][3] metres, as a MeasurementSet has them: from antenna
                      2 to antenna 1 */
    double *time_mjd_s,
        *integration_s;           /**< [num_rows] UTC, centre of the integration */
    int32_t *antenna1, *antenna2; /**< [num_rows] */
    float *vis;                   /**< [num_rows][num_chan][num_corr][2] re, im [Jy] */
    float *weight; /**< [num_rows][num_chan][num_corr]; 0 or less: flagged */
} tess_data_rows;

/** A set of one phase centre. tess_data_add() copies all but `context`. */
typedef struct tess_data_set {
    const char *telescope, *object;          /**< names, or NULL */
    double ra_rad, dec_rad;                  /**< phase centre, J2000 */
    double time_start_mjd_s, time_end_mjd_s; /**< UTC, of the first and the last row; 0:
                                                  not known, or no rows */
    int num_windows;
    const tess_data_window *window; /**< [num_windows] */
    int num_antennas;
    const double *antenna_xyz_m;      /**< [num_antennas][3] geocentric, or NULL */
    const double *antenna_diameter_m; /**< [num_antennas], or NULL */
    bool (*read)(void *context, const tess_data_rows *rows); /**< false: it fails. Any
                            thread may call, several at a time */
    void *context;
} tess_data_set;

/** Give a set a name, which is then an observation ("obs") of images, sessions and
 *  commands. TESS_ERR_USAGE for numbers out of range and names of correlations that are
 *  none; TESS_ERR_ALLOC. */
TESS_API tess_status tess_data_add(const tess_data_set *set, char name[32]);

/** Take the name away, after the runs and sessions that read it. */
TESS_API void tess_data_remove(const char *name);

#ifdef __cplusplus
}
#endif
#endif
