/* Reads the header of a UVFITS file: how its random groups are laid out. */
#include "vis_uvfits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fits_guard.h"
#include "tess_const.h"

enum { MAX_AXES = 16, MAX_PARAMS = 999 };

/* Larger groups than this are a broken header, not an observation [bytes]. */
#define MAX_GROUP_BYTES ((int64_t)1 << 32)

double uvfits_key_number(fitsfile *fits, const char *name, double fallback)
{
    int failed = 0;
    double value = fallback;
    fits_read_key(fits, TDOUBLE, name, &value, NULL, &failed);
    return failed ? fallback : value;
}

char *uvfits_trim(char *text)
{
    size_t length = strlen(text);
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
        text[--length] = '\0';
    return text;
}

void uvfits_key_text(fitsfile *fits, const char *name, char *text, size_t bytes)
{
    int failed = 0;
    char value[FLEN_VALUE] = "";
    fits_read_key(fits, TSTRING, name, value, NULL, &failed);
    snprintf(text, bytes, "%s", failed ? "" : uvfits_trim(value));
}

/* Makes the key of an axis or parameter: "CRVAL" and 3 -> CRVAL3. */
static double numbered(fitsfile *fits, const char *name, int64_t number,
                       double fallback)
{
    char key[FLEN_KEYWORD];
    snprintf(key, sizeof key, "%.5s%lld", name, (long long)number);
    return uvfits_key_number(fits, key, fallback);
}

/* Reads the equinox: 2000.0, 'J2000', 'B1950'. EPOCH is the old name of the keyword. 0:
 * the header says nothing. */
static double read_equinox(fitsfile *fits)
{
    static const char *const keys[] = {"EQUINOX", "EPOCH"};
    for (int k = 0; k < 2; ++k) {
        char text[FLEN_VALUE];
        uvfits_key_text(fits, keys[k], text, sizeof text);
        const char *start = text + strspn(text, " JB");
        const double equinox = strtod(start, NULL);
        if (equinox > 1850 && equinox < 2100) return equinox;
    }
    return 0;
}

/* Reads the frame of the header's position, which is that of sources whose table says
 * nothing else. */
static tess_status read_frame(fitsfile *fits, uvfits_state *state)
{
    tess_status status = TESS_OK;
    char system[FLEN_VALUE];
    uvfits_key_text(fits, "RADESYS", system, sizeof system);
    if (!*system) uvfits_key_text(fits, "RADECSYS", system, sizeof system);
    TESS_TRY(sky_frame_parse(state->path, system, read_equinox(fits), &state->frame));
cleanup:
    return status;
}

/* "RA" also stands for RA---SIN; a name that only begins alike does not. */
static bool is_axis(const char *ctype, const char *name)
{
    const size_t length = strlen(name);
    return strncasecmp(ctype, name, length) == 0 &&
           (ctype[length] == '\0' || ctype[length] == '-' || ctype[length] == ' ');
}

/* Reads the linear axis of this number in the header. */
static uvfits_axis axis_of(fitsfile *fits, int number, int64_t length, int64_t stride)
{
    /* The defaults are those of the FITS standard 4.0, section 8.2; the reference pixel
     * may be any number. */
    return (uvfits_axis){.length = length,
                         .stride = stride,
                         .present = true,
                         .crval = numbered(fits, "CRVAL", number, 0.0),
                         .crpix = numbered(fits, "CRPIX", number, 0.0),
                         .cdelt = numbered(fits, "CDELT", number, 1.0)};
}

enum { KNOWN_AXES = 6 };

/* An axis that UVFITS files have, and where the layout keeps it. */
typedef struct known_axis {
    const char *name;
    uvfits_axis *axis;
} known_axis;

/* Reads axis `number` of the header. An axis of another type may have one element. */
static tess_status read_axis(fitsfile *fits, const char *path, int number,
                             int64_t length, int64_t stride,
                             const known_axis known[KNOWN_AXES])
{
    tess_status status = TESS_OK;
    char key[FLEN_KEYWORD], ctype[FLEN_VALUE];
    snprintf(key, sizeof key, "CTYPE%d", number);
    uvfits_key_text(fits, key, ctype, sizeof ctype);
    if (length < 1)
        TESS_FAIL(TESS_ERR_INPUT, "%s: axis %d (%s) has length %lld", path, number,
                  ctype, (long long)length);
    uvfits_axis *axis = NULL;
    for (int k = 0; k < KNOWN_AXES && !axis; ++k)
        if (is_axis(ctype, known[k].name)) axis = known[k].axis;
    if (!axis && length > 1)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: axis %d has length %lld and the unknown type '%s'", path, number,
                  (long long)length, ctype);
    if (is_axis(ctype, "GLON") || is_axis(ctype, "ELON"))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: its phase centre is given in %s; axes RA and DEC are read", path,
                  ctype);
    if (axis && axis->present)
        TESS_FAIL(TESS_ERR_INPUT, "%s: there are two %s axes", path, ctype);
    if (axis) *axis = axis_of(fits, number, length, stride);
cleanup:
    return status;
}

static tess_status read_axes(fitsfile *fits, const char *path, int num_axes,
                             const LONGLONG *lengths, uvfits_layout *layout,
                             int64_t *num_values)
{
    tess_status status = TESS_OK;
    const known_axis known[KNOWN_AXES] = {
        {"COMPLEX", &layout->complex}, {"STOKES", &layout->stokes},
        {"FREQ", &layout->freq},       {"IF", &layout->chan_if},
        {"RA", &layout->ra},           {"DEC", &layout->dec}};
    for (int k = 0; k < KNOWN_AXES; ++k)
        known[k].axis->length = 1;
    int64_t stride = 1;
    for (int number = 2; number <= num_axes; ++number) {
        const int64_t length = lengths[number - 1];
        TESS_TRY(read_axis(fits, path, number, length, stride, known));
        if (__builtin_mul_overflow(stride, length, &stride) || stride > MAX_GROUP_BYTES)
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: the axes make absurdly large groups; is the header damaged?",
                      path);
    }
    *num_values = stride;
cleanup:
    return status;
}

static tess_status check_axes(const char *path, const uvfits_layout *layout)
{
    tess_status status = TESS_OK;
    if (!layout->complex.present || layout->complex.length < 2 ||
        layout->complex.length > 3)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: the COMPLEX axis must hold 2 or 3 values (re, im, weight)",
                  path);
    if (!layout->freq.present)
        TESS_FAIL(TESS_ERR_INPUT, "%s: there is no FREQ axis", path);
    if (layout->stokes.length > TESS_MAX_CORR)
        TESS_FAIL(TESS_ERR_INPUT, "%s: the STOKES axis has %lld values, 4 is the most",
                  path, (long long)layout->stokes.length);
    if (layout->ra.length != 1 || layout->dec.length != 1)
        TESS_FAIL(TESS_ERR_INPUT, "%s: RA and DEC axes must have length 1", path);
cleanup:
    return status;
}

/* Whether two names are the same parameter: UU, UU--, UU---SIN and UU-L-NCP are; other
 * names are exact. */
static void classify(uvfits_layout *layout, char *ptype, uvfits_param **param)
{
    const struct {
        const char *name;
        uvfits_param *param;
    } known[] = {{"UU", &layout->param.uu},
                 {"VV", &layout->param.vv},
                 {"WW", &layout->param.ww},
                 {"DATE", &layout->param.date},
                 {"BASELINE", &layout->param.baseline},
                 {"ANTENNA1", &layout->param.antenna1},
                 {"ANTENNA2", &layout->param.antenna2},
                 {"SUBARRAY", &layout->param.subarray},
                 {"SOURCE", &layout->param.source},
                 {"FREQSEL", &layout->param.freqsel},
                 {"INTTIM", &layout->param.inttim}};
    static const char *const uvw[] = {"UU-", "VV-", "WW-"};
    for (int k = 0; k < 3; ++k)
        if (strncasecmp(ptype, uvw[k], 3) == 0) ptype[2] = '\0';
    *param = NULL;
    for (size_t k = 0; k < sizeof known / sizeof known[0]; ++k)
        if (strcasecmp(ptype, known[k].name) == 0) *param = known[k].param;
}

static tess_status read_params(fitsfile *fits, const char *path, uvfits_layout *layout)
{
    tess_status status = TESS_OK;
    for (int64_t number = 1; number <= layout->num_params; ++number) {
        char key[FLEN_KEYWORD], ptype[FLEN_VALUE];
        snprintf(key, sizeof key, "PTYPE%lld", (long long)number);
        uvfits_key_text(fits, key, ptype, sizeof ptype);
        uvfits_param *param = NULL;
        classify(layout, ptype, &param);
        if (!param) continue;
        if (param->num_terms == UVFITS_MAX_TERMS)
            TESS_FAIL(TESS_ERR_INPUT, "%s: more than %d parameters are called %s", path,
                      UVFITS_MAX_TERMS, ptype);
        const double scale = numbered(fits, "PSCAL", number, 1.0);
        const double zero = numbered(fits, "PZERO", number, 0.0);
        if (!isfinite(scale) || scale == 0 || !isfinite(zero))
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: PSCAL%lld = %g, PZERO%lld = %g make no sense", path,
                      (long long)number, scale, (long long)number, zero);
        param->index[param->num_terms] = number - 1;
        param->scale[param->num_terms++] = scale;
        param->zero += zero;
    }
    if (layout->param.uu.num_terms == 0 || layout->param.vv.num_terms == 0 ||
        layout->param.ww.num_terms == 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: there is no UU, VV or WW parameter", path);
    if (layout->param.baseline.num_terms == 0 &&
        (layout->param.antenna1.num_terms == 0 ||
         layout->param.antenna2.num_terms == 0))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: there is neither BASELINE nor ANTENNA1 and ANTENNA2", path);
    if (layout->param.date.num_terms == 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: there is no DATE parameter", path);
cleanup:
    return status;
}

/* Checks SIMPLE, GROUPS, NAXIS1 = 0 and the lengths of axes. */
static tess_status read_groups(fitsfile *fits, const char *path, uvfits_layout *layout,
                               int *num_axes_out, LONGLONG lengths[MAX_AXES])
{
    tess_status status = TESS_OK;
    int failed = 0, simple = 0, bitpix = 0, num_axes = 0, extend = 0, groups = 0;
    long num_params = 0, num_groups = 0;
    fits_read_key(fits, TLOGICAL, "GROUPS", &groups, NULL, &failed);
    failed = 0;
    if (fits_read_imghdrll(fits, MAX_AXES, &simple, &bitpix, &num_axes, lengths,
                           &num_params, &num_groups, &extend, &failed))
        TESS_FAIL(TESS_ERR_INPUT, "%s: its FITS header is damaged (CFITSIO status %d)",
                  path, failed);
    if (!groups || num_axes < 2 || lengths[0] != 0)
        TESS_FAIL(
            TESS_ERR_INPUT,
            "%s: FITS without random groups, so not UVFITS (an image or FITS-IDI?)",
            path);
    if (num_axes > MAX_AXES)
        TESS_FAIL(TESS_ERR_INPUT, "%s: has %d axes, %d is the most", path, num_axes,
                  MAX_AXES);
    if (bitpix != 16 && bitpix != 32 && bitpix != -32 && bitpix != -64)
        TESS_FAIL(TESS_ERR_INPUT, "%s: BITPIX = %d is not supported", path, bitpix);
    if (num_groups < 1)
        TESS_FAIL(TESS_ERR_INPUT, "%s: holds no visibilities (GCOUNT = %ld)", path,
                  num_groups);
    if (num_params < 1 || num_params > MAX_PARAMS)
        TESS_FAIL(TESS_ERR_INPUT, "%s: PCOUNT = %ld makes no sense", path, num_params);
    layout->bitpix = bitpix;
    layout->value_bytes = abs(bitpix) / 8;
    layout->num_params = num_params;
    layout->num_groups = num_groups;
    *num_axes_out = num_axes;
cleanup:
    return status;
}

/* Checks that the file does not end before its last group. TESS_ERR_INPUT. */
static tess_status check_length(const char *path, const uvfits_layout *layout)
{
    tess_status status = TESS_OK;
    int64_t end = 0;
    if (__builtin_mul_overflow(layout->group_bytes, layout->num_groups, &end) ||
        __builtin_add_overflow(end, layout->data_offset, &end) ||
        end > layout->file_bytes)
        TESS_FAIL(
            TESS_ERR_INPUT,
            "%s: is truncated: its header announces %lld groups of %lld bytes and "
            "the file has %lld bytes; fetch it again",
            path, (long long)layout->num_groups, (long long)layout->group_bytes,
            (long long)layout->file_bytes);
cleanup:
    return status;
}

/* Reads the groups, their axes, and where the data lie in the file. */
static tess_status read_structure(fitsfile *fits, uvfits_state *state)
{
    tess_status status = TESS_OK;
    uvfits_layout *layout = &state->layout;
    int failed = 0, num_axes = 0;
    int64_t num_values = 0;
    LONGLONG lengths[MAX_AXES] = {0}, header = 0, data = 0, data_end = 0;
    TESS_TRY(read_groups(fits, state->path, layout, &num_axes, lengths));
    TESS_TRY(read_axes(fits, state->path, num_axes, lengths, layout, &num_values));
    layout->group_bytes = (layout->num_params + num_values) * layout->value_bytes;
    if (fits_get_hduaddrll(fits, &header, &data, &data_end, &failed))
        TESS_FAIL(TESS_ERR_INPUT, "%s: its FITS header is damaged (CFITSIO status %d)",
                  state->path, failed);
    layout->data_offset = data;
    TESS_TRY(check_length(state->path, layout));
cleanup:
    return status;
}

static tess_status read_scaling(fitsfile *fits, const char *path, uvfits_layout *layout)
{
    tess_status status = TESS_OK;
    layout->bscale = uvfits_key_number(fits, "BSCALE", 1.0);
    layout->bzero = uvfits_key_number(fits, "BZERO", 0.0);
    if (!isfinite(layout->bscale) || layout->bscale == 0 || !isfinite(layout->bzero))
        TESS_FAIL(TESS_ERR_INPUT, "%s: BSCALE = %g, BZERO = %g make no sense", path,
                  layout->bscale, layout->bzero);
    if (layout->bitpix > 0) /* the keyword means nothing beside floating point */
        TESS_TRY(fits_guard_blank(fits, path, &layout->has_blank, &layout->blank));
cleanup:
    return status;
}

/* Reads the frequency of the line at rest, and the frame of frequencies. */
static void read_line(fitsfile *fits, tess_vis_meta *meta)
{
    char frame[FLEN_VALUE];
    const double rest_hz =
        uvfits_key_number(fits, "RESTFRQ", uvfits_key_number(fits, "RESTFREQ", 0.0));
    meta->line.rest_hz = isfinite(rest_hz) && rest_hz > 0 ? rest_hz : 0;
    uvfits_key_text(fits, "SPECSYS", frame, sizeof frame);
    if (strcasecmp(frame, "TOPOCENT") != 0)
        snprintf(meta->line.freq_frame, sizeof meta->line.freq_frame, "%.15s", frame);
}

tess_status uvfits_read_header(fitsfile *fits, uvfits_state *state, tess_vis_meta *meta)
{
    tess_status status = TESS_OK;
    uvfits_layout *layout = &state->layout;
    TESS_TRY(read_structure(fits, state));
    TESS_TRY(check_axes(state->path, layout));
    TESS_TRY(read_params(fits, state->path, layout));
    TESS_TRY(read_scaling(fits, state->path, layout));
    uvfits_key_text(fits, "TELESCOP", meta->telescope, sizeof meta->telescope);
    uvfits_key_text(fits, "OBSERVER", meta->observer, sizeof meta->observer);
    uvfits_key_text(fits, "OBJECT", meta->object, sizeof meta->object);
    uvfits_key_text(fits, "PROJECT", meta->project, sizeof meta->project);
    read_line(fits, meta);
    meta->equinox = 2000.0;
    TESS_TRY(read_frame(fits, state));
    meta->num_rows_total = layout->num_groups;
    const bool has_axes = layout->ra.present && layout->dec.present;
    const double ra_deg =
        has_axes ? layout->ra.crval : uvfits_key_number(fits, "OBSRA", 0.0);
    const double dec_deg =
        has_axes ? layout->dec.crval : uvfits_key_number(fits, "OBSDEC", 0.0);
    if (!isfinite(ra_deg) || !isfinite(dec_deg) || fabs(dec_deg) > 90.0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: its position RA %g, Dec %g makes no sense",
                  state->path, ra_deg, dec_deg);
    meta->ra_rad = ra_deg * TESS_RAD_PER_DEG;
    meta->dec_rad = dec_deg * TESS_RAD_PER_DEG;
cleanup:
    return status;
}
