/* Makes the header and the tables of a new UVFITS file. */
#define _GNU_SOURCE
#include "vis_uvfits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fits_header.h"
#include "tess_const.h"
#include "tess_mem.h"

enum { MAX_IFS = 1024, MAX_NARROW_ANTENNAS = 255, MAX_WIDE_ANTENNAS = 2047 };

/* ---- channels ---- */

/* Computes the signed step of a group of channels. It is the stated width if that is as
 * good, because differences of frequencies carry their rounding. */
static double step_of(const tess_vis_segment *segment, int64_t first, int64_t count)
{
    const double *freq_hz = segment->freq_hz + first;
    const double intervals = (double)(count - 1);
    const double step_hz = (freq_hz[count - 1] - freq_hz[0]) / intervals;
    const double width_hz = fabs(segment->chan_width_hz[first]);
    const bool agree = fabs(fabs(step_hz) - width_hz) * intervals <
                       1e-11 * width_hz + 1e-15 * freq_hz[0];
    return agree ? copysign(width_hz, step_hz) : step_hz;
}

/* Whether IFs of `count` channels each hold the channel table, to `tolerance` of a
 * channel and the rounding of a frequency, and none of them holds two spectral windows.
 * The steps are those that a reader derives from CDELT and single-precision CH WIDTH.
 */
static bool fits_in_ifs(const tess_vis_segment *segment, int64_t count,
                        double tolerance)
{
    if (count == 1) return true;
    const double cdelt = step_of(segment, 0, count);
    for (int64_t first = 0; first < segment->num_chan; first += count) {
        const double wanted = step_of(segment, first, count);
        const double ratio = (double)(float)fabs(wanted) / (double)(float)fabs(cdelt);
        const double step = ratio * cdelt;
        if (!(wanted * cdelt > 0)) return false;
        for (int64_t k = 0; k < count; ++k) {
            const double freq_hz = segment->freq_hz[first] + (double)k * step;
            const double error_hz = fabs(freq_hz - segment->freq_hz[first + k]);
            if (!(error_hz <= tolerance * fabs(step) + 1e-15 * freq_hz) ||
                segment->chan_spw[first + k] != segment->chan_spw[first])
                return false;
        }
    }
    return true;
}

static tess_status plan_channels(const char *path, const tess_vis_segment *segment,
                                 uvfits_plan *plan)
{
    tess_status status = TESS_OK;
    const int64_t num_chan = segment->num_chan;
    for (int64_t k = 0; k < num_chan; ++k)
        if (!(segment->freq_hz[k] > 0 && isfinite(segment->freq_hz[k])))
            TESS_FAIL(TESS_ERR_USAGE, "%s: channel %lld has the frequency %g Hz", path,
                      (long long)k, segment->freq_hz[k]);
    /* to rounding if that is possible, else to a millionth of a channel */
    for (double tolerance = 1e-13; tolerance < 1e-5; tolerance *= 1e7)
        for (int64_t num_if = 1; num_if <= MAX_IFS && num_if <= num_chan; ++num_if) {
            const int64_t per_if = num_chan / num_if;
            if (num_chan % num_if != 0 || !fits_in_ifs(segment, per_if, tolerance))
                continue;
            plan->num_if = num_if;
            plan->freq_step_hz =
                per_if > 1 ? step_of(segment, 0, per_if) : segment->chan_width_hz[0];
            goto cleanup;
        }
    TESS_FAIL(TESS_ERR_USAGE,
              "%s: UVFITS cannot hold these %lld irregular channels; choose some with "
              "--spw or --channels, or write a MeasurementSet",
              path, (long long)num_chan);
cleanup:
    return status;
}

/* ---- correlations ---- */

/* Circular and linear ones descend from -1, Stokes parameters ascend from 1. */
static tess_status plan_correlations(const char *path, const tess_vis_segment *segment,
                                     uvfits_plan *plan)
{
    tess_status status = TESS_OK;
    const int num_corr = segment->num_corr;
    const tess_corr *corr = segment->corr;
    for (int k = 0; k < num_corr; ++k)
        plan->corr_at[k] = k;
    for (int k = 1; k < num_corr; ++k) /* insertion sort by |code| */
        for (int j = k;
             j > 0 && abs(corr[plan->corr_at[j]]) < abs(corr[plan->corr_at[j - 1]]);
             --j) {
            const int swapped = plan->corr_at[j];
            plan->corr_at[j] = plan->corr_at[j - 1];
            plan->corr_at[j - 1] = swapped;
        }
    const int first = num_corr > 0 ? corr[plan->corr_at[0]] : 0;
    const int step = num_corr > 1 ? corr[plan->corr_at[1]] - first : first > 0 ? 1 : -1;
    bool fits = first != 0 && step != 0;
    for (int k = 0; k < num_corr; ++k) {
        const int code = corr[plan->corr_at[k]];
        const bool same_kind = (code > 0) == (first > 0) && (code < -4) == (first < -4);
        fits = fits && same_kind && code == first + k * step;
    }
    if (!fits)
        TESS_FAIL(
            TESS_ERR_USAGE,
            "%s: UVFITS cannot hold just these %d correlations; they must be evenly "
            "spaced among RR LL RL LR, XX YY XY YX or I Q U V",
            path, num_corr);
    plan->stokes_first = first;
    plan->stokes_step = step;
cleanup:
    return status;
}

void uvfits_order_corr(int num_corr, tess_corr *corr)
{
    for (int i = 1; i < num_corr; ++i)
        for (int j = i; j > 0; --j) {
            tess_corr *pair = &corr[j - 1];
            const bool swapped = pair[0] > 0 ? pair[0] > pair[1] : pair[0] < pair[1];
            if (!swapped) break;
            const tess_corr other = pair[0];
            pair[0] = pair[1];
            pair[1] = other;
        }
}

tess_status uvfits_plan_new(const char *path, const tess_vis_meta *meta,
                            uvfits_plan *plan)
{
    tess_status status = TESS_OK;
    const tess_vis_segment *segment = meta->segment;
    *plan = (uvfits_plan){.num_rows = segment->num_rows,
                          .num_chan = segment->num_chan,
                          .num_corr = segment->num_corr,
                          .wide_baselines = meta->num_antennas > MAX_NARROW_ANTENNAS};
    if (segment->num_rows < 1 || segment->num_chan < 1 || segment->num_corr < 1 ||
        segment->num_corr > TESS_MAX_CORR)
        TESS_FAIL(TESS_ERR_USAGE, "%s: there is nothing to write", path);
    if (segment->num_scans > 0)
        TESS_FAIL(TESS_ERR_USAGE,
                  "%s: tessera writes several fields to a MeasurementSet alone; give "
                  "an output like NAME.ms",
                  path);
    if (meta->num_antennas > MAX_WIDE_ANTENNAS)
        TESS_FAIL(
            TESS_ERR_USAGE,
            "%s: UVFITS numbers %d antennas at most, not %d; write a MeasurementSet",
            path, MAX_WIDE_ANTENNAS, meta->num_antennas);
    if (meta->time_start_mjd_s > 0 && meta->time_start_mjd_s < 1e10)
        plan->zero_mjd = (int64_t)floor(meta->time_start_mjd_s / TESS_SECONDS_PER_DAY);
    TESS_TRY(plan_channels(path, segment, plan));
    TESS_TRY(plan_correlations(path, segment, plan));
    int64_t values = 0, bytes = 0, all = 0;
    if (__builtin_mul_overflow(plan->num_chan, 3 * (int64_t)plan->num_corr, &values) ||
        __builtin_mul_overflow(values + UVFITS_NEW_PARAMS, 4, &bytes) ||
        __builtin_mul_overflow(bytes, plan->num_rows, &all) || bytes > INT32_MAX)
        TESS_FAIL(TESS_ERR_USAGE, "%s: rows of %lld channels are too long for UVFITS",
                  path, (long long)plan->num_chan);
    plan->group_bytes = bytes;
cleanup:
    return status;
}

/* ---- dates ---- */

/* Computes the Gregorian date of a Modified Julian Day (Richards 2013, Explanatory
 * Supplement). */
static void calendar_text(int64_t mjd, char text[16])
{
    const int64_t jdn = mjd + 2400001; /* Julian Day Number of that day's noon */
    const int64_t f = jdn + 1401 + ((4 * jdn + 274277) / 146097 * 3) / 4 - 38;
    const int64_t e = 4 * f + 3, h = 5 * (e % 1461 / 4) + 2;
    const int day = (int)(h % 153 / 5 + 1), month = (int)((h / 153 + 2) % 12 + 1);
    const int year = (int)(e / 1461 - 4716 + (12 + 2 - month) / 12);
    snprintf(text, 16, "%04d-%02d-%02d", year % 10000, month, day);
}

/* Computes Greenwich mean sidereal time at 0h UT1 [deg] (Aoki et al. 1982). */
static double sidereal_deg(int64_t mjd)
{
    const double t = ((double)mjd - 51544.5) / 36525.0;
    const double deg = 100.46061837 + (36000.770053608 + 0.000387933 * t) * t;
    return deg - 360.0 * floor(deg / 360.0);
}

/* ---- primary header ---- */

/* Writes 15 digits, or the 17 that a double needs at most to come back unchanged. */
static void put_number(fitsfile *fits, const char *name, double value,
                       const char *comment, int *failed)
{
    char text[40];
    snprintf(text, sizeof text, "%.15g", value);
    const int digits = strtod(text, NULL) == value ? 15 : 17;
    fits_update_key_dbl(fits, name, value, -digits, comment, failed);
}

static void put_text(fitsfile *fits, const char *name, const char *value,
                     const char *comment, int *failed)
{
    char text[FLEN_VALUE];
    snprintf(text, sizeof text, "%.60s", value);
    for (char *c = text; *c; ++c) /* FITS allows printable ASCII alone */
        if (*c < ' ' || *c > '~') *c = '?';
    fits_update_key(fits, TSTRING, name, text, comment, failed);
}

static void put_axis(fitsfile *fits, int number, const char *name, double crval,
                     double cdelt, int *failed)
{
    char key[FLEN_KEYWORD];
    snprintf(key, sizeof key, "CTYPE%d", number);
    put_text(fits, key, name, NULL, failed);
    snprintf(key, sizeof key, "CRVAL%d", number);
    put_number(fits, key, crval, NULL, failed);
    snprintf(key, sizeof key, "CDELT%d", number);
    put_number(fits, key, cdelt, NULL, failed);
    snprintf(key, sizeof key, "CRPIX%d", number);
    put_number(fits, key, 1.0, NULL, failed);
    snprintf(key, sizeof key, "CROTA%d", number);
    put_number(fits, key, 0.0, NULL, failed);
}

static void put_params(fitsfile *fits, const uvfits_plan *plan, int *failed)
{
    static const char *const names[UVFITS_NEW_PARAMS] = {
        "UU---SIN", "VV---SIN", "WW---SIN", "BASELINE", "DATE", "DATE", "INTTIM"};
    static const char *const comments[UVFITS_NEW_PARAMS] = {
        "[s]", "[s]", "[s]", "antennas", "[d] Julian date", "[d] add", "[s]"};
    for (int k = 0; k < UVFITS_NEW_PARAMS; ++k) {
        char key[FLEN_KEYWORD];
        snprintf(key, sizeof key, "PTYPE%d", k + 1);
        put_text(fits, key, names[k], comments[k], failed);
        snprintf(key, sizeof key, "PSCAL%d", k + 1);
        put_number(fits, key, 1.0, NULL, failed);
        snprintf(key, sizeof key, "PZERO%d", k + 1);
        const double zero = k == 4 ? (double)plan->zero_mjd + TESS_MJD_ZERO_JD : 0.0;
        put_number(fits, key, zero, NULL, failed);
    }
}

/* The data unit begins, and is filled up to a block, when its only group is written. */
static void put_group(fitsfile *fits, const uvfits_plan *plan, int *failed)
{
    const int64_t num_values = plan->num_chan * plan->num_corr * 3;
    float *group = tess_alloc_zero(num_values, sizeof *group);
    if (!group) *failed = MEMORY_ALLOCATION;
    fits_write_img(fits, TFLOAT, 1, num_values, group, failed);
    tess_free(group);
}

/* The file has one group in place of all of them, because CFITSIO would fill the space.
 * GCOUNT is set afterwards. */
static void make_primary(fitsfile *fits, const tess_vis_meta *meta,
                         const uvfits_plan *plan, int *failed)
{
    long lengths[7] = {
        0, 3, plan->num_corr, (long)(plan->num_chan / plan->num_if), (long)plan->num_if,
        1, 1};
    char date[16];
    const tess_vis_segment *segment = meta->segment;
    calendar_text(plan->zero_mjd, date);
    fits_write_grphdr(fits, 1, FLOAT_IMG, 7, lengths, UVFITS_NEW_PARAMS, 1, 1, failed);
    put_number(fits, "BSCALE", 1.0, NULL, failed);
    put_number(fits, "BZERO", 0.0, NULL, failed);
    put_text(fits, "BUNIT", "JY", NULL, failed);
    put_axis(fits, 2, "COMPLEX", 1.0, 1.0, failed);
    put_axis(fits, 3, "STOKES", plan->stokes_first, plan->stokes_step, failed);
    put_axis(fits, 4, "FREQ", segment->freq_hz[0], plan->freq_step_hz, failed);
    put_axis(fits, 5, "IF", 1.0, 1.0, failed);
    put_axis(fits, 6, "RA", tess_fits_longitude(meta->ra_rad), 1.0, failed);
    put_axis(fits, 7, "DEC", tess_fits_degrees(meta->dec_rad), 1.0, failed);
    put_params(fits, plan, failed);
    put_text(fits, "OBJECT", meta->object, NULL, failed);
    put_text(fits, "TELESCOP", meta->telescope, NULL, failed);
    put_text(fits, "INSTRUME", meta->telescope, NULL, failed);
    put_text(fits, "OBSERVER", meta->observer, NULL, failed);
    if (meta->project[0]) put_text(fits, "PROJECT", meta->project, NULL, failed);
    put_text(fits, "DATE-OBS", date, NULL, failed);
    put_number(fits, "EQUINOX", meta->equinox > 0 ? meta->equinox : 2000.0, NULL,
               failed);
    put_number(fits, "EPOCH", meta->equinox > 0 ? meta->equinox : 2000.0, NULL, failed);
    put_number(fits, "OBSRA", tess_fits_longitude(meta->ra_rad), NULL, failed);
    put_number(fits, "OBSDEC", tess_fits_degrees(meta->dec_rad), NULL, failed);
    put_text(fits, "SPECSYS", "TOPOCENT", NULL, failed);
    put_text(fits, "ORIGIN", "tessera " TESS_VERSION_TEXT, NULL, failed);
    put_group(fits, plan, failed);
}

/* ---- AIPS AN ---- */

/* Positions are geocentric: ARRAYX, Y and Z are 0, as VLBI and today's VLA have it.
 * Offsets from an array centre are ambiguous, because AIPS Memo 117 (and pyuvdata) turn
 * them to the local meridian, and CASA does not. */
static void put_array_keys(fitsfile *fits, const tess_vis_meta *meta,
                           const uvfits_plan *plan, int *failed)
{
    static const char *const center_keys[] = {"ARRAYX", "ARRAYY", "ARRAYZ"};
    static const char *const zero_keys[] = {"POLARX", "POLARY", "UT1UTC", "DATUTC",
                                            "IATUTC"};
    char date[16];
    int version = 1, none = 0, frequency_id = 1, num_if = (int)plan->num_if;
    calendar_text(plan->zero_mjd, date);
    fits_update_key(fits, TINT, "EXTVER", &version, NULL, failed);
    for (int k = 0; k < 3; ++k)
        put_number(fits, center_keys[k], 0.0, "[m]", failed);
    put_number(fits, "GSTIA0", sidereal_deg(plan->zero_mjd), "[deg]", failed);
    put_number(fits, "DEGPDY", 360.9856473354, "[deg/d]", failed);
    put_number(fits, "FREQ", meta->segment->freq_hz[0], "[Hz]", failed);
    put_text(fits, "RDATE", date, NULL, failed);
    for (int k = 0; k < 5; ++k)
        put_number(fits, zero_keys[k], 0.0, NULL, failed);
    put_text(fits, "TIMSYS", "UTC", NULL, failed);
    put_text(fits, "ARRNAM", meta->telescope, NULL, failed);
    put_text(fits, "XYZHAND", "RIGHT", NULL, failed);
    put_text(fits, "FRAME", "ITRF", NULL, failed);
    fits_update_key(fits, TINT, "NUMORB", &none, NULL, failed);
    fits_update_key(fits, TINT, "NOPCAL", &none, NULL, failed);
    fits_update_key(fits, TINT, "NO_IF", &num_if, NULL, failed);
    fits_update_key(fits, TINT, "FREQID", &frequency_id, NULL, failed);
    put_text(fits, "POLTYPE", plan->stokes_first < -4 ? "X-Y LIN" : "", NULL, failed);
}

/* Columns of the table of antennas. */
enum {
    NAME = 1,
    POSITION,
    ORBIT,
    NUMBER,
    MOUNT,
    OFFSET,
    DIAMETER,
    FEED_A,
    ANGLE_A,
    CAL_A,
    FEED_B,
    ANGLE_B,
    CAL_B,
    NUM_COLUMNS = CAL_B
};

static void put_antenna(fitsfile *fits, const tess_vis_antenna *antenna, int number,
                        bool linear, int *failed)
{
    double xyz_m[3] = {antenna->xyz_m[0], antenna->xyz_m[1], antenna->xyz_m[2]};
    float diameter_m = (float)antenna->diameter_m;
    float zero = 0, angle_b = linear ? 90.0f : 0.0f;
    int mount = 0;
    char name[sizeof antenna->name];
    char *text = name, *feed_a = linear ? "X" : "R", *feed_b = linear ? "Y" : "L";
    snprintf(name, sizeof name, "%s", antenna->name);
    fits_write_col(fits, TSTRING, NAME, number, 1, 1, &text, failed);
    fits_write_col(fits, TDOUBLE, POSITION, number, 1, 3, xyz_m, failed);
    fits_write_col(fits, TINT, NUMBER, number, 1, 1, &number, failed);
    fits_write_col(fits, TINT, MOUNT, number, 1, 1, &mount, failed);
    fits_write_col(fits, TFLOAT, OFFSET, number, 1, 1, &zero, failed);
    fits_write_col(fits, TFLOAT, DIAMETER, number, 1, 1, &diameter_m, failed);
    fits_write_col(fits, TSTRING, FEED_A, number, 1, 1, &feed_a, failed);
    fits_write_col(fits, TFLOAT, ANGLE_A, number, 1, 1, &zero, failed);
    fits_write_col(fits, TSTRING, FEED_B, number, 1, 1, &feed_b, failed);
    fits_write_col(fits, TFLOAT, ANGLE_B, number, 1, 1, &angle_b, failed);
}

static void make_antennas(fitsfile *fits, const tess_vis_meta *meta,
                          const uvfits_plan *plan, int *failed)
{
    char *names[] = {"ANNAME", "STABXYZ",  "ORBPARM", "NOSTA", "MNTSTA",
                     "STAXOF", "DIAMETER", "POLTYA",  "POLAA", "POLCALA",
                     "POLTYB", "POLAB",    "POLCALB"};
    char *units[] = {"", "METERS",  "", "", "",        "METERS", "METERS",
                     "", "DEGREES", "", "", "DEGREES", ""};
    char name_form[16];
    char *forms[] = {name_form, "3D", "0D", "1J", "1J", "1E", "1E",
                     "1A",      "1E", "0E", "1A", "1E", "0E"};
    int width = 8;
    for (int k = 0; k < meta->num_antennas; ++k)
        if ((int)strlen(meta->antenna[k].name) > width)
            width = (int)strlen(meta->antenna[k].name);
    snprintf(name_form, sizeof name_form, "%dA", width);
    fits_create_tbl(fits, BINARY_TBL, meta->num_antennas, NUM_COLUMNS, names, forms,
                    units, "AIPS AN", failed);
    put_array_keys(fits, meta, plan, failed);
    for (int k = 0; k < meta->num_antennas; ++k)
        put_antenna(fits, &meta->antenna[k], k + 1, plan->stokes_first < -4, failed);
}

/* ---- AIPS FQ ---- */

static void make_frequencies(fitsfile *fits, const tess_vis_meta *meta,
                             const uvfits_plan *plan, int *failed)
{
    const tess_vis_segment *segment = meta->segment;
    const int64_t per_if = plan->num_chan / plan->num_if;
    char wide[16], narrow[16], whole[16];
    char *names[] = {"FRQSEL", "IF FREQ", "CH WIDTH", "TOTAL BANDWIDTH", "SIDEBAND"};
    char *units[] = {"", "HZ", "HZ", "HZ", ""};
    char *forms[] = {"1J", wide, narrow, narrow, whole};
    int version = 1, id = 1, num_if = (int)plan->num_if;
    snprintf(wide, sizeof wide, "%dD", num_if);
    snprintf(narrow, sizeof narrow, "%dE", num_if);
    snprintf(whole, sizeof whole, "%dJ", num_if);
    fits_create_tbl(fits, BINARY_TBL, 1, 5, names, forms, units, "AIPS FQ", failed);
    fits_update_key(fits, TINT, "EXTVER", &version, NULL, failed);
    fits_update_key(fits, TINT, "NO_IF", &num_if, NULL, failed);
    fits_write_col(fits, TINT, 1, 1, 1, 1, &id, failed);
    for (int k = 0; k < num_if; ++k) {
        const int64_t first = k * per_if;
        double offset_hz = segment->freq_hz[first] - segment->freq_hz[0];
        const double step_hz = per_if > 1 ? step_of(segment, first, per_if)
                                          : segment->chan_width_hz[first];
        float width_hz = (float)fabs(step_hz);
        float total_hz = (float)(fabs(step_hz) * (double)per_if);
        int sideband = step_hz < 0 ? -1 : 1;
        fits_write_col(fits, TDOUBLE, 2, 1, k + 1, 1, &offset_hz, failed);
        fits_write_col(fits, TFLOAT, 3, 1, k + 1, 1, &width_hz, failed);
        fits_write_col(fits, TFLOAT, 4, 1, k + 1, 1, &total_hz, failed);
        fits_write_col(fits, TINT, 5, 1, k + 1, 1, &sideband, failed);
    }
}

/* ---- all of it ---- */

static tess_status set_group_count(char *header, int64_t bytes, int64_t num_rows)
{
    tess_status status = TESS_OK;
    char card[81];
    snprintf(card, sizeof card, "%-80s", "");
    const int length =
        snprintf(card, sizeof card, "GCOUNT  = %20lld", (long long)num_rows);
    for (int64_t at = 0; at + 80 <= bytes; at += 80)
        if (memcmp(header + at, "GCOUNT  =", 9) == 0) {
            memcpy(header + at, card, (size_t)length);
            goto cleanup;
        }
    TESS_FAIL(TESS_ERR_INTERNAL, "GCOUNT is not in the header");
cleanup:
    return status;
}

tess_status uvfits_make(const char *path, const tess_vis_meta *meta,
                        const uvfits_plan *plan, void **bytes, int64_t *header_bytes,
                        int64_t *total_bytes)
{
    tess_status status = TESS_OK;
    fitsfile *fits = NULL;
    int failed = 0, ignored = 0, type = 0;
    size_t capacity = 1 << 16;
    void *memory = malloc(capacity);
    LONGLONG header = 0, data = 0, data_end = 0, end = 0;
    if (!memory)
        TESS_FAIL(TESS_ERR_ALLOC, "not enough memory for the header of %s", path);
    fits_create_memfile(&fits, &memory, &capacity, capacity, realloc, &failed);
    make_primary(fits, meta, plan, &failed);
    make_antennas(fits, meta, plan, &failed);
    make_frequencies(fits, meta, plan, &failed);
    fits_flush_file(fits, &failed);
    fits_get_hduaddrll(fits, NULL, NULL, &end, &failed);
    fits_movabs_hdu(fits, 1, &type, &failed);
    fits_get_hduaddrll(fits, &header, &data, &data_end, &failed);
    fits_close_file(fits, failed ? &ignored : &failed);
    fits_clear_errmsg();
    if (failed)
        TESS_FAIL(failed == MEMORY_ALLOCATION ? TESS_ERR_ALLOC : TESS_ERR_INTERNAL,
                  "%s: its header cannot be made (CFITSIO status %d)", path, failed);
    /* drop the one group: header, then tables */
    TESS_TRY(set_group_count(memory, data, plan->num_rows));
    memmove((char *)memory + data, (char *)memory + data_end, (size_t)(end - data_end));
    *header_bytes = data;
    *total_bytes = data + end - data_end;
    *bytes = memory;
    memory = NULL;
cleanup:
    free(memory);
    return status;
}
