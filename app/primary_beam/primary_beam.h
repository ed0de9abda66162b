/** @file primary_beam.h  (private to app/primary_beam/)
 *  What a primary beam is made of.
 */
#ifndef PRIMARY_BEAM_H
#define PRIMARY_BEAM_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_fits_array.h"
#include "tess_primary_beam.h"
#include "tess_status.h"

/* ---- beam_polynomial.c ----
 *
 *  Polynomials of power in the square of the distance from the pointing centre.
 *
 *      x = (distance [arcmin] · frequency [GHz])²
 *      p = 1 + x c₁/10³ + x² c₂/10⁷ + x³ c₃/10¹⁰ + x⁴ c₄/10¹³ + x⁵ c₅/10¹⁶
 *
 *  with coefficients as AIPS's PBPARM scales them. The power is p, or 1/p.
 */

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

/* ---- beam_cube.c: power on a regular grid ---- */

/** value[row][column] at x = (column − x0) dx, y = (row − y0) dy [sines]. */
typedef struct beam_map {
    int64_t nx, ny;
    double x0, y0, dx, dy;
    double *value; /**< from tess_alloc */
} beam_map;

/** The power at a place, by cubic interpolation (tess_cubic.h); 0 beyond the samples,
 *  and where one of the samples around is not finite. */
double beam_map_at(const beam_map *map, double x, double y);

/* ---- beam_cube.c: FITS files ----
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
    int entry[4]; /**< of voltages: which of XX, XY, YX and YY a plane along STOKES
                       is; num_entries is 0 where that is not known */
    int num_entries;
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

/** A map of the cube's pixels, without values. Local. */
beam_map beam_cube_map(const beam_cube *cube);

/** The power of the plane of a frequency, in proportion to that at its middle; `part`
 *  has as many pixels as the map. TESS_ERR_IO, TESS_ERR_INPUT. Local. */
tess_status beam_cube_plane(const beam_cube *cube, int plane, double *part,
                            beam_map *map);

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

/* ---- beam_tables.c ---- */

extern const beam_band beam_vla[], beam_atca[], beam_gmrt[];
extern const int beam_vla_num, beam_atca_num, beam_gmrt_num;
extern const beam_cosine_table beam_meerkat_uhf, beam_meerkat_l;

/* ---- primary_beam.c ---- */

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

/** The product of the fields of two antennas, on average over the feeds, in the same
 * way; that of `beam` alone without another. Thread-safe. */
double beam_formula_pair(const tess_primary_beam *beam, const tess_primary_beam *other,
                         double freq_hz, double x, double y);

/** The fields of the two feeds, horizontal and vertical, of which that power is the
 *  mean square. Those of round beams are the same; that of a polynomial is the root of
 *  its power. Thread-safe. */
void beam_formula_fields(const tess_primary_beam *beam, double freq_hz, double x,
                         double y, double field[2]);

#endif
