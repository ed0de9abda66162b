/** @file primary_beam.h  (private to app/primary_beam/)
 *  What a primary beam is made of.
 */
#ifndef PRIMARY_BEAM_H
#define PRIMARY_BEAM_H

#include "beam_cosine.h"
#include "beam_cube.h"
#include "beam_polynomial.h"
#include "tess_primary_beam.h"

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
