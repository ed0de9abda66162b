/** @file tess_sky_place.h
 *  Right ascension and declination of direction cosines, and direction cosines of
 *  positions on the sky.
 */
#ifndef TESS_SKY_PLACE_H
#define TESS_SKY_PLACE_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Right ascension and declination [rad] of the direction cosines l, m and n − 1 from a
 * centre, in the SIN projection (Calabretta and Greisen 2002, A&A 395, 1077, section
 * 5.1.5). Local. */
void tess_sky_place(const double lmn1[3], double ra0_rad, double dec0_rad,
                    double *ra_rad, double *dec_rad);

/** The reverse: direction cosines of (ra, dec) from a centre, with n − 1 computed
 * without cancellation. Returns false if the direction is 90 degrees or more away from
 * the centre. Local. */
bool tess_sky_project(double ra_rad, double dec_rad, double ra0_rad, double dec0_rad,
                      double lmn1[3]);

#ifdef __cplusplus
}
#endif
#endif
