/* Parses values in text: numbers with units, angles, times, lists. */
#define _GNU_SOURCE
#include "tess_parse.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tess_const.h"
#include "tess_mem.h"

/* A unit and its size in SI units. A table of units ends with a NULL name. */
typedef struct unit {
    const char *name;
    double factor;
} unit;

static const unit angle_units[] = {
    {"uas", 1e-6 * TESS_RAD_PER_ASEC},  {"mas", 1e-3 * TESS_RAD_PER_ASEC},
    {"asec", TESS_RAD_PER_ASEC},        {"arcsec", TESS_RAD_PER_ASEC},
    {"amin", 60 * TESS_RAD_PER_ASEC},   {"arcmin", 60 * TESS_RAD_PER_ASEC},
    {"deg", TESS_RAD_PER_DEG},          {"rad", 1.0},
    {"\"", TESS_RAD_PER_ASEC},          {"'", 60 * TESS_RAD_PER_ASEC},
    {"\u2033", TESS_RAD_PER_ASEC},      /* double prime */
    {"\u2032", 60 * TESS_RAD_PER_ASEC}, /* prime */
    {"\u00B0", TESS_RAD_PER_DEG},       {NULL, 0},
};

static const unit memory_units[] = {
    {"B", 1},
    {"k", 1e3},
    {"kB", 1e3},
    {"K", 1e3},
    {"KB", 1e3},
    {"M", 1e6},
    {"MB", 1e6},
    {"G", 1e9},
    {"GB", 1e9},
    {"T", 1e12},
    {"TB", 1e12},
    {"KiB", 1024.0},
    {"Ki", 1024.0},
    {"MiB", 1048576.0},
    {"Mi", 1048576.0},
    {"GiB", 1073741824.0},
    {"Gi", 1073741824.0},
    {"TiB", 1099511627776.0},
    {"Ti", 1099511627776.0},
    {NULL, 0},
};

static const unit frequency_units[] = {
    {"", 1},      {"Hz", 1},     {"kHz", 1e3}, {"MHz", 1e6},
    {"GHz", 1e9}, {"THz", 1e12}, {NULL, 0},
};

static const unit velocity_units[] = {
    {"m/s", 1},
    {"km/s", 1e3},
    {NULL, 0},
};

static const unit flux_units[] = {
    {"", 1},
    {"Jy", 1},
    {"mJy", 1e-3},
    {"uJy", 1e-6},
    {"nJy", 1e-9},
    {"kJy", 1e3},
    {"Jy/beam", 1},
    {"mJy/beam", 1e-3},
    {"uJy/beam", 1e-6},
    {"nJy/beam", 1e-9},
    {NULL, 0},
};

static const unit duration_units[] = {
    {"", 1},
    {"s", 1},
    {"sec", 1},
    {"min", 60},
    {"m", 60},
    {"h", 3600},
    {"d", TESS_SECONDS_PER_DAY},
    {NULL, 0},
};

/* Reads the number at the start of `text`; `*end` is the text behind it. strtod() alone
 * would also accept hexadecimal numbers, "inf", "nan" and leading blanks. */
static int read_number(const char *text, double *value, const char **end)
{
    const char *digits = text + (*text == '+' || *text == '-');
    if (!isdigit((unsigned char)*digits) && *digits != '.') return -1;
    if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) return -1;
    char *stop = NULL;
    *value = strtod(text, &stop);
    if (stop == text || !isfinite(*value)) return -1;
    *end = stop;
    return 0;
}

static const unit *find_unit(const unit *units, const char *name, size_t length)
{
    for (; units->name; ++units)
        if (strlen(units->name) == length && strncmp(units->name, name, length) == 0)
            return units;
    return NULL;
}

/* Reads a number and a unit, with or without blanks between them. */
static int read_quantity(const char *text, const unit *units, double *value)
{
    const char *end = NULL;
    double number = 0;
    if (read_number(text, &number, &end)) return -1;
    const size_t blanks = strspn(end, " ");
    if (end[blanks]) end += blanks;
    const unit *u = find_unit(units, end, strlen(end));
    if (!u || !isfinite(number * u->factor)) return -1;
    *value = number * u->factor;
    return 0;
}

static int read_integer(const char *text, int64_t *value, const char **end)
{
    const char *digits = text + (*text == '+' || *text == '-');
    if (!isdigit((unsigned char)*digits)) return -1;
    char *stop = NULL;
    errno = 0;
    const long long number = strtoll(text, &stop, 10);
    if (errno == ERANGE) return -1;
    *value = number;
    *end = stop;
    return 0;
}

tess_status tess_parse_integer(const char *text, int64_t min, int64_t max,
                               int64_t *value)
{
    tess_status status = TESS_OK;
    const char *end = NULL;
    int64_t number = 0;
    if (read_integer(text, &number, &end) || *end)
        TESS_FAIL(TESS_ERR_USAGE, "'%s' is not a whole number", text);
    if (number < min)
        TESS_FAIL(TESS_ERR_USAGE, "'%s' is too small; give %lld or more", text,
                  (long long)min);
    if (number > max)
        TESS_FAIL(TESS_ERR_USAGE, "'%s' is too large; give at most %lld", text,
                  (long long)max);
    *value = number;
cleanup:
    return status;
}

tess_status tess_parse_number(const char *text, double min, double max, double *value)
{
    tess_status status = TESS_OK;
    const char *end = NULL;
    double number = 0;
    if (read_number(text, &number, &end) || *end)
        TESS_FAIL(TESS_ERR_USAGE, "'%s' is not a number", text);
    if (!(number > 0) && min == DBL_MIN)
        TESS_FAIL(TESS_ERR_USAGE, "'%s' is too small; give more than 0", text);
    if (!(number >= min))
        TESS_FAIL(TESS_ERR_USAGE, "'%s' is too small; give %g or more", text, min);
    if (!(number <= max))
        TESS_FAIL(TESS_ERR_USAGE, "'%s' is too large; give at most %g", text, max);
    *value = number;
cleanup:
    return status;
}

tess_status tess_parse_angle(const char *text, double *rad)
{
    tess_status status = TESS_OK;
    if (read_quantity(text, angle_units, rad))
        TESS_FAIL(TESS_ERR_USAGE,
                  "'%s' is not an angle with its unit; write it like 1.5asec (units: "
                  "uas, mas, asec, amin, deg, rad)",
                  text);
cleanup:
    return status;
}

tess_status tess_parse_scale(const char *text, double *rad)
{
    tess_status status = TESS_OK;
    double scale = 0;
    TESS_TRY(tess_parse_angle(text, &scale));
    if (!(scale > 0))
        TESS_FAIL(TESS_ERR_USAGE, "'%s' is not a pixel size; it must be above zero",
                  text);
    *rad = scale;
cleanup:
    return status;
}

tess_status tess_parse_size(const char *text, int64_t *nx, int64_t *ny)
{
    tess_status status = TESS_OK;
    int64_t x = 0, y = 0;
    const char *end = NULL;
    int bad = read_integer(text, &x, &end);
    if (!bad && *end == '\0')
        y = x;
    else if (!bad && (*end == ',' || *end == 'x' || *end == ' '))
        bad = read_integer(end + 1 + strspn(end + 1, " "), &y, &end);
    if (bad || *end)
        TESS_FAIL(TESS_ERR_USAGE,
                  "'%s' is not an image size; write 2048 or 2048,1024 (pixels)", text);
    if (x < 1 || y < 1)
        TESS_FAIL(TESS_ERR_USAGE, "'%s': an image needs at least one pixel", text);
    /* The bytes of one row and of one column must fit into an integer. */
    if (x > INT32_MAX || y > INT32_MAX)
        TESS_FAIL(TESS_ERR_USAGE, "'%s': at most %d pixels a side", text, INT32_MAX);
    *nx = x;
    *ny = y;
cleanup:
    return status;
}

tess_status tess_parse_memory(const char *text, int64_t *bytes)
{
    tess_status status = TESS_OK;
    double value = 0;
    if (read_quantity(text, memory_units, &value) || !(value >= 1) || value > 9e18)
        TESS_FAIL(TESS_ERR_USAGE,
                  "'%s' is not an amount of memory; write it like 8GB, 8GiB or 500M",
                  text);
    *bytes = (int64_t)value;
cleanup:
    return status;
}

tess_status tess_parse_frequency(const char *text, double *hz)
{
    tess_status status = TESS_OK;
    double value = 0;
    if (read_quantity(text, frequency_units, &value) || !(value > 0))
        TESS_FAIL(TESS_ERR_USAGE,
                  "'%s' is not a frequency; write it like 1.4GHz, 150MHz or 1.4e9 (Hz)",
                  text);
    *hz = value;
cleanup:
    return status;
}

tess_status tess_parse_velocity(const char *text, double *m_s)
{
    tess_status status = TESS_OK;
    double value = 0;
    if (read_quantity(text, velocity_units, &value))
        TESS_FAIL(TESS_ERR_USAGE,
                  "'%s' is not a velocity; write it like -120km/s or 50m/s", text);
    *m_s = value;
cleanup:
    return status;
}

tess_status tess_parse_flux(const char *text, double *jy)
{
    tess_status status = TESS_OK;
    double value = 0;
    if (read_quantity(text, flux_units, &value) || !(value >= 0))
        TESS_FAIL(TESS_ERR_USAGE,
                  "'%s' is not a flux; write it like 1.5mJy or 0.2 (Jy)", text);
    *jy = value;
cleanup:
    return status;
}

/* Reads "1h30m": pairs of a number and a unit. One number without a unit is seconds. */
static int read_duration(const char *text, double *seconds)
{
    double sum = 0;
    const char *rest = text;
    do {
        double number = 0;
        const char *name = NULL;
        if (read_number(rest, &number, &name) || number < 0) return -1;
        const size_t length = strspn(name, "smindech");
        if (length == 0 && (rest != text || *name)) return -1;
        const unit *u = find_unit(duration_units, name, length);
        if (!u) return -1;
        sum += number * u->factor;
        rest = name + length;
    } while (*rest);
    if (!(sum > 0) || !isfinite(sum)) return -1;
    *seconds = sum;
    return 0;
}

tess_status tess_parse_duration(const char *text, double *seconds)
{
    tess_status status = TESS_OK;
    if (read_duration(text, seconds))
        TESS_FAIL(TESS_ERR_USAGE,
                  "'%s' is not a time span; write it like 8h, 1h30m, 10min or 30 (s)",
                  text);
cleanup:
    return status;
}

/* Reads "[+-]A:B:C", or parts that end in the letters of `separators`, like "AhBmCs". B
 * and C must be below 60. The last parts may be missing. The value is in units of A. */
static int read_sexagesimal(const char *text, const char *separators, double *value)
{
    const double sign = *text == '-' ? -1 : 1;
    const char *rest = text + (*text == '+' || *text == '-');
    double sum = 0, weight = 1;
    int parts = 0;
    bool fraction = false;
    while (*rest && parts < 3) {
        double number = 0;
        const char *end = NULL;
        if (fraction || *rest == '+' || *rest == '-') return -1;
        if (read_number(rest, &number, &end)) return -1;
        if (parts > 0 && number >= 60) return -1;
        fraction = number != floor(number); /* only the last part may have one */
        sum += weight * number;
        weight /= 60;
        if (*end == ':' && parts < 2 && end[1])
            ++end;
        else if (*end && *end == separators[parts])
            ++end;
        else if (*end)
            return -1;
        else if (parts == 0)
            return -1; /* because a plain number has another meaning */
        rest = end;
        ++parts;
    }
    if (*rest || parts == 0) return -1;
    *value = sign * sum;
    return 0;
}

static int read_degrees(const char *text, double *rad)
{
    const char *end = NULL;
    double number = 0;
    if (read_number(text, &number, &end)) return -1;
    if (*end == '\0') {
        *rad = number * TESS_RAD_PER_DEG;
        return 0;
    }
    return read_quantity(text, angle_units, rad);
}

tess_status tess_parse_ra(const char *text, double *rad)
{
    tess_status status = TESS_OK;
    double value = 0;
    if (read_sexagesimal(text, "hms", &value) == 0)
        value *= 15 * TESS_RAD_PER_DEG;
    else if (read_degrees(text, &value))
        TESS_FAIL(TESS_ERR_USAGE,
                  "'%s' is not a right ascension; write it like 12:30:49.4, "
                  "12h30m49.4s or 187.7deg",
                  text);
    value = fmod(value, TESS_TWO_PI);
    if (value < 0) value += TESS_TWO_PI;
    *rad = value;
cleanup:
    return status;
}

tess_status tess_parse_dec(const char *text, double *rad)
{
    tess_status status = TESS_OK;
    double value = 0;
    if (read_sexagesimal(text, "dms", &value) == 0)
        value *= TESS_RAD_PER_DEG;
    else if (read_degrees(text, &value))
        TESS_FAIL(TESS_ERR_USAGE,
                  "'%s' is not a declination; write it like -30:43:16, -30d43m16s or "
                  "-30.7deg",
                  text);
    /* since "90deg" may be rounded to a number just above pi/2 */
    if (fabs(value) > TESS_PI / 2 * (1 + 1e-15))
        TESS_FAIL(TESS_ERR_USAGE,
                  "'%s' is not a declination; it must be within -90deg and 90deg",
                  text);
    *rad = value;
cleanup:
    return status;
}

tess_status tess_parse_radec(const char *text, double *ra_rad, double *dec_rad)
{
    tess_status status = TESS_OK;
    double ra = 0, dec = 0;
    char part[64];
    const char *comma = strchr(text, ',');
    const size_t length = comma ? (size_t)(comma - text) : 0;
    if (!comma || length >= sizeof part)
        TESS_FAIL(TESS_ERR_USAGE,
                  "'%s' is not a position; write RA,DEC like 12:30:49.4,+12:23:28 or "
                  "187.7deg,12.4deg",
                  text);
    memcpy(part, text, length);
    part[length] = '\0';
    TESS_TRY(tess_parse_ra(part, &ra));
    TESS_TRY(tess_parse_dec(comma + 1, &dec));
    *ra_rad = ra;
    *dec_rad = dec;
cleanup:
    return status;
}

tess_status tess_parse_range(const char *text, int64_t *first, int64_t *end)
{
    tess_status status = TESS_OK;
    int64_t from = 0, to = 0;
    const char *rest = text;
    int bad = 0;
    if (*rest != ':') bad = read_integer(rest, &from, &rest);
    bad = bad || *rest != ':';
    if (!bad && rest[1]) {
        bad = read_integer(rest + 1, &to, &rest) || *rest || to <= from;
    }
    if (bad || from < 0 || strcmp(text, ":") == 0)
        TESS_FAIL(
            TESS_ERR_USAGE,
            "'%s' is not a range; write A:B with 0 <= A < B (B excluded), A: or :B",
            text);
    *first = from;
    *end = to;
cleanup:
    return status;
}

/* Reads a length in wavelengths like "0.5k". */
static int read_wavelengths(const char *text, double *value, const char **end)
{
    if (read_number(text, value, end) || *value < 0) return -1;
    if (**end == 'k' || **end == 'M') {
        *value *= **end == 'k' ? 1e3 : 1e6;
        ++*end;
    }
    return isfinite(*value) ? 0 : -1;
}

tess_status tess_parse_uvrange(const char *text, double *min, double *max)
{
    tess_status status = TESS_OK;
    double from = 0, to = 0;
    const char *rest = text;
    int bad = 0;
    if (*rest != ':') bad = read_wavelengths(rest, &from, &rest);
    bad = bad || *rest != ':';
    if (!bad && rest[1])
        bad = read_wavelengths(rest + 1, &to, &rest) || *rest || to <= from;
    if (bad || strcmp(text, ":") == 0)
        TESS_FAIL(
            TESS_ERR_USAGE,
            "'%s' is not a range of baselines in wavelengths; write MIN:MAX, MIN: "
            "or :MAX like 100:20k",
            text);
    *min = from;
    *max = to;
cleanup:
    return status;
}

/* Reads one entry of a list: "3" or "0-3". */
static int read_span(const char *text, int64_t *from, int64_t *to, const char **end)
{
    if (!isdigit((unsigned char)*text) || read_integer(text, from, end)) return -1;
    *to = *from;
    if (**end == '-') {
        const char *next = *end + 1;
        if (!isdigit((unsigned char)*next) || read_integer(next, to, end)) return -1;
    }
    return *to >= *from && *to < INT32_MAX && (**end == ',' || **end == '\0') ? 0 : -1;
}

static bool is_listed(const int *values, int count, int value)
{
    for (int k = 0; k < count; ++k)
        if (values[k] == value) return true;
    return false;
}

tess_status tess_parse_list(const char *text, int capacity, int *values, int *count)
{
    tess_status status = TESS_OK;
    int *found = tess_alloc(capacity, sizeof *found);
    int number = 0;
    const char *rest = text;
    if (!found) TESS_FAIL(TESS_ERR_ALLOC, "list of %d numbers", capacity);
    for (;;) {
        int64_t from = 0, to = 0;
        if (read_span(rest, &from, &to, &rest))
            TESS_FAIL(TESS_ERR_USAGE, "'%s' is not a list; write it like 0,2,5-7",
                      text);
        for (int64_t value = from; value <= to; ++value) {
            if (is_listed(found, number, (int)value))
                TESS_FAIL(TESS_ERR_USAGE, "'%s' names %lld twice", text,
                          (long long)value);
            if (number == capacity)
                TESS_FAIL(TESS_ERR_USAGE, "'%s' names more than %d numbers", text,
                          capacity);
            found[number++] = (int)value;
        }
        if (*rest == '\0') break;
        ++rest;
    }
    memcpy(values, found, (size_t)number * sizeof *found);
    *count = number;
cleanup:
    tess_free(found);
    return status;
}
