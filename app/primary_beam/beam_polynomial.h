/** @file beam_polynomial.h  (private to app/primary_beam/)
 *  Polynomials of power in the square of the distance from the pointing centre.
 *
 *      x = (distance [arcmin] · frequency [GHz])²
 *      p = 1 + x c₁/10³ + x² c₂/10⁷ + x³ c₃/10¹⁰ + x⁴ c₄/10¹³ + x⁵ c₅/10¹⁶
 *
 *  with coefficients as AIPS's PBPARM scales them. The power is p, or 1/p.
 */
#ifndef BEAM_POLYNOMIAL_H
#define BEAM_POLYNOMIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

enum { BEAM_TERMS = 5 };

/** A polynomial, and the frequency at which it was measured. */
typedef struct beam_polynomial {
    double at_mhz;
    double c[BEAM_TERMS];
    double end_x; /**< where the main lobe ends, at most; 0 in tables: it is not known
                     yet */
} beam_polynomial;

/** A range of frequencies with its polynomials. At a frequency, the nearest polynomial
 * holds, or a linear interpolation between the two on both sides. */
typedef struct beam_band {
    double low_mhz, high_mhz;
    const beam_polynomial *polynomial; /**< [num] in order of frequency */
    int num;
    bool interpolates;
    bool is_inverse; /**< the power is 1/p */
} beam_band;

/** The bands of a telescope. */
typedef struct beam_polynomials {
    beam_band *band; /**< [num]; owned, with */
    int num;
    beam_polynomial *polynomial; /**< their polynomials */
} beam_polynomials;

/** The band of a frequency, or NULL. */
const beam_band *beam_band_of(const beam_polynomials *of, double freq_hz);

/** Copy bands of a table, and find where their main lobes end. TESS_ERR_ALLOC. */
tess_status beam_polynomials_copy(const beam_band *band, int num, beam_polynomials *to);

/** The power at a distance. It is 0 beyond the main lobe, which ends where the power
 * reaches 0 or begins to rise. */
double beam_polynomial_power(const beam_band *band, double freq_hz,
                             double distance_rad);

/** Parse bands from a text. Each line is "LOW HIGH poly|inverse c0 c1 ...", with
 * frequencies like 0.9GHz, and p = c0 + c1 x + c2 x² ...; `#` begins a comment. `path`
 * is for messages. TESS_ERR_INPUT, TESS_ERR_ALLOC. */
tess_status beam_polynomials_parse(const char *path, char *text, beam_polynomials *to);

void beam_polynomials_free(beam_polynomials *of);

#endif
