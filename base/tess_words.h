/** @file tess_words.h
 *  Times, positions, angles and fluxes in the words of the log. All Local.
 */
#ifndef TESS_WORDS_H
#define TESS_WORDS_H

#include <stddef.h>

/** Log "label:         ..." with the text in line with that of other labels. */
void tess_words_tell(const char *label, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** "2017-04-11 00:32:00.5" of a time (UTC), or "unknown". */
void tess_words_time(double mjd_s, char *text, size_t size);

/** "04:00:00.0000", "-30:00:00.000", with so many decimals. */
void tess_words_ra(double rad, int decimals, char *text, size_t size);
void tess_words_dec(double rad, int decimals, char *text, size_t size);

/** An angle's unit for people, "arcsec", and its size in radians. */
const char *tess_words_angle_unit(double rad, double *unit_rad);

/** "45.6 mJy/beam"; `digits` of them. */
void tess_words_flux(double jy, int digits, char *text, size_t size);

/** "1248 to 1312 MHz", "86.2 GHz" when both are the same. */
void tess_words_band(double low_hz, double high_hz, char *text, size_t size);

#endif
