/** @file sim_uvw.h  (private to app/simulate/)
 *  Where an array and a direction are with respect to each other at a moment.
 *
 *  IAU 2006/2000A precession and nutation, Earth rotation angle from UT1, no polar
 *  motion. Aberration and light deflection are included in where w points: baselines
 *  are projected on the apparent direction, with East and North carried there from the
 *  J2000 (ICRS) phase centre along the great circle, as correlators do. (The part of
 *  aberration that stretches a field by up to 1e-4 is left out, as everywhere.)
 *  A MeerKAT observation's uvw agree with this to 2e-6.
 *
 *  uvw is position(antenna1) - position(antenna2), as VLA, MeerKAT and ALMA have it,
 *  for which V = sum S exp(+2 pi i (u l + v m + w (n - 1))).
 */
#ifndef TESS_SIM_UVW_H
#define TESS_SIM_UVW_H

#include "tess_status.h"

/** Rows: East, North and towards the phase centre, as geocentric (ITRF) directions, so
 *  that uvw = axis · (xyz1 - xyz2). */
typedef struct tess_uvw_frame {
    double axis[3][3];
    double hour_angle_rad; /**< of the phase centre at the site, in [-pi, pi) */
    double elevation_rad;
} tess_uvw_frame;

/** A direction and a site. */
typedef struct tess_uvw_target {
    double ra_rad, dec_rad; /**< J2000 (ICRS) */
    double site_m[3];       /**< geocentric */
    double dut1_s;          /**< UT1 - UTC */
} tess_uvw_target;

/** Frame at a UTC time [MJD seconds]. TESS_ERR_USAGE for a year ERFA has no time scale
 *  for. Local, thread-safe. */
tess_status tess_uvw_frame_at(const tess_uvw_target *target, double time_mjd_s,
                              tess_uvw_frame *frame);

/** First time from `start_mjd_s` on when the target has this hour angle. Local. */
tess_status tess_uvw_time_of(const tess_uvw_target *target, double hour_angle_rad,
                             double start_mjd_s, double *time_mjd_s);

#endif
