/* Knows the units of angles and frequencies in FITS headers, and which axes are
 * longitudes. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "tess_const.h"
#include "tess_doppler.h"
#include "tess_fits_array.h"

double tess_fits_degrees(double rad)
{
    const double degrees = rad / TESS_RAD_PER_DEG;
    const double rounded = round(degrees * 1e12) / 1e12;
    return fabs(rounded - degrees) < 1e-9 / 3600 ? rounded : degrees;
}

double tess_fits_longitude(double rad)
{
    const double turn = 360;
    double degrees = fmod(tess_fits_degrees(rad), turn);
    if (degrees < 0) degrees += turn;
    return degrees >= turn ? 0 : degrees; /* a tiny negative one rounds to 360 */
}

double tess_fits_unit_rad(const char *unit)
{
    static const struct {
        const char *name;
        double rad;
    } units[] = {{"", TESS_RAD_PER_DEG},
                 {"deg", TESS_RAD_PER_DEG},
                 {"degree", TESS_RAD_PER_DEG},
                 {"degrees", TESS_RAD_PER_DEG},
                 {"rad", 1.0},
                 {"arcmin", 60 * TESS_RAD_PER_ASEC},
                 {"arcsec", TESS_RAD_PER_ASEC},
                 {"mas", 1e-3 * TESS_RAD_PER_ASEC},
                 {"uas", 1e-6 * TESS_RAD_PER_ASEC}};
    for (size_t k = 0; k < sizeof units / sizeof *units; ++k)
        if (strcasecmp(unit, units[k].name) == 0) return units[k].rad;
    return 0;
}

double tess_fits_unit_hz(const char *unit)
{
    static const struct {
        const char *name;
        double hz;
    } units[] = {{"", 1}, {"Hz", 1}, {"kHz", 1e3}, {"MHz", 1e6}, {"GHz", 1e9}};
    for (size_t k = 0; k < sizeof units / sizeof *units; ++k)
        if (strcasecmp(unit, units[k].name) == 0) return units[k].hz;
    return 0;
}

/* The kind of velocity that an axis is linear in. A longer name says that it is linear
 * in something else (FITS paper III, section 4.3). */
static tess_velocity velocity_of(const tess_fits_axis *axis)
{
    if (strcasecmp(axis->type, "VRAD") == 0) return TESS_RADIO;
    return strcasecmp(axis->type, "VOPT") == 0 ? TESS_OPTICAL : TESS_NO_VELOCITY;
}

bool tess_fits_is_spectral(const tess_fits_axis *axis)
{
    return strncasecmp(axis->type, "FREQ", 4) == 0 ||
           velocity_of(axis) != TESS_NO_VELOCITY;
}

double tess_fits_axis_hz(const tess_fits_axis *axis, double rest_hz, double pixel)
{
    const double value = axis->value + (pixel - axis->pixel) * axis->step;
    const tess_velocity kind = velocity_of(axis);
    if (kind == TESS_NO_VELOCITY) return value * tess_fits_unit_hz(axis->unit);
    const bool in_km = strcasecmp(axis->unit, "km/s") == 0;
    if (!(rest_hz > 0) || (!in_km && strcasecmp(axis->unit, "m/s") != 0)) return 0;
    return tess_velocity_freq(kind, rest_hz, in_km ? 1e3 * value : value);
}

/* Whether an axis is a longitude: "RA" and "RA---SIN", "GLON-CAR" (xLON) and "HPLN-TAN"
 * (xyLN); FITS paper II (Calabretta & Greisen 2002), section 2.1. */
static bool is_longitude(const char *type)
{
    if (strcasecmp(type, "RA") == 0 || strncasecmp(type, "RA--", 4) == 0) return true;
    if (strlen(type) < 4) return false;
    return (strncasecmp(type + 1, "LON", 3) == 0 ||
            strncasecmp(type + 2, "LN", 2) == 0) &&
           (type[4] == '\0' || type[4] == '-');
}

double tess_fits_turn(const tess_fits_axis *axis)
{
    const double unit_rad = tess_fits_unit_rad(axis->unit);
    return is_longitude(axis->type) && unit_rad > 0 ? TESS_TWO_PI / unit_rad : 0;
}
