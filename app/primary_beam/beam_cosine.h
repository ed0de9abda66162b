/** @file beam_cosine.h  (private to app/primary_beam/)
 *  Beams of an aperture whose illumination falls off as a cosine, for two feeds that
 *  have widths and squints of their own.
 */
#ifndef BEAM_COSINE_H
#define BEAM_COSINE_H

/** Squint and full width at half maximum of a feed along x and y [arcmin]. */
typedef struct beam_feed {
    double squint[2], width[2];
} beam_feed;

typedef struct beam_cosine_row {
    double at_mhz;
    beam_feed feed[2]; /**< horizontal, vertical */
} beam_cosine_row;

/** A beam that was measured at some frequencies. Numbers are interpolated linearly
 * between these; beyond them the last ones hold. */
typedef struct beam_cosine_table {
    const char *name;
    double low_mhz, high_mhz;
    const beam_cosine_row *row;
    int num;
} beam_cosine_table;

/** The mean power of the two feeds, which is that of Stokes I. */
double beam_cosine_power(const beam_cosine_table *table, double freq_hz, double x,
                         double y);

#endif
