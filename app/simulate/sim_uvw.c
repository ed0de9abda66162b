/* Computes the frame of the baselines for a direction and a time, and the time of an
 * hour angle. */
#include "sim_uvw.h"

#include <erfa.h>
#include <erfam.h>
#include <math.h>
#include <string.h>

#include "tess_const.h"

/* What depends on time alone. */
typedef struct earth_state {
    double to_itrf[3][3]; /* GCRS to ITRF */
    eraASTROM astrom;     /* for deflection and aberration, geocentric observer */
} earth_state;

static tess_status find_earth(double time_mjd_s, double dut1_s, earth_state *earth)
{
    tess_status status = TESS_OK;
    const double mjd = time_mjd_s / TESS_SECONDS_PER_DAY;
    const double day = floor(mjd);
    const double utc1 = TESS_MJD_ZERO_JD + day, utc2 = mjd - day;
    double tai1, tai2, tt1, tt2, ut11, ut12, cio;
    /* +1 warns of a year whose leap seconds are not known yet; that is fine here. */
    if (eraUtctai(utc1, utc2, &tai1, &tai2) < 0 ||
        eraUtcut1(utc1, utc2, dut1_s, &ut11, &ut12) < 0)
        TESS_FAIL(TESS_ERR_USAGE, "MJD %.1f is out of range for UTC", mjd);
    eraTaitt(tai1, tai2, &tt1, &tt2);
    eraC2t06a(tt1, tt2, ut11, ut12, 0.0, 0.0, earth->to_itrf);
    eraApci13(tt1, tt2, &earth->astrom, &cio);
cleanup:
    return status;
}

static void axes_of(double ra, double dec, double axis[3][3])
{
    const double east[3] = {-sin(ra), cos(ra), 0.0};
    const double north[3] = {-sin(dec) * cos(ra), -sin(dec) * sin(ra), cos(dec)};
    const double ahead[3] = {cos(dec) * cos(ra), cos(dec) * sin(ra), sin(dec)};
    memcpy(axis[0], east, sizeof east);
    memcpy(axis[1], north, sizeof north);
    memcpy(axis[2], ahead, sizeof ahead);
}

/* Apply to `v` the smallest rotation that takes unit vector a to b. */
static void rotate_between(double a[3], double b[3], double v[3])
{
    /* R = 1 + K + K^2 / (1 + a·b), K = [a × b]_x. */
    double axis[3], once[3], twice[3];
    eraPxp(a, b, axis);
    const double scale = 1.0 / (1.0 + eraPdp(a, b));
    eraPxp(axis, v, once);
    eraPxp(axis, once, twice);
    for (int k = 0; k < 3; ++k)
        v[k] += once[k] + scale * twice[k];
}

tess_status tess_uvw_frame_at(const tess_uvw_target *target, double time_mjd_s,
                              tess_uvw_frame *frame)
{
    tess_status status = TESS_OK;
    earth_state earth;
    TESS_TRY(find_earth(time_mjd_s, target->dut1_s, &earth));
    double axis[3][3], deflected[3], apparent[3];
    axes_of(target->ra_rad, target->dec_rad, axis);
    eraLdsun(axis[2], earth.astrom.eh, earth.astrom.em, deflected);
    eraAb(deflected, earth.astrom.v, earth.astrom.em, earth.astrom.bm1, apparent);
    double natural[3];
    memcpy(natural, axis[2], sizeof natural);
    for (int k = 0; k < 3; ++k) {
        rotate_between(natural, apparent, axis[k]);
        eraRxp(earth.to_itrf, axis[k], frame->axis[k]);
    }
    double lon, lat, height;
    double site[3] = {target->site_m[0], target->site_m[1], target->site_m[2]};
    if (eraGc2gd(ERFA_WGS84, site, &lon, &lat, &height) != 0)
        TESS_FAIL(TESS_ERR_INTERNAL, "site position");
    const double *ahead = frame->axis[2];
    const double up[3] = {cos(lat) * cos(lon), cos(lat) * sin(lon), sin(lat)};
    const double sine = up[0] * ahead[0] + up[1] * ahead[1] + up[2] * ahead[2];
    frame->elevation_rad = asin(fmax(-1.0, fmin(1.0, sine)));
    frame->hour_angle_rad = eraAnpm(lon - atan2(ahead[1], ahead[0]));
cleanup:
    return status;
}

tess_status tess_uvw_time_of(const tess_uvw_target *target, double hour_angle_rad,
                             double start_mjd_s, double *time_mjd_s)
{
    tess_status status = TESS_OK;
    const double rad_per_s =
        TESS_TWO_PI * TESS_TURNS_PER_UT1_DAY / TESS_SECONDS_PER_DAY;
    double time = start_mjd_s;
    /* The first step goes forward by up to a day. The others correct it: precession
     * moves the target by less than 0.2 arcsec a day, so that they vanish at once. */
    for (int i = 0; i < 4; ++i) {
        tess_uvw_frame frame;
        TESS_TRY(tess_uvw_frame_at(target, time, &frame));
        const double missing = hour_angle_rad - frame.hour_angle_rad;
        time += (i == 0 ? eraAnp(missing) : eraAnpm(missing)) / rad_per_s;
    }
    *time_mjd_s = time;
cleanup:
    return status;
}
