/* Converts direction cosines to right ascension and declination, and back. */
#include "tess_sky_place.h"

#include <math.h>

void tess_sky_place(const double lmn1[3], double ra0_rad, double dec0_rad,
                    double *ra_rad, double *dec_rad)
{
    const double n = 1 + lmn1[2];
    const double ahead = n * cos(dec0_rad) - lmn1[1] * sin(dec0_rad);
    *ra_rad = ra0_rad + atan2(lmn1[0], ahead);
    *dec_rad =
        atan2(lmn1[1] * cos(dec0_rad) + n * sin(dec0_rad), hypot(lmn1[0], ahead));
}

bool tess_sky_project(double ra_rad, double dec_rad, double ra0_rad, double dec0_rad,
                      double lmn1[3])
{
    const double d_ra = ra_rad - ra0_rad;
    const double sin_half_ra = sin(0.5 * d_ra);
    const double sin_half_dec = sin(0.5 * (dec_rad - dec0_rad));
    /* These forms avoid the cancellation of 1 − cos for small offsets. */
    const double turned = 2.0 * cos(dec_rad) * sin_half_ra * sin_half_ra;
    lmn1[0] = cos(dec_rad) * sin(d_ra);
    lmn1[1] = sin(dec_rad - dec0_rad) + turned * sin(dec0_rad);
    lmn1[2] = -2.0 * sin_half_dec * sin_half_dec - turned * cos(dec0_rad);
    return lmn1[2] > -1.0;
}
