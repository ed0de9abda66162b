/* Doppler factors between the frame of an observatory and standards of rest. They are
 * made of the legs that casacore's measures have (MFrequency: TOPO to GEO to BARY to
 * LSRK, and BARY to LSRD to GALACTO). Each leg has the factor of the radial velocity
 * alone, sqrt((1 - v/c) / (1 + v/c)). The square of the transverse velocity, which this
 * leaves out, would be a constant of 5e-9 on the Earth's orbit.
 *
 * A part of 1e-9, which is 1 Hz at 1 GHz, is .3 m/s. The orbit counts with 30 km/s, the
 * rotation of the Earth with .46 km/s. Of what is left out, UT1 - UTC changes the
 * rotation by .03 m/s at most, and polar motion by .001 m/s. The position of the array
 * has to be right to 4 km. Aberration turns the direction that the rotation is seen in;
 * it is taken into account with its .05 m/s. ERFA's velocity of the Earth is right to
 * .005 m/s (eraEpv00), and the short nutation of IAU 2000B suffices; casacore's series
 * deviate from it by up to .2 m/s. */
#include "tess_doppler.h"

#include <erfa.h>
#include <erfam.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "tess_const.h"
#include "tess_log.h"

/* Velocities of the Sun in J2000 [m/s]. LSRK: 20 km/s towards right ascension 18 h and
 * declination +30 degrees of B1900 (Gordon 1976). LSRD: (9, 12, 7) km/s towards the
 * centre of the Galaxy, its rotation and its North Pole (Delhaye 1965). The LSRD moves
 * by 220 km/s towards galactic longitude 90 degrees, latitude 0 (Kerr and Lynden-Bell
 * 1986). These are the values of casacore's measures. */
static const double SUN_IN_LSRK[3] = {290.0, -17317.26, 10001.42};
static const double SUN_IN_LSRD[3] = {-638.23, -14585.43, 7801.16};
static const double LSRD_IN_GALAXY[3] = {108704.08, -97862.51, 164336.09};

/* All arrays lie between these distances from the middle of the Earth. */
static const double LEAST_RADIUS_M = 1e5, MOST_RADIUS_M = 7e6;

static const struct {
    const char *name, *specsys;
} names[] = {[TESS_TOPO] = {"topo", "TOPOCENT"},
             [TESS_BARY] = {"bary", "BARYCENT"},
             [TESS_LSRK] = {"lsrk", "LSRK"},
             [TESS_GALACTO] = {"galacto", "GALACTOC"}};

tess_status tess_spectral_frame_parse(const char *text, tess_spectral_frame *frame)
{
    tess_status status = TESS_OK;
    for (size_t k = 0; k < sizeof names / sizeof *names; ++k)
        if (strcasecmp(text, names[k].name) == 0) {
            *frame = (tess_spectral_frame)k;
            return TESS_OK;
        }
    TESS_FAIL(TESS_ERR_USAGE, "'%s' is none of topo, lsrk, bary and galacto", text);
cleanup:
    return status;
}

tess_spectral_frame tess_spectral_frame_like(const char *text)
{
    for (size_t k = 0; k < sizeof names / sizeof *names; ++k)
        if (strncasecmp(text, names[k].name, strlen(names[k].name)) == 0)
            return (tess_spectral_frame)k;
    return TESS_TOPO;
}

const char *tess_spectral_frame_name(tess_spectral_frame frame)
{
    return names[frame].name;
}

const char *tess_spectral_frame_specsys(tess_spectral_frame frame)
{
    return names[frame].specsys;
}

/* The factor of an observer that moves towards the source with part `beta` of the
 * speed of light, to a frame that does not. */
static double leg(double beta)
{
    return sqrt((1 - beta) / (1 + beta));
}

static double part_of_light(const double velocity_m_s[3], const double direction[3])
{
    double velocity[3] = {velocity_m_s[0], velocity_m_s[1], velocity_m_s[2]};
    double towards[3] = {direction[0], direction[1], direction[2]};
    return eraPdp(velocity, towards) / TESS_SPEED_OF_LIGHT_M_S;
}

/* The velocity of the middle of the Earth in the barycentric frame, and that of the
 * site in the frame of the Earth's middle [m/s]. */
static tess_status motion_of(const tess_doppler_view *view, double time_mjd_s,
                             double orbit[3], double rotation[3])
{
    tess_status status = TESS_OK;
    const double rad_per_s =
        TESS_TWO_PI * TESS_TURNS_PER_UT1_DAY / TESS_SECONDS_PER_DAY;
    const double utc = time_mjd_s / TESS_SECONDS_PER_DAY;
    double tai1, tai2, tt1, tt2, heliocentric[2][3], barycentric[2][3], to_itrf[3][3];
    double turning[3] = {-rad_per_s * view->site_m[1], rad_per_s * view->site_m[0], 0};
    const double radius_m =
        hypot(hypot(view->site_m[0], view->site_m[1]), view->site_m[2]);
    if (!(radius_m > LEAST_RADIUS_M && radius_m < MOST_RADIUS_M))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: the position of its array is not known, so that frequencies "
                  "cannot be converted to another frame; use --frame topo",
                  view->path);
    if (!isfinite(utc) || eraUtctai(TESS_MJD_ZERO_JD, utc, &tai1, &tai2) < 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: a time of MJD %.9g days has no Doppler factor; use --frame topo",
                  view->path, utc);
    eraTaitt(tai1, tai2, &tt1, &tt2);
    eraEpv00(tt1, tt2, heliocentric, barycentric); /* 1: its dates are out of range */
    eraC2t00b(tt1, tt2, TESS_MJD_ZERO_JD, utc, 0.0, 0.0, to_itrf);
    eraTrxp(to_itrf, turning, rotation);
    eraSxp(ERFA_DAU / TESS_SECONDS_PER_DAY, barycentric[1], orbit);
cleanup:
    return status;
}

/* The direction in which an observer with this velocity sees the source: aberration to
 * the first order of v/c. */
static void aberrate(const double direction[3], const double velocity_m_s[3],
                     double apparent[3])
{
    double length;
    for (int k = 0; k < 3; ++k)
        apparent[k] = direction[k] + velocity_m_s[k] / TESS_SPEED_OF_LIGHT_M_S;
    eraPn(apparent, &length, apparent);
}

tess_status tess_doppler_factor(tess_spectral_frame frame,
                                const tess_doppler_view *view, double time_mjd_s,
                                double *factor)
{
    tess_status status = TESS_OK;
    double orbit[3], rotation[3], direction[3], apparent[3], product;
    if (frame == TESS_TOPO) {
        *factor = 1;
        return TESS_OK;
    }
    TESS_TRY(motion_of(view, time_mjd_s, orbit, rotation));
    eraS2c(view->ra_rad, view->dec_rad, direction);
    aberrate(direction, orbit, apparent);
    product =
        leg(part_of_light(rotation, apparent)) * leg(part_of_light(orbit, direction));
    if (frame == TESS_LSRK) product *= leg(part_of_light(SUN_IN_LSRK, direction));
    if (frame == TESS_GALACTO)
        product *= leg(part_of_light(SUN_IN_LSRD, direction)) *
                   leg(part_of_light(LSRD_IN_GALAXY, direction));
    *factor = product;
cleanup:
    return status;
}

double tess_doppler_velosys(double factor)
{
    const double square = factor * factor;
    return TESS_SPEED_OF_LIGHT_M_S * (square - 1) / (square + 1);
}

double tess_velocity_of(tess_velocity kind, double rest_hz, double freq_hz)
{
    return TESS_SPEED_OF_LIGHT_M_S *
           (kind == TESS_OPTICAL ? rest_hz / freq_hz - 1 : 1 - freq_hz / rest_hz);
}

double tess_velocity_freq(tess_velocity kind, double rest_hz, double velocity_m_s)
{
    const double beta = velocity_m_s / TESS_SPEED_OF_LIGHT_M_S;
    return kind == TESS_OPTICAL ? rest_hz / (1 + beta) : rest_hz * (1 - beta);
}
