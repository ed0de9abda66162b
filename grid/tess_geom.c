#include "tess_geom.h"

#include <math.h>

double tess_geom_nm1(double r2)
{
    return r2 < 1.0 ? -r2 / (sqrt(1.0 - r2) + 1.0) : -1.0;
}

double tess_geom_l(const tess_geom *geom, int64_t i)
{
    return -(double)(i - geom->nx / 2) * geom->scale_rad;
}

double tess_geom_m(const tess_geom *geom, int64_t j)
{
    return (double)(j - geom->ny / 2) * geom->scale_rad;
}

double tess_geom_nm1_min(const tess_geom *geom)
{
    /* ⌊n/2⌋ pixels lie below the reference pixel, no fewer than above it */
    const double l = tess_geom_l(geom, 0), m = tess_geom_m(geom, 0);
    return tess_geom_nm1(l * l + m * m);
}

int64_t tess_geom_fft_size(int64_t n)
{
    for (int64_t candidate = n + n % 2;; candidate += 2) {
        int64_t rest = candidate;
        static const int prime[] = {2, 3, 5, 7};
        for (int k = 0; k < 4; ++k)
            while (rest > 0 && rest % prime[k] == 0) rest /= prime[k];
        if (rest == 1) return candidate;
    }
}
