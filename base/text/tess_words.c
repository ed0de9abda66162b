/* Writes times, positions, angles and fluxes in the words of the log. */
#define _GNU_SOURCE
#include "tess_words.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tess_const.h"
#include "tess_log.h"

void tess_words_tell(const char *label, const char *format, ...)
{
    char text[1500], name[72];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(name, sizeof name, "%s:", label);
    tess_log_info("%-14s %s", name, text);
}

void tess_words_time(double mjd_s, char *text, size_t size)
{
    const double unix_zero_mjd = 40587;
    const double tenths = round(10 * (mjd_s - unix_zero_mjd * TESS_SECONDS_PER_DAY));
    if (!(fabs(tenths) < 1e13)) {
        snprintf(text, size, "unknown");
        return;
    }
    const double whole = floor(tenths / 10);
    const time_t seconds = (time_t)whole;
    struct tm parts;
    char stamp[40];
    gmtime_r(&seconds, &parts);
    strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", &parts);
    snprintf(text, size, "%s.%d", stamp, (int)(tenths - 10 * whole));
}

/* Write a number in sexagesimal form. It is rounded once, so that no part reads 60. */
static void sexagesimal(double value, int decimals, char *text, size_t size)
{
    const double scale = pow(10, decimals), units = round(fabs(value) * 3600 * scale);
    const double seconds = fmod(units, 60 * scale) / scale;
    const long long minutes = (long long)(units / (60 * scale));
    const int width = decimals > 0 ? decimals + 3 : 2;
    const int length =
        snprintf(text, size, "%s%02lld:%02lld:%0*.*f", value < 0 ? "-" : "",
                 minutes / 60, minutes % 60, width, decimals, seconds);
    if (length < 0 || (size_t)length >= size) snprintf(text, size, "unknown");
}

void tess_words_ra(double rad, int decimals, char *text, size_t size)
{
    double hours = fmod(rad / TESS_RAD_PER_DEG / 15, 24);
    if (hours < 0) hours += 24;
    sexagesimal(hours, decimals, text, size);
}

void tess_words_dec(double rad, int decimals, char *text, size_t size)
{
    sexagesimal(rad / TESS_RAD_PER_DEG, decimals, text, size);
}

const char *tess_words_angle_unit(double rad, double *unit_rad)
{
    static const struct {
        const char *name;
        double rad;
        double least; /* smallest number in this unit: 100 arcsec is usual, 1.7 arcmin
                         is not */
    } units[] = {{"deg", TESS_RAD_PER_DEG, 3},
                 {"arcmin", 60 * TESS_RAD_PER_ASEC, 3},
                 {"arcsec", TESS_RAD_PER_ASEC, 0.1},
                 {"mas", 1e-3 * TESS_RAD_PER_ASEC, 0.1},
                 {"uas", 1e-6 * TESS_RAD_PER_ASEC, 0}};
    size_t k = 0;
    while (k < 4 && fabs(rad) < units[k].least * units[k].rad)
        ++k;
    *unit_rad = units[k].rad;
    return units[k].name;
}

void tess_words_flux(double jy, int digits, char *text, size_t size)
{
    static const struct {
        const char *name;
        double jy;
    } units[] = {{"Jy", 1}, {"mJy", 1e-3}, {"uJy", 1e-6}, {"nJy", 1e-9}, {"Jy", 1}};
    size_t k = 0; /* very small values are written in Jy, with an exponent */
    while (k < 4 && fabs(jy) < units[k].jy * 0.9999)
        ++k;
    if (!(fabs(jy) > 0)) k = 0;
    snprintf(text, size, "%.*g %s/beam", digits, jy / units[k].jy, units[k].name);
}

void tess_words_band(double low_hz, double high_hz, char *text, size_t size)
{
    const double unit = high_hz >= 1e10 ? 1e9 : 1e6;
    const char *name = high_hz >= 1e10 ? "GHz" : "MHz";
    char low[32], high[32];
    snprintf(low, sizeof low, "%.7g", low_hz / unit);
    snprintf(high, sizeof high, "%.7g", high_hz / unit);
    if (strcmp(low, high) == 0)
        snprintf(text, size, "%s %s", low, name);
    else
        snprintf(text, size, "%s to %s %s", low, high, name);
}

void tess_words_range(int64_t first, int64_t end, char *text, size_t size)
{
    const int length = snprintf(text, size, "%" PRId64 ":", first);
    if (end > 0 && length > 0 && (size_t)length < size)
        snprintf(text + length, size - (size_t)length, "%" PRId64, end);
}
