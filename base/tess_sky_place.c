/* Direction cosines to right ascension and declination. */
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
