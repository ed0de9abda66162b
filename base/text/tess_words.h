/** @file tess_words.h
 *  Times, positions, angles and fluxes as the log writes them. All Local.
 */
#ifndef TESS_WORDS_H
#define TESS_WORDS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Log "label: ...". The texts of all labels begin in the same column. */
void tess_words_tell(const char *label, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** A time (UTC) like "2017-04-11 00:32:00.5", or "unknown". */
void tess_words_time(double mjd_s, char *text, size_t size);

/** Right ascension like "04:00:00.0000" and declination like "-30:00:00.000", with
 * `decimals` decimals. */
void tess_words_ra(double rad, int decimals, char *text, size_t size);
void tess_words_dec(double rad, int decimals, char *text, size_t size);

/** A unit in which people give such an angle, like "arcsec", and its size in radians.
 */
const char *tess_words_angle_unit(double rad, double *unit_rad);

/** A brightness like "45.6 mJy/beam", with `digits` digits. */
void tess_words_flux(double jy, int digits, char *text, size_t size);

/** Integers [first, end) as options take them: "4:8", or "4:" if `end` is 0. */
void tess_words_range(int64_t first, int64_t end, char *text, size_t size);

/** A band like "1248 to 1312 MHz", or "86.2 GHz" if both ends are the same. */
void tess_words_band(double low_hz, double high_hz, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
