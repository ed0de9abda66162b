/* Computes where pixels and cells lie on the sky and on the uv plane. */
#include "tess_geom.h"

#include <math.h>
#include <string.h>

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
    return geom->l0 == 0 && geom->m0 == 0 && geom->turned_l == 0 &&
           geom->turned_m == 0 && tess_geom_scale_m(geom) == geom->scale_rad;
}

tess_geom_phase tess_geom_phase_of(const tess_geom *geom, double nm1_center, bool do_w)
{
    const double l = geom->turned_l, m = geom->turned_m;
    return (tess_geom_phase){.l = geom->l0 - l,
                             .m = geom->m0 - m,
                             .nm1 =
                                 do_w ? nm1_center - tess_geom_nm1(l * l + m * m) : 0};
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

/* Returns the distance of 0 from the interval between a and b. */
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

/* Finds the exponents of 2, 3, 5 and 7. Returns false if another prime divides n. */
static bool factors_of(int64_t n, int exponent[4])
{
    static const int prime[] = {2, 3, 5, 7};
    for (int k = 0; k < 4; ++k)
        for (exponent[k] = 0; n > 0 && n % prime[k] == 0; ++exponent[k])
            n /= prime[k];
    return n == 1;
}

int64_t tess_geom_smooth_size(int64_t n)
{
    int exponent[4];
    for (int64_t size = n + n % 2;; size += 2)
        if (size > 0 && factors_of(size, exponent)) return size;
}

/* Costs of FFTW 3.3.10 on a Zen 4: medians over even lengths from 1000 to 6000 in
 * single precision, rounded towards those of double precision, which differ less. There
 * is one for each power of two in a length, and one for each other prime, by the
 * prime's share of log n. */
double tess_geom_fft_slowness(int64_t n)
{
    static const double by_power_of_two[] = {2.2, 1.8, 1.3, 1.2, 1.15, 1.05, 1};
    static const double by_share[] = {0, 0.3, 0.1, 0.45}; /* of 2, 3, 5, 7 */
    static const double log_prime[] = {1, 1.585, 2.322, 2.807};
    enum { POWERS = sizeof by_power_of_two / sizeof *by_power_of_two };
    int exponent[4];
    double others = 1;
    if (n < 2 || !factors_of(n, exponent)) return by_power_of_two[0];
    for (int k = 1; k < 4; ++k)
        others += by_share[k] * exponent[k] * log_prime[k] / log2((double)n);
    return by_power_of_two[exponent[0] < POWERS ? exponent[0] : POWERS - 1] * others;
}

/* Lengths up to this factor times the least length are considered, because more cells
 * need more memory. */
static const double LONGEST = 1.08;
/* Share of a plane's time in which values are moved. It does not depend on the factors
 * of the plane's length. */
static const double MOVING = 0.4;

int64_t tess_geom_fft_size(int64_t n)
{
    int64_t best = tess_geom_smooth_size(n);
    double least = INFINITY;
    for (int64_t size = best; (double)size <= LONGEST * (double)n;
         size = tess_geom_smooth_size(size + 2)) {
        const double work = (double)size * (double)size *
                            (MOVING + (1 - MOVING) * tess_geom_fft_slowness(size));
        if (work >= least) continue;
        least = work;
        best = size;
    }
    return best;
}

/* ---- right ascension and declination ---- */

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

void tess_rotation_between(double ra0, double dec0, double ra1, double dec1,
                           double rotation[3][3])
{
    const double center[2][2] = {{ra0, dec0}, {ra1, dec1}};
    double basis[2][3][3]; /* rows: u East, v North, w towards the centre */
    for (int k = 0; k < 2; ++k) {
        const double sa = sin(center[k][0]), ca = cos(center[k][0]);
        const double sd = sin(center[k][1]), cd = cos(center[k][1]);
        const double b[3][3] = {
            {-sa, ca, 0}, {-sd * ca, -sd * sa, cd}, {cd * ca, cd * sa, sd}};
        memcpy(basis[k], b, sizeof b);
    }
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
            rotation[i][j] = 0;
            for (int k = 0; k < 3; ++k)
                rotation[i][j] += basis[1][i][k] * basis[0][j][k];
        }
}
