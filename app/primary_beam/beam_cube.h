/** @file beam_cube.h  (private to app/primary_beam/)
 *  Power patterns on a regular grid, and primary beams from FITS files.
 *
 *  Axis 1 is x and axis 2 is y, in an angle's unit: 'AZ' or 'X' grows with azimuth, 'L'
 *  against it (to the East, where the zenith is North); 'EL', 'Y' or 'M' grows with
 *  elevation. Further axes, in any order: 'FREQ' (linear, in a frequency's unit),
 *  'STOKES', and 'COMPLEX' of length 2.
 *  With COMPLEX, pixels are real and imaginary parts of voltages, whose squares are
 *  summed over the STOKES axis (feeds, or elements of a Jones matrix); without it they
 *  are powers, of which that of Stokes I counts, or else the sum of those of XX and YY,
 *  or RR and LL. All powers are in proportion to that at x = y = 0.
 */
#ifndef BEAM_CUBE_H
#define BEAM_CUBE_H

#include <stdint.h>

#include "tess_fits_array.h"

/** value[row][column] at x = (column − x0) dx, y = (row − y0) dy [sines]. */
typedef struct beam_map {
    int64_t nx, ny;
    double x0, y0, dx, dy;
    double *value; /**< from tess_alloc */
} beam_map;

/** The power at a place, by cubic interpolation (tess_cubic.h); 0 beyond the samples,
 *  and where one of the samples around is not finite. */
double beam_map_at(const beam_map *map, double x, double y);

/** Where the planes of a cube lie in its file. */
typedef struct beam_cube {
    tess_fits_array array;
    double x_rad, y_rad; /**< size of a pixel; that of x has a sign */
    int num_freq,
        num_feeds; /**< planes along FREQ, and those along STOKES that count */
    double freq_hz, freq_step_hz;
    int64_t freq_stride, feed_stride,
        part_stride;    /**< [pixels]; part_stride 0: power */
    int64_t feed_first; /**< the first plane that counts */
} beam_cube;

/** Read the header of a file. TESS_ERR_IO, TESS_ERR_INPUT. Local. */
tess_status beam_cube_open(const char *path, beam_cube *cube);

/** The frequencies from the first to the last plane. The range of a single plane
 * reaches half a plane to both sides. Local. */
void beam_cube_range(const beam_cube *cube, double *low_hz, double *high_hz);

/** The weighted mean over channels of the beams at their frequencies, which are
 * interpolated linearly between planes. Allocates the map's values. TESS_ERR_ALLOC,
 * TESS_ERR_IO. Local. */
tess_status beam_cube_mean(const beam_cube *cube, int64_t num_chan,
                           const double *freq_hz, const double *weight, beam_map *map);

#endif
