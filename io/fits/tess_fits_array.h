/** @file tess_fits_array.h
 *  Any FITS image, whatever its axes mean: where its pixels lie, what its header says
 * of them, and reading them in pieces. Models (tess_fits.h) and comparisons stand on
 * it.
 */
#ifndef TESS_FITS_ARRAY_H
#define TESS_FITS_ARRAY_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_place.h"
#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TESS_FITS_MAX_AXES = 7 };

typedef struct tess_fits_axis {
    int64_t length;
    char type[24], unit[24];   /**< CTYPE, CUNIT; "" when absent */
    double value, pixel, step; /**< CRVAL, CRPIX (1-based), CDELT; 0, 0, 1 by default */
    char table[24], column[24]; /**< PSi_0 and PSi_1 of a -TAB axis */
} tess_fits_axis;

typedef struct tess_fits_array {
    char path[1024];
    int bitpix;                              /**< 8, 16, 32, 64, -32, -64 */
    int hdu;                                 /**< where it is, 1 the first */
    int num_axes;                            /**< at least 1 */
    tess_fits_axis axis[TESS_FITS_MAX_AXES]; /**< axis[0] varies fastest */
    int64_t num_pixels;
    char unit[32];       /**< BUNIT, "" when absent */
    char kind[16];       /**< BTYPE, "" when absent */
    double matrix[2][2]; /**< axes 1 and 2: unit per pixel, of CDELT with PC or
                              CROTA2, or of CD */
    double pole_deg;     /**< LONPOLE, 180 when absent */
    double slant[2];     /**< PV2_1, PV2_2 (slant of a SIN projection) */
    double rest_freq_hz; /**< RESTFRQ, 0 when absent */
    double beam_deg[3];  /**< BMAJ, BMIN, BPA; 0 when absent */
    char system[16];     /**< RADESYS, "" when absent */
    char specsys[16];    /**< SPECSYS, "" when absent */
    double equinox;      /**< EQUINOX or EPOCH, 0 when absent */
    double sum_weights;  /**< SUMWT, or WSClean's WSCVWSUM; NAN when absent */
    int64_t data_offset; /**< bytes */
    double bscale, bzero;
    bool has_blank;
    int64_t blank;
} tess_fits_array;

/** Whether a file is named as FITS images are: .fits, .fit or .fts, in letters of
 * either case. Local. */
bool tess_fits_is_name(const char *path);

/** Read the header of a file's first image. TESS_ERR_IO (missing, unreadable);
 *  TESS_ERR_INPUT (not FITS, truncated, no image in it, compressed); `*array` is
 *  untouched on failure. Local. */
tess_status tess_fits_array_open(const char *path, tess_fits_array *array);

/** Read `count` pixels from pixel `first` on, in file order, scaled by BSCALE and
 * BZERO, into out[count], in single or double precision; blanks are NaN. TESS_ERR_IO,
 * TESS_ERR_ALLOC. Local, thread-safe. */
tess_status tess_fits_array_read(const tess_fits_array *array, int64_t first,
                                 int64_t count, tess_pixel type, void *out);

/** Degrees for a header: at most 12 decimals where that is the same angle to 1e-9
 *  arcsec, so that 60 degrees are not 59.99999999999999. Local. */
double tess_fits_degrees(double rad);

/** The same of a right ascension, in [0, 360). Local. */
double tess_fits_longitude(double rad);

/** Size of an angle's unit (CUNIT) in radians; "" is degrees, as FITS says; 0 when the
 *  unit is not one of an angle. Local. */
double tess_fits_unit_rad(const char *unit);

/** Size of a frequency's unit (CUNIT) in Hz; "" is Hz, as FITS says; 0 when the unit is
 *  not one of a frequency. Local. */
double tess_fits_unit_hz(const char *unit);

/** Whether an axis is one of frequency (FREQ, FREQ-TAB) or of a velocity that stands
 * for it (VRAD, VOPT). Local. */
bool tess_fits_is_spectral(const tess_fits_axis *axis);

/** The frequency of a pixel (1-based) of a linear one [Hz]. 0: its unit is unknown, or
 *  it is of velocity and the frequency at rest is 0. Local. */
double tess_fits_axis_hz(const tess_fits_axis *axis, double rest_hz, double pixel);

/** A whole turn in the unit of a longitude's axis (RA, GLON, ELON, ...), for which
 *  values that differ by it are the same; 0 for every other axis. Local. */
double tess_fits_turn(const tess_fits_axis *axis);

#ifdef __cplusplus
}
#endif
#endif
