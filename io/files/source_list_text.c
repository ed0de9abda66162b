/* Writes lists of sources as text, as DP3 and WSClean read it. */
#include "tess_source_list.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tess_const.h"
#include "tess_mem.h"

/* Positions have these units: 1e-9 s of right ascension, and 1e-8 arcsec of
 * declination. */
static const double RA_UNITS_PER_S = 1e9, DEC_UNITS_PER_ARCSEC = 1e8;
enum { RA_DIGITS = 9, DEC_DIGITS = 8 };

enum { MOST_SCALES = 64 };

/* A text that grows; after a failure it stays as it is. */
typedef struct growing {
    char *text;
    int64_t length, capacity;
    bool failed;
} growing;

__attribute__((format(printf, 2, 3))) static void append(growing *out,
                                                         const char *format, ...)
{
    char piece[512];
    va_list values;
    va_start(values, format);
    const int length = vsnprintf(piece, sizeof piece, format, values);
    va_end(values);
    void *text = out->text;
    if (out->failed || length < 0 || length >= (int)sizeof piece ||
        tess_grow(&text, &out->capacity, out->length + length + 1, 1)) {
        out->failed = true;
        return;
    }
    out->text = text;
    memcpy(out->text + out->length, piece, (size_t)length + 1);
    out->length += length;
}

/* Splits `units`, of which `per_second` are a second of time or arc, into three parts.
 */
static void append_parts(growing *out, int64_t units, double per_second, int digits,
                         char separator)
{
    const int64_t second = (int64_t)per_second, minute = 60 * second;
    append(out, "%02lld%c%02lld%c%02lld.%0*lld", (long long)(units / (60 * minute)),
           separator, (long long)(units / minute % 60), separator,
           (long long)(units / second % 60), digits, (long long)(units % second));
}

static void append_position(growing *out, const tess_listed_source *source)
{
    const int64_t day = (int64_t)(TESS_SECONDS_PER_DAY * RA_UNITS_PER_S);
    double turns = source->ra_rad / TESS_TWO_PI;
    turns -= floor(turns);
    const int64_t ra = llround(turns * TESS_SECONDS_PER_DAY * RA_UNITS_PER_S) % day;
    const int64_t dec =
        llround(fabs(source->dec_rad) / TESS_RAD_PER_DEG * 3600 * DEC_UNITS_PER_ARCSEC);
    append_parts(out, ra, RA_UNITS_PER_S, RA_DIGITS, ':');
    append(out, ",%s", source->dec_rad < 0 ? "-" : "");
    append_parts(out, dec, DEC_UNITS_PER_ARCSEC, DEC_DIGITS, '.');
}

static void append_spectrum(growing *out, const tess_source_list *list,
                            const tess_listed_source *source)
{
    append(out, ",[");
    for (int k = 0; k < source->num_terms; ++k)
        append(out, "%s%.15g", k > 0 ? "," : "", list->term[source->first_term + k]);
    append(out, "],%s,", source->is_log ? "true" : "false");
    if (source->ref_hz > 0) append(out, "%.6f", source->ref_hz);
}

static void append_shape(growing *out, const tess_listed_source *source)
{
    if (source->is_gaussian)
        append(out, ",%.15g,%.15g,%.15g\n", source->major_rad / TESS_RAD_PER_ASEC,
               source->minor_rad / TESS_RAD_PER_ASEC,
               source->pa_rad / TESS_RAD_PER_DEG);
    else
        append(out, ",,,\n");
}

tess_status tess_source_list_text(const tess_source_list *list, double ref_hz,
                                  char **text)
{
    tess_status status = TESS_OK;
    growing out = {0};
    int64_t number[MOST_SCALES] = {0};
    append(&out,
           "Format = Name, Type, Ra, Dec, I, SpectralIndex, LogarithmicSI, "
           "ReferenceFrequency='%.6f', MajorAxis, MinorAxis, Orientation\n\n",
           ref_hz);
    for (int64_t k = 0; k < list->num_sources && !out.failed; ++k) {
        const tess_listed_source *source = &list->source[k];
        append(&out, "s%dc%lld,%s,", source->scale,
               (long long)number[source->scale % MOST_SCALES]++,
               source->is_gaussian ? "GAUSSIAN" : "POINT");
        append_position(&out, source);
        append(&out, ",%.15g", source->flux_jy[0]);
        append_spectrum(&out, list, source);
        append_shape(&out, source);
    }
    if (out.failed)
        TESS_FAIL(TESS_ERR_ALLOC, "text of %lld sources", (long long)list->num_sources);
    *text = out.text;
    out.text = NULL;
cleanup:
    tess_free(out.text);
    return status;
}
