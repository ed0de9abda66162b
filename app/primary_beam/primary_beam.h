/** @file primary_beam.h  (private to app/primary_beam/)
 *  What a primary beam is made of.
 */
#ifndef PRIMARY_BEAM_H
#define PRIMARY_BEAM_H

#include "beam_cube.h"
#include "beam_polynomial.h"
#include "tess_primary_beam.h"

/* ---- apertures whose illumination falls off as a cosine, for two feeds ---- */

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

/* ---- tables ---- */

extern const beam_band beam_vla[], beam_atca[], beam_gmrt[];
extern const int beam_vla_num, beam_atca_num, beam_gmrt_num;
extern const beam_cosine_table beam_meerkat_uhf, beam_meerkat_l;

/* ---- any beam ---- */

typedef enum beam_kind { BEAM_POLYNOMIAL, BEAM_AIRY, BEAM_COSINE, BEAM_CUBE } beam_kind;

struct tess_primary_beam {
    beam_kind kind;
    char name[1100];
    beam_polynomials polynomials;
    double diameter_m, blockage_m; /* of BEAM_AIRY */
    const beam_cosine_table *cosine;
    beam_cube cube;
};

/** The power of a formula (every beam but BEAM_CUBE is one) in a direction at a
 * frequency in its range. A polynomial is 0 beyond its main lobe. Thread-safe. */
double beam_formula_power(const tess_primary_beam *beam, double freq_hz, double x,
                          double y);

#endif
