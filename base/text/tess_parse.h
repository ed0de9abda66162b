/** @file tess_parse.h
 *  Parses values in text, as options and tables have them. Every parser takes the text
 *  of one value, sets its outputs and returns TESS_OK. If the text is not valid, the
 *  outputs stay untouched, and the parser returns TESS_ERR_USAGE with a message that
 *  quotes the text and shows valid forms. All are Local.
 *
 *  The messages do not name the option; the caller puts it in front.
 */
#ifndef TESS_PARSE_H
#define TESS_PARSE_H

#include <stdint.h>

#include "tess_status.h"

/** Whole number in [min, max] like "512". "1e6" is not valid. */
tess_status tess_parse_integer(const char *text, int64_t min, int64_t max,
                               int64_t *value);

/** Finite number in [min, max]; use -DBL_MAX and DBL_MAX for no limit. */
tess_status tess_parse_number(const char *text, double min, double max, double *value);

/** Angle with its unit: "1.5asec", "0.33 arcsec", "0.33\""; uas, mas, asec (arcsec, "),
 *  amin (arcmin, '), deg, rad. */
tess_status tess_parse_angle(const char *text, double *rad);

/** Angle > 0, for pixel scales. */
tess_status tess_parse_scale(const char *text, double *rad);

/** Image size "N" (square) or "N,M" (nx, ny), both >= 1. */
tess_status tess_parse_size(const char *text, int64_t *nx, int64_t *ny);

/** Memory with its unit: "8GB", "8G" (10^9), "8GiB" (2^30), "500M", > 0. */
tess_status tess_parse_memory(const char *text, int64_t *bytes);

/** Frequency > 0: "1.4GHz", "150MHz", "10kHz", "1e9Hz" or plain "1e9". */
tess_status tess_parse_frequency(const char *text, double *hz);

/** Velocity of either sign, with its unit: "-120km/s", "50 m/s". */
tess_status tess_parse_velocity(const char *text, double *m_s);

/** Flux or brightness >= 0 [Jy]: "1.5mJy", "20uJy", "0.1Jy" or plain "0.1". */
tess_status tess_parse_flux(const char *text, double *jy);

/** Time span > 0: "8h", "1h30m", "10min", "30s", "0.5d" or plain seconds "30". */
tess_status tess_parse_duration(const char *text, double *seconds);

/** Right ascension: "12:30:49.4", "12h30m49.4s", "187.7deg", "3.27rad" or plain
 *  degrees "187.7". Any number of turns is brought to [0, 2 pi). */
tess_status tess_parse_ra(const char *text, double *rad);

/** Declination in [-90, 90] degrees: "+12:23:28", "-30d43m16s", "-30.7deg", "-0.5rad"
 *  or plain degrees "-30.7". */
tess_status tess_parse_dec(const char *text, double *rad);

/** Position "RA,DEC", in the forms of tess_parse_ra and tess_parse_dec. */
tess_status tess_parse_radec(const char *text, double *ra_rad, double *dec_rad);

/** Half-open range of counts "A:B" = [A, B), also "A:" and ":B". An end that is left
 * out is 0. */
tess_status tess_parse_range(const char *text, int64_t *first, int64_t *end);

/** Range of baseline lengths in wavelengths "MIN:MAX", "MIN:", ":MAX". Numbers may end
 * in k or M, as in "0.5k:20k". A maximum that is left out is 0. */
tess_status tess_parse_uvrange(const char *text, double *min, double *max);

/** List of whole numbers >= 0 like "0,2,3", and of ranges like "0-3". Each number is
 * kept once; there may be `capacity` of them. */
tess_status tess_parse_list(const char *text, int capacity, int *values, int *count);

#endif
