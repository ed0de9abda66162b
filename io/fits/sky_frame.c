/* Converts directions of visibility sets and images in other frames than J2000 when
 * they are read, so that nothing beyond the readers knows of frames. */
#include "sky_frame.h"

#include <erfa.h>
#include <erfam.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <strings.h>

#include "tess_const.h"
#include "tess_log.h"

/* Distance to the point that shows where North is [rad]. Over this distance, the
 * E-terms of FK4 bend the direction by less than 1e-8 rad. */
static const double AHEAD_RAD = 1e-3;

/* Equinoxes of FK4 other than B1950 would need the precession of FK4. */
static const double YEAR_TOLERANCE = 0.01;

tess_status sky_frame_parse(const char *path, const char *radesys, double equinox,
                            sky_frame *frame_out)
{
    tess_status status = TESS_OK;
    sky_frame frame = {.system = SKY_FK5, .equinox = equinox};
    const bool has_equinox = equinox > 0;
    if (strcasecmp(radesys, "ICRS") == 0)
        frame = (sky_frame){.system = SKY_ICRS, .equinox = 2000.0};
    else if (strcasecmp(radesys, "FK4") == 0 ||
             (!*radesys && has_equinox && equinox < 1984.0))
        frame.system = SKY_FK4;
    else if (*radesys && strcasecmp(radesys, "FK5") != 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: its positions are in the frame %s (RADESYS); FK5, FK4 and ICRS "
                  "are read",
                  path, radesys);
    if (!(frame.equinox > 0)) frame.equinox = frame.system == SKY_FK4 ? 1950.0 : 2000.0;
    if (frame.system == SKY_FK4 && fabs(frame.equinox - 1950.0) > YEAR_TOLERANCE)
        TESS_FAIL(
            TESS_ERR_INPUT,
            "%s: its positions are in FK4 of equinox %.6g; of FK4, equinox 1950 is "
            "read",
            path, frame.equinox);
    *frame_out = frame;
cleanup:
    return status;
}

void sky_frame_name(const sky_frame *frame, char *name, size_t size)
{
    if (frame->system == SKY_ICRS)
        snprintf(name, size, "ICRS");
    else
        snprintf(name, size, "%c%.9g", frame->system == SKY_FK4 ? 'B' : 'J',
                 frame->equinox);
}

void sky_frame_ahead(const double place[2], double ahead[3])
{
    /* Forms the sum over the pole if the place is close to it. */
    double at[3], north[3];
    eraS2c(place[0], place[1], at);
    eraS2c(place[0], place[1] + 0.5 * TESS_PI, north);
    for (int k = 0; k < 3; ++k)
        ahead[k] = cos(AHEAD_RAD) * at[k] + sin(AHEAD_RAD) * north[k];
}

/* Returns a unit vector of the frame in J2000. */
static void convert(const sky_frame *frame, double time_mjd_s, const double from[3],
                    double to[3])
{
    double matrix[3][3], other[3][3], more[3][3], lon, lat;
    double unit[3] = {from[0], from[1], from[2]};
    if (frame->system == SKY_FK4) {
        const double epoch = eraEpb(ERFA_DJM0, time_mjd_s / TESS_SECONDS_PER_DAY);
        eraC2s(unit, &lon, &lat);
        eraFk45z(lon, lat, time_mjd_s > 0 ? epoch : 1950.0, &lon, &lat);
        eraS2c(lon, lat, to);
    } else if (frame->system == SKY_ICRS) {
        eraBp00(ERFA_DJ00, 0.0, matrix, other, more);
        eraRxp(matrix, unit, to);
    } else {
        double day, rest;
        eraEpj2jd(frame->equinox, &day, &rest);
        eraPmat76(day, rest, matrix);
        eraTrxp(matrix, unit, to);
    }
}

double sky_frame_to_j2000(const sky_frame *frame, double time_mjd_s, double place[2])
{
    double at[3], ahead[3], lon;
    if (frame->system == SKY_FK5 && fabs(frame->equinox - 2000.0) < YEAR_TOLERANCE)
        return 0;
    eraS2c(place[0], place[1], at);
    sky_frame_ahead(place, ahead);
    convert(frame, time_mjd_s, at, at);
    convert(frame, time_mjd_s, ahead, ahead);
    eraC2s(at, &lon, &place[1]);
    place[0] = eraAnp(lon);
    return eraPap(at, ahead);
}
