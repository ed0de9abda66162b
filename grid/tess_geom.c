#include "tess_geom.h"

#include <math.h>

double tess_geom_nm1(double r2)
{
    return r2 < 1.0 ? -r2 / (sqrt(1.0 - r2) + 1.0) : -1.0;
}

double tess_geom_scale_m(const tess_geom *geom)
{
    return geom->scale_m_rad > 0 ? geom->scale_m_rad : geom->scale_rad;
}

bool tess_geom_is_plain(const tess_geom *geom)
{
    return geom->l0 == 0 && geom->m0 == 0 && tess_geom_scale_m(geom) == geom->scale_rad;
}

double tess_geom_l(const tess_geom *geom, int64_t i)
{
    return geom->l0 - (double)(i - geom->nx / 2) * geom->scale_rad;
}

double tess_geom_m(const tess_geom *geom, int64_t j)
{
    return geom->m0 + (double)(j - geom->ny / 2) * tess_geom_scale_m(geom);
}

double tess_geom_nm1_min(const tess_geom *geom)
{
    const double l =
        fmax(fabs(tess_geom_l(geom, 0)), fabs(tess_geom_l(geom, geom->nx - 1)));
    const double m =
        fmax(fabs(tess_geom_m(geom, 0)), fabs(tess_geom_m(geom, geom->ny - 1)));
    return tess_geom_nm1(l * l + m * m);
}

/* Distance of 0 from the interval between a and b. */
static double distance(double a, double b)
{
    return a * b <= 0 ? 0 : fmin(fabs(a), fabs(b));
}

double tess_geom_nm1_max(const tess_geom *geom)
{
    const double l = distance(tess_geom_l(geom, 0), tess_geom_l(geom, geom->nx - 1));
    const double m = distance(tess_geom_m(geom, 0), tess_geom_m(geom, geom->ny - 1));
    return tess_geom_nm1(l * l + m * m);
}

int64_t tess_geom_fft_size(int64_t n)
{
    for (int64_t candidate = n + n % 2;; candidate += 2) {
        int64_t rest = candidate;
        static const int prime[] = {2, 3, 5, 7};
        for (int k = 0; k < 4; ++k)
            while (rest > 0 && rest % prime[k] == 0)
                rest /= prime[k];
        if (rest == 1) return candidate;
    }
}
