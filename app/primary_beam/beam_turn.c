/* Computes the parallactic angle of a direction as seen from a site. */
#include <erfa.h>
#include <erfam.h>
#include <math.h>

#include "tess_const.h"
#include "tess_primary_beam.h"

/* From celestial (GCRS) to terrestrial (ITRF) axes: IAU 2006/2000A precession and
 * nutation, no polar motion. UT1 − UTC, below 0.9 s, turns the sky by 0.004 degrees. */
static tess_status find_axes(double time_mjd_s, double to_itrf[3][3])
{
    tess_status status = TESS_OK;
    const double mjd = time_mjd_s / TESS_SECONDS_PER_DAY, day = floor(mjd);
    const double utc1 = TESS_MJD_ZERO_JD + day, utc2 = mjd - day;
    double tai1, tai2, tt1, tt2;
    /* above 0 is a warning of a year whose leap seconds are not known yet */
    if (!isfinite(mjd) || eraUtctai(utc1, utc2, &tai1, &tai2) < 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "MJD %.1f is out of range for UTC; a beam that turns needs times",
                  mjd);
    eraTaitt(tai1, tai2, &tt1, &tt2);
    eraC2t06a(tt1, tt2, utc1, utc2, 0.0, 0.0, to_itrf);
cleanup:
    return status;
}

tess_status tess_parallactic_angle(double ra_rad, double dec_rad,
                                   const double site_m[3], double time_mjd_s,
                                   double *angle_rad)
{
    tess_status status = TESS_OK;
    double to_itrf[3][3], lon, lat, height, zenith[3];
    double site[3] = {site_m[0], site_m[1], site_m[2]};
    const double length =
        sqrt(site[0] * site[0] + site[1] * site[1] + site[2] * site[2]);
    if (!(length > 1e6) || eraGc2gd(ERFA_WGS84, site, &lon, &lat, &height) != 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "the observation has no positions of antennas, which a "
                  "beam that turns needs");
    TESS_TRY(find_axes(time_mjd_s, to_itrf));
    double up[3] = {cos(lat) * cos(lon), cos(lat) * sin(lon), sin(lat)};
    eraTrxp(to_itrf, up, zenith);
    const double east = -sin(ra_rad) * zenith[0] + cos(ra_rad) * zenith[1];
    const double north = -sin(dec_rad) * cos(ra_rad) * zenith[0] -
                         sin(dec_rad) * sin(ra_rad) * zenith[1] +
                         cos(dec_rad) * zenith[2];
    *angle_rad = atan2(east, north);
cleanup:
    return status;
}
