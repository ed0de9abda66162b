/** @file tess_primary_beam.h
 *  Primary beams: the power with which the antennas of an array receive from a
 *  direction, in proportion to that from the pointing centre. Only MeerKAT's is in
 *  proportion to each feed's own peak, as katbeam has it. (tess_beam.h is of the
 *  restoring beam.)
 *
 *  Directions are direction cosines from the pointing centre: x grows with azimuth and
 *  y with elevation. A beam that is not round turns on the sky with the parallactic
 *  angle. docs/manual/beams.md lists formulas, ranges of frequency and sources.
 */
#ifndef TESS_PRIMARY_BEAM_H
#define TESS_PRIMARY_BEAM_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"
#include "tess_status.h"

typedef struct tess_primary_beam tess_primary_beam;

/** Which beam is wanted, and for what. */
typedef struct tess_primary_beam_request {
    const char *model; /**< "meerkat", "airy:25,2.5", "poly:FILE", "beam.fits" … */
    const char *telescope; /**< whose beam "auto" is, or NULL */
    int64_t num_chan;
    const double *freq_hz; /**< [num_chan] channels of the observation */
} tess_primary_beam_request;

/** Make the beam of a request. TESS_ERR_USAGE: there is no such model, or its numbers
 *  are not valid; TESS_ERR_INPUT: "auto" knows no beam of the telescope, a file is no
 *  beam, or the beam is not known at these frequencies; TESS_ERR_IO, TESS_ERR_ALLOC.
 *  Collective. */
tess_status tess_primary_beam_open(tess_comm *comm,
                                   const tess_primary_beam_request *request,
                                   tess_primary_beam **beam);

/** Check the text of a model. TESS_ERR_USAGE: no observation could have it. Local. */
tess_status tess_primary_beam_check_model(const char *model);

/** The file of a model, or NULL. Local. */
const char *tess_primary_beam_file(const char *model);

/** "MeerKAT, L band": the beam in messages. Local. */
const char *tess_primary_beam_name(const tess_primary_beam *beam);

/** Whether the beam is not round, so that it turns on the sky. Local. */
bool tess_primary_beam_turns(const tess_primary_beam *beam);

void tess_primary_beam_close(tess_primary_beam *beam); /**< NULL is fine. Local. */

/* ---- means ---- */

/** What a mean is made of. */
typedef struct tess_beam_mean_of {
    const tess_primary_beam *other; /**< the beam of the other antenna of a pair of
                                         unlike ones: the power is the product of their
                                         fields, and negative where these have unlike
                                         signs; NULL: it has the same beam */
    int64_t num_chan;
    const double *freq_hz; /**< [num_chan] */
    const double *weight;  /**< [num_chan]; at least one is > 0 */
    int64_t num_angles;
    const double *angle_rad; /**< [num_angles] parallactic angles of equal weight; a
                                round beam needs none */
    double reach; /**< the largest distance from the pointing centre [sine] */
    int threads;  /**< 0: one */
} tess_beam_mean_of;

/** A mean over channels and parallactic angles; 0 beyond its reach, and beyond the end
 *  of a formula or of a file. */
typedef struct tess_beam_mean tess_beam_mean;

/** Make a mean, the same on every rank. TESS_ERR_ALLOC; TESS_ERR_IO and TESS_ERR_INPUT
 * for a file, which makes no pair with another beam. Local. */
tess_status tess_beam_mean_create(const tess_primary_beam *beam,
                                  const tess_beam_mean_of *of, tess_beam_mean **mean);

/** The power at the direction cosines l (East) and m (North) from the pointing centre.
 * Local, thread-safe. */
double tess_beam_mean_power(const tess_beam_mean *mean, double l, double m);

/** The largest distance from the pointing centre at which |power| is `level` or more in
 * any direction [sine], out to `most`, of which it is a 4096th too large at most.
 * Local.
 */
double tess_beam_mean_reach(const tess_beam_mean *mean, double level, double most);

void tess_beam_mean_destroy(tess_beam_mean *mean); /**< NULL is fine. Local. */

/** From celestial (GCRS) to terrestrial (ITRF) axes at a time (UTC): IAU 2006/2000A
 * precession and nutation, no polar motion. UT1 − UTC, below 0.9 s, turns the sky by
 * 0.004 degrees. `need` says in a message what needs the time, like "a beam that turns
 * needs". TESS_ERR_INPUT: the time is out of UTC's range. Local. */
tess_status tess_earth_axes(double time_mjd_s, const char *need, double to_itrf[3][3]);

/** The parallactic angle: the angle at a direction (J2000) between North and the zenith
 * of a site (geocentric position), from North through East; positive West of the
 * meridian. UT1 is taken for UTC. TESS_ERR_INPUT: the time or the site is impossible.
 * Local. */
tess_status tess_parallactic_angle(double ra_rad, double dec_rad,
                                   const double site_m[3], double time_mjd_s,
                                   double *angle_rad);

/** The same at several sites, angle_rad[num_sites]. Local. */
tess_status tess_parallactic_angles(double ra_rad, double dec_rad, int64_t num_sites,
                                    const double (*site_m)[3], double time_mjd_s,
                                    double *angle_rad);

/* ---- voltages ---- */

/** What antennas do to the signals of their feeds: Jones matrices in the frame of the
 *  feeds, in some places and at the frequencies of a range. A formula gives the field
 * of each feed; X is the horizontal feed of MeerKAT. A file of powers gives their
 * roots. A file of voltages gives these over those of the middle: each feed is divided
 * by its own, and matrices are multiplied by the inverse of the middle's from the left.
 */
typedef struct tess_beam_voltages tess_beam_voltages;

/** Where voltages are wanted: x, y of tess_primary_beam.h; NaN: where they are 0. */
typedef struct tess_beam_places {
    int64_t num;
    const double (*place)[2]; /**< [num], copied */
    double freq_hz[2];        /**< the lowest and the highest frequency */
} tess_beam_places;

/** `beam` has to live as long. TESS_ERR_ALLOC; TESS_ERR_IO and TESS_ERR_INPUT for a
 *  file. Local. */
tess_status tess_beam_voltages_create(const tess_primary_beam *beam,
                                      const tess_beam_places *at,
                                      tess_beam_voltages **voltages);

/** How many numbers the matrices have: 1 for both feeds, 2 or 4. Local. */
int tess_beam_voltages_entries(const tess_beam_voltages *voltages);

/** The matrix (XX, XY, YX, YY: real and imaginary parts) of a place; a file's are
 *  interpolated linearly between its frequencies. Local, thread-safe. */
void tess_beam_voltages_jones(const tess_beam_voltages *voltages, int64_t place,
                              double freq_hz, double jones[4][2]);

void tess_beam_voltages_destroy(tess_beam_voltages *voltages); /**< NULL is fine. */

#endif
