/* Writes the header of an image file as text. */
#include "fits_header.h"

#include <ctype.h>
#include <fitsio.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tess_const.h"
#include "tess_fits_cube.h"
#include "tess_mem.h"

static const double deg_per_rad = 1.0 / TESS_RAD_PER_DEG;

uint32_t tess_fits_fold(uint64_t sum)
{
    while (sum >> 32)
        sum = (sum & UINT32_MAX) + (sum >> 32);
    return (uint32_t)sum;
}

/* Replaces each character that is no printable ASCII by a question mark, because FITS
 * headers hold nothing else. An UTF-8 sequence counts as one character. */
static void printable(const char *in, char *out, size_t size)
{
    size_t used = 0;
    for (; *in && used + 1 < size; ++in) {
        const unsigned char c = (unsigned char)*in;
        if ((c & 0xC0) == 0x80) continue;
        if (c == '\t')
            out[used++] = ' ';
        else
            out[used++] = c >= 32 && c < 127 ? (char)c : '?';
    }
    out[used] = '\0';
}

static void put_text(fitsfile *fits, const char *key, const char *value,
                     const char *comment, int *failed)
{
    char clean[FLEN_VALUE];
    printable(value, clean, sizeof clean);
    fits_write_key_str(fits, key, clean, comment, failed);
}

static void put_text_if(fitsfile *fits, const char *key, const char *value, int *failed)
{
    if (value[0]) put_text(fits, key, value, NULL, failed);
}

/* Returns how many digits a number gets. It gets the fewest from 15 on that give the
 * same double back, so that coordinates keep full precision and 0.1 stays 0.1; or as
 * many as the 20 columns of the fixed format take (FITS standard 4.0, section 4.2.4),
 * on which some readers insist. One column is for the sign, so a number and its
 * negative have the same digits. With exponents of two digits, 14 digits are left, an
 * error of 5e-14 of the number. */
static int digits_of(double value)
{
    enum { ROUND_TRIP_FROM = 15, MOST = 17, LEAST = 13, COLUMNS = 20 };
    int fitting = LEAST;
    for (int digits = LEAST; digits <= MOST; ++digits) {
        char text[40];
        int length = 1 + snprintf(text, sizeof text, "%.*G", digits, fabs(value));
        length += strchr(text, '.') == NULL; /* which CFITSIO adds */
        if (length > COLUMNS) break;
        fitting = digits;
        const double back = strtod(text, NULL);
        if (digits >= ROUND_TRIP_FROM && back >= fabs(value) && back <= fabs(value))
            break;
    }
    return fitting;
}

/* A number that is not finite has no card: reserved keywords must have a value. */
static void put_number(fitsfile *fits, const char *key, double value,
                       const char *comment, int *failed)
{
    if (isfinite(value))
        fits_write_key_dbl(fits, key, value, -digits_of(value), comment, failed);
}

static void put_number_if(fitsfile *fits, const char *key, double value,
                          const char *comment, int *failed)
{
    if (value > 0) put_number(fits, key, value, comment, failed);
}

/* Frequencies count as equidistant when none lies farther than this from the straight
 * line through the first and the last [steps]. */
static const double MOST_BEND = 1e-3;

double tess_cube_step_hz(const tess_cube_axes *cube)
{
    const int last = cube->num_freq - 1;
    if (last == 0) return cube->width_hz[0];
    const double step_hz = (cube->freq_hz[last] - cube->freq_hz[0]) / last;
    for (int k = 1; k < last; ++k)
        if (!(fabs(cube->freq_hz[k] - cube->freq_hz[0] - k * step_hz) <=
              MOST_BEND * fabs(step_hz)))
            return 0;
    return step_hz;
}

bool tess_cube_is_linear(const tess_image_meta *meta)
{
    return meta->spectral.velocity == TESS_OPTICAL ||
           fabs(tess_cube_step_hz(meta->cube)) > 0;
}

/* A linear axis: `value` at a reference pixel, which is counted from 1. */
typedef struct linear_axis {
    const char *type, *unit;
    double pixel, value, step;
} linear_axis;

static void put_axis(fitsfile *fits, int number, const linear_axis *axis, int *failed)
{
    const struct {
        const char *stem, *text;
        double number;
    } cards[] = {{"CTYPE", axis->type, 0},
                 {"CRPIX", NULL, axis->pixel},
                 {"CRVAL", NULL, axis->value},
                 {"CDELT", NULL, axis->step},
                 {"CUNIT", axis->unit, 0}};
    for (size_t k = 0; k < sizeof cards / sizeof *cards; ++k) {
        char key[FLEN_KEYWORD];
        snprintf(key, sizeof key, "%s%d", cards[k].stem, number);
        if (cards[k].text)
            put_text(fits, key, cards[k].text, NULL, failed);
        else
            put_number(fits, key, cards[k].number, NULL, failed);
    }
}

/* Writes a frequency axis whose values are listed in a table: FITS paper III (Greisen
 * et al. 2006), section 6. The pixel number is the index into the table. */
static void put_listed_axis(fitsfile *fits, int *failed)
{
    put_axis(fits, 3, &(linear_axis){"FREQ-TAB", "Hz", 1, 1, 1}, failed);
    put_text(fits, "PS3_0", TESS_CUBE_FREQ_TABLE, "table of the frequencies", failed);
    put_text(fits, "PS3_1", TESS_CUBE_FREQ_COLUMN, "its column", failed);
    for (int k = 1; k <= 3; ++k) { /* EXTVER, EXTLEVEL, axis of the array */
        char key[FLEN_KEYWORD];
        snprintf(key, sizeof key, "PV3_%d", k);
        put_number(fits, key, 1, NULL, failed);
    }
}

/* The spectral axis, in velocity if that is asked for. A step of zero would make the
 * coordinate system singular. */
static linear_axis spectral_axis(const tess_image_meta *meta)
{
    const tess_cube_axes *cube = meta->cube;
    const bool several = cube && cube->num_freq > 1;
    const tess_velocity kind = meta->spectral.velocity;
    const double first_hz = meta->freq_hz;
    if (kind == TESS_NO_VELOCITY || !(meta->spectral.rest_hz > 0)) {
        const double step_hz = several ? tess_cube_step_hz(cube) : meta->bandwidth_hz;
        return (linear_axis){"FREQ", "Hz", 1, first_hz,
                             fabs(step_hz) > 0 ? step_hz : 1.0};
    }
    const double steps = several ? cube->num_freq - 1 : 1;
    const double last_hz =
        several ? cube->freq_hz[cube->num_freq - 1] : first_hz - meta->bandwidth_hz;
    const double first = tess_velocity_of(kind, meta->spectral.rest_hz, first_hz);
    const double last = tess_velocity_of(kind, meta->spectral.rest_hz, last_hz);
    return (linear_axis){kind == TESS_OPTICAL ? "VOPT" : "VRAD", "m/s", 1, first,
                         (last - first) / steps};
}

/* Writes axes 3 and 4. */
static void put_planes(fitsfile *fits, const tess_image_meta *meta, int *failed)
{
    const tess_cube_axes *cube = meta->cube;
    const linear_axis spectral = spectral_axis(meta);
    if (cube && cube->num_freq > 1 && !tess_cube_is_linear(meta))
        put_listed_axis(fits, failed);
    else
        put_axis(fits, 3, &spectral, failed);
    put_axis(
        fits, 4,
        &(linear_axis){"STOKES", "", 1, meta->stokes, cube ? cube->stokes_step : 1},
        failed);
}

/* Writes the frame of frequencies. SSYSOBS is the frame in which channels stayed the
 * same during the observation. */
static void put_frame(fitsfile *fits, const tess_image_meta *meta, int *failed)
{
    const tess_fits_spectral *spectral = &meta->spectral;
    put_text(fits, "SPECSYS",
             spectral->other[0] ? spectral->other
                                : tess_spectral_frame_specsys(spectral->frame),
             NULL, failed);
    if (!spectral->is_chosen) return;
    put_text(fits, "SSYSOBS", "TOPOCENT", NULL, failed);
    put_number(fits, "VELOSYS", spectral->velosys_m_s,
               "[m/s] observer, away from the source, at the start", failed);
}

static void put_wcs(fitsfile *fits, const tess_image_meta *meta, int *failed)
{
    const double scale_deg = meta->scale_rad * deg_per_rad;
    const double equinox = meta->equinox > 0 ? meta->equinox : 2000.0;
    /* l0 − (i − nx/2)·scale is 0 at the reference pixel i */
    const double shift_x = fabs(meta->l0) > 0 ? meta->l0 / meta->scale_rad : 0;
    const double shift_y = fabs(meta->m0) > 0 ? meta->m0 / meta->scale_rad : 0;
    const linear_axis ra = {"RA---SIN", "deg", (double)(meta->nx / 2 + 1) + shift_x,
                            tess_fits_longitude(meta->ra_rad), -scale_deg};
    const linear_axis dec = {"DEC--SIN", "deg", (double)(meta->ny / 2 + 1) - shift_y,
                             tess_fits_degrees(meta->dec_rad), scale_deg};
    put_axis(fits, 1, &ra, failed);
    put_axis(fits, 2, &dec, failed);
    put_planes(fits, meta, failed);
    put_number_if(fits, "FREQMEAN", meta->gridded.freq_mean_hz,
                  "[Hz] mean of the visibilities gridded", failed);
    put_number_if(fits, "RESTFRQ", meta->spectral.rest_hz,
                  meta->spectral.is_chosen ? "[Hz] of the line"
                                           : "[Hz] centre of all channels",
                  failed);
    /* the default would turn the image round at declination 90 deg */
    put_number(fits, "LONPOLE", 180.0, NULL, failed);
    put_text(fits, "RADESYS", equinox < 1984.0 ? "FK4" : "FK5", NULL, failed);
    put_number(fits, "EQUINOX", equinox, NULL, failed);
    put_frame(fits, meta, failed);
}

/* Computes the calendar date of a modified Julian date (proleptic Gregorian). Years are
 * counted from March, so that the leap day comes last. An era has 400 years of 146097
 * days. */
void tess_fits_date(double mjd_s, char text[40])
{
    const int64_t mjd_of_era = -678881; /* 0000-03-01 */
    int64_t ms = llround(mjd_s * 1e3);
    int64_t day = ms / 86400000, of_day = ms % 86400000;
    if (of_day < 0) {
        of_day += 86400000;
        --day;
    }
    const int64_t days = day - mjd_of_era;
    const int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    const int64_t doe = days - era * 146097;
    const int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    const int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    const int64_t m = (5 * doy + 2) / 153;
    const int month = (int)(m < 10 ? m + 3 : m - 9);
    snprintf(text, 40, "%04d-%02d-%02dT%02d:%02d:%02d.%03d",
             (int)(yoe + era * 400 + (month <= 2)), month,
             (int)(doy - (153 * m + 2) / 5 + 1), (int)(of_day / 3600000),
             (int)(of_day / 60000 % 60), (int)(of_day / 1000 % 60),
             (int)(of_day % 1000));
}

bool tess_fits_is_time(double mjd_s)
{
    return isfinite(mjd_s) && mjd_s > 0 && mjd_s < 1e6 * TESS_SECONDS_PER_DAY;
}

/* Writes one time as a date and as a modified Julian date, both in whole milliseconds.
 */
static void put_time(fitsfile *fits, const char *which, double mjd_s,
                     const char *comment, int *failed)
{
    char key[FLEN_KEYWORD], date[40];
    snprintf(key, sizeof key, "DATE-%s", which);
    tess_fits_date(mjd_s, date);
    put_text(fits, key, date, comment, failed);
    snprintf(key, sizeof key, "MJD-%s", which);
    put_number(fits, key, round(1e3 * mjd_s) / (1e3 * TESS_SECONDS_PER_DAY),
               "[d] the same", failed);
}

/* Whether the header has WSClean's values of common keywords. */
static bool is_as_wsclean(const tess_image_meta *meta)
{
    return meta->gridded.wsclean.given || meta->gridded.wsclean.typed;
}

/* Writes DATE-OBS as WSClean does: down to a tenth of a second. Its time is that of a
 * visibility, and not of the start of an integration. */
static void put_wsclean_date(fitsfile *fits, double mjd_s, int *failed)
{
    const double almost = 1e-3; /* times in files are rounded */
    char date[40];
    tess_fits_date(floor(10 * (mjd_s + almost)) / 10, date);
    date[strlen("YYYY-MM-DDThh:mm:ss.s")] = '\0';
    put_text(fits, "DATE-OBS", date, "middle of the first integration", failed);
}

/* Writes the time at which the file is made. Builds that have to be repeatable set
 * SOURCE_DATE_EPOCH (reproducible-builds.org/specs/source-date-epoch). */
static void put_date(fitsfile *fits, int *failed)
{
    const double unix_zero_mjd = 40587;
    const char *given = getenv("SOURCE_DATE_EPOCH");
    char date[40], *end = NULL;
    double seconds = given ? strtod(given, &end) : 0;
    if (!given || end == given || *end || !(fabs(seconds) < 1e11))
        seconds = (double)time(NULL);
    tess_fits_date(floor(seconds) + unix_zero_mjd * TESS_SECONDS_PER_DAY, date);
    date[strlen("YYYY-MM-DDThh:mm:ss")] = '\0';
    put_text(fits, "DATE", date, "creation of the file, UTC", failed);
}

static void put_observation(fitsfile *fits, const tess_image_meta *meta, int *failed)
{
    put_text_if(fits, "OBJECT", meta->names.object, failed);
    put_text_if(fits, "TELESCOP", meta->names.telescope, failed);
    put_text_if(fits, "OBSERVER", meta->names.observer, failed);
    if (meta->gridded.data_column[0])
        put_text(fits, "DATACOL", meta->gridded.data_column,
                 "column of the MeasurementSet", failed);
    put_text(fits, "ORIGIN", "tessera " TESS_VERSION_TEXT,
             "radio-interferometric imager", failed);
    put_date(fits, failed);
    put_text(fits, "TIMESYS", "UTC", NULL, failed);
    if (!tess_fits_is_time(meta->time_start_mjd_s)) return;
    /* DATE-OBS is what most programs read, DATE-BEG what the standard says it is */
    if (is_as_wsclean(meta))
        put_wsclean_date(fits,
                         meta->gridded.wsclean.given ? meta->gridded.wsclean.time_mjd_s
                                                     : meta->time_start_mjd_s,
                         failed);
    else
        put_time(fits, "OBS", meta->time_start_mjd_s, "start of the first integration",
                 failed);
    put_time(fits, "BEG", meta->time_start_mjd_s, "start of the first integration",
             failed);
    if (!tess_fits_is_time(meta->time_end_mjd_s)) return;
    put_time(fits, "END", meta->time_end_mjd_s, "end of the last integration", failed);
    put_number(fits, "TELAPSE",
               round(1e3 * (meta->time_end_mjd_s - meta->time_start_mjd_s)) / 1e3,
               "[s] between them", failed);
}

/* Writes where the array is: geocentric, and geodetic on the ellipsoid of IAU (1976),
 * which is that of FITS paper VII and WCSLIB. Without one of them, WCSLIB would derive
 * it from the other, with a warning. */
static void put_place(fitsfile *fits, const tess_image_meta *meta, int *failed)
{
    static const char *const keys[] = {"OBSGEO-X", "OBSGEO-Y", "OBSGEO-Z"};
    const double equator_m = 6378140, flattening = 1 / 298.2577;
    const double e2 = flattening * (2 - flattening);
    const double lowest_m = 6.3e6, highest_m = 6.4e6; /* of places on the ground */
    const double x = meta->place_m[0], y = meta->place_m[1], z = meta->place_m[2];
    const double axis_m = hypot(x, y), centre_m = hypot(axis_m, z);
    if (!(centre_m > lowest_m && centre_m < highest_m)) return;
    for (int k = 0; k < 3; ++k)
        put_number(fits, keys[k], round(1e4 * meta->place_m[k]) / 1e4,
                   "[m] centre of the antennas, geocentric", failed);
    double latitude = atan2(z, axis_m);
    for (int k = 0; k < 8; ++k) { /* each step is 150 times closer */
        const double s = sin(latitude);
        latitude = atan2(z + e2 * equator_m / sqrt(1 - e2 * s * s) * s, axis_m);
    }
    const double s = sin(latitude);
    const double height =
        axis_m * cos(latitude) + z * s - equator_m * sqrt(1 - e2 * s * s);
    put_number(fits, "OBSGEO-L", round(atan2(y, x) * deg_per_rad * 1e10) / 1e10,
               "[deg] the same, geodetic: longitude", failed);
    put_number(fits, "OBSGEO-B", round(latitude * deg_per_rad * 1e10) / 1e10,
               "[deg] latitude", failed);
    put_number(fits, "OBSGEO-H", round(1e4 * height) / 1e4, "[m] height", failed);
}

/* Writes the beam. Beams of several planes are in a table. The beam of a cube's only
 * plane is here, where CARTA looks for it (carta-backend, FitsLoader::ResetImageBeam).
 */
static void put_beam(fitsfile *fits, const tess_image_meta *meta, int *failed)
{
    if (meta->cube && meta->cube->num_freq * meta->cube->num_stokes > 1) {
        int has_beams = meta->cube->has_beams;
        fits_write_key_log(fits, "CASAMBM", has_beams, "beams are in the table BEAMS",
                           failed);
    } else if (meta->beam.major_rad > 0) {
        put_number(fits, "BMAJ", meta->beam.major_rad * deg_per_rad,
                   "[deg] beam, major axis (FWHM)", failed);
        put_number(fits, "BMIN", meta->beam.minor_rad * deg_per_rad,
                   "[deg] beam, minor axis (FWHM)", failed);
        put_number(fits, "BPA", meta->beam.pa_rad * deg_per_rad,
                   "[deg] beam, position angle, North through East", failed);
    } else if (meta->cube) { /* as many cards: the beam is known when the plane is */
        fits_write_comment(fits, "The plane has no beam,", failed);
        fits_write_comment(fits, "so that BMAJ, BMIN and BPA", failed);
        fits_write_comment(fits, "are undefined.", failed);
    }
}

/* Rounds to nine digits, which sums over any number of ranks have in common. */
static double nine_digits(double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.8E", value);
    return strtod(text, NULL);
}

static void put_wsclean_range(fitsfile *fits, const char *const keys[2],
                              const int64_t range[2], int *failed)
{
    for (int k = 0; k < 2 && range[1] > 0; ++k)
        put_number(fits, keys[k], (double)range[k], NULL, failed);
}

static void put_wsclean_cleaning(fitsfile *fits, const tess_fits_wsclean *told,
                                 int *failed)
{
    put_number(fits, "WSCNITER", (double)told->niter, "most minor iterations", failed);
    put_number(fits, "WSCGAIN", told->gain, NULL, failed);
    put_number(fits, "WSCMGAIN", told->mgain, NULL, failed);
    put_number(fits, "WSCTHRES", told->threshold_jy, "[Jy/beam]", failed);
    put_number(fits, "WSCNEGCM", told->no_negative ? 0 : 1, "negative components",
               failed);
    put_number(fits, "WSCNEGST", told->stop_negative ? 1 : 0, "ends at a negative one",
               failed);
    if (!told->is_cleaned) return;
    put_number(fits, "WSCMAJOR", (double)told->majors, "major iterations", failed);
    put_number(fits, "WSCMINOR", (double)told->iterations, "minor iterations", failed);
}

static void put_wsclean(fitsfile *fits, const tess_image_meta *meta, int *failed)
{
    static const char *const channels[] = {"WSCCHANS", "WSCCHANE"};
    static const char *const time_steps[] = {"WSCTIMES", "WSCTIMEE"};
    const tess_fits_wsclean *told = &meta->gridded.wsclean;
    put_number(fits, "WSCIMGWG", told->image_weight, "weight in a mean of images",
               failed);
    put_number(fits, "WSCNORMF", told->image_weight, "by which sums were divided",
               failed);
    put_number(fits, "WSCNVIS", (double)meta->gridded.num_vis, "visibilities gridded",
               failed);
    put_number(fits, "WSCENVIS", told->effective_vis,
               "as many of the largest weight weigh this", failed);
    put_number(fits, "WSCVWSUM", nine_digits(told->weight_sum),
               "sum of the weights of visibilities", failed);
    put_text(fits, "WSCWEIGH", told->weighting, NULL, failed);
    put_text_if(fits, "WSCDATAC", meta->gridded.data_column, failed);
    put_number(fits, "WSCFIELD", told->field, NULL, failed);
    put_wsclean_range(fits, channels, told->channels, failed);
    put_wsclean_range(fits, time_steps, told->time_steps, failed);
    put_wsclean_cleaning(fits, told, failed);
}

/* Writes what kind of image it is, and its unit. WSClean writes units in capitals, and
 * its PSFs have the unit and the kind of images. */
static void put_kind(fitsfile *fits, const tess_image_meta *meta, int *failed)
{
    const bool as_wsclean = is_as_wsclean(meta);
    char unit[sizeof meta->unit];
    for (size_t k = 0; k < sizeof unit; ++k)
        unit[k] =
            (char)(as_wsclean ? toupper((unsigned char)meta->unit[k]) : meta->unit[k]);
    /* casacore's name of a PSF's kind */
    put_text(fits, "BTYPE", meta->is_psf && !as_wsclean ? "Beam" : "Intensity", NULL,
             failed);
    put_text(fits, "BUNIT", unit, NULL, failed);
    if (!as_wsclean) return;
    put_number(fits, "BSCALE", 1, NULL, failed);
    put_number(fits, "BZERO", 0, NULL, failed);
}

static void put_pixels(fitsfile *fits, const tess_image_meta *meta,
                       const tess_fits_stats *stats, int *failed)
{
    const bool some = stats->min <= stats->max;
    put_kind(fits, meta, failed);
    if (meta->imaginary) {
        int yes = 1;
        fits_write_key_log(fits, "IMAGPART", yes, "imaginary part of the cross-hand",
                           failed);
    }
    if (some) {
        put_number(fits, "DATAMIN", stats->min, NULL, failed);
        put_number(fits, "DATAMAX", stats->max, NULL, failed);
    } else if (!isnan(stats->min)) { /* there are as many cards in any case, because the
                length is fixed before the extremes are known */
        fits_write_comment(fits, "No pixel has a value,", failed);
        fits_write_comment(fits, "so that DATAMIN and DATAMAX are undefined.", failed);
    }
    put_beam(fits, meta, failed);
    put_text_if(fits, "WEIGHT", meta->gridded.weighting, failed);
    if (meta->cube) return; /* the table of planes has the rest */
    put_number(fits, "SUMWT", meta->gridded.sum_weights, "sum of imaging weights",
               failed);
    fits_write_key_lng(fits, "NVIS", meta->gridded.num_vis, "visibilities gridded",
                       failed);
    if (meta->gridded.wsclean.given) put_wsclean(fits, meta, failed);
}

static void put_cleaned(fitsfile *fits, const tess_fits_cleaned *cleaned, int *failed)
{
    if (cleaned->majors == 0) return;
    fits_write_key_lng(fits, "NITER", cleaned->iterations, "minor CLEAN iterations",
                       failed);
    fits_write_key_lng(fits, "NMAJOR", cleaned->majors, "major CLEAN iterations",
                       failed);
    put_number(fits, "CLGAIN", cleaned->gain, "share of a peak in each iteration",
               failed);
    if (cleaned->mgain > 0)
        put_number(fits, "CLMGAIN", cleaned->mgain,
                   "share of the peak in each major one", failed);
    put_number(fits, "CLTHRESH", cleaned->threshold_jy, "[Jy/beam] final threshold",
               failed);
    put_number(fits, "CLFLUX", cleaned->flux_jy, "[Jy] sum of the model", failed);
    fits_write_key_lng(fits, "CLSCALES", cleaned->num_scales, "scales, 1: points only",
                       failed);
    if (cleaned->num_terms == 0) return;
    put_text_if(fits, "CLSPEC", cleaned->log_terms ? "log-polynomial" : "polynomial",
                failed);
    fits_write_key_lng(fits, "CLTERMS", cleaned->num_terms, "terms of spectra", failed);
    put_number(fits, "CLNU0", cleaned->nu0_hz,
               "[Hz] where spectra have their first term", failed);
}

enum { HISTORY_WIDTH = 72 };

/* Writes text so that its cards one after the other are the text again. No card ends
 * with a space, which readers leave out. */
static void put_whole(fitsfile *fits, const char *text, int *failed)
{
    char line[HISTORY_WIDTH + 1], clean[HISTORY_WIDTH + 1];
    while (*text && !*failed) {
        size_t part = strlen(text);
        if (part > HISTORY_WIDTH) part = HISTORY_WIDTH;
        while (part > 1 && text[part - 1] == ' ')
            --part;
        snprintf(line, sizeof line, "%.*s", (int)part, text);
        printable(line, clean, sizeof clean);
        fits_write_history(fits, clean, failed);
        text += part;
    }
}

/* Breaks text into lines of at most 72 characters, at a space if there is one.
 * Continued lines are indented. Behind a line of WSClean all are: scripts join the
 * cards, and look for its words among them. */
static void put_history(fitsfile *fits, const char *typed, const char *history,
                        int *failed)
{
    const char *indent = typed ? " " : "";
    char line[HISTORY_WIDTH + 3], clean[HISTORY_WIDTH + 3];
    if (typed) put_whole(fits, typed, failed);
    snprintf(line, sizeof line, "%stessera " TESS_VERSION_TEXT, indent);
    fits_write_history(fits, line, failed);
    while (history && *history && !*failed) {
        size_t left = strcspn(history, "\n");
        const char *before = indent;
        do {
            const size_t room = HISTORY_WIDTH - strlen(before);
            size_t part = left < room ? left : room;
            if (left > room) {
                size_t cut = room;
                while (cut > room / 2 && history[cut] != ' ')
                    --cut;
                if (cut > room / 2) part = cut;
                while (part > 1 && ((unsigned char)history[part] & 0xC0) == 0x80)
                    --part;
            }
            snprintf(line, sizeof line, "%s%.*s", before, (int)part, history);
            printable(line, clean, sizeof clean);
            fits_write_history(fits, clean, failed);
            history += part;
            left -= part;
            while (left > 0 && *history == ' ')
                ++history, --left;
            before = "  ";
        } while (left > 0);
        if (*history == '\n') ++history;
    }
}

static char *find_card(char *text, int64_t bytes, const char *start)
{
    for (int64_t at = 0; at + TESS_FITS_CARD <= bytes; at += TESS_FITS_CARD)
        if (strncmp(text + at, start, strlen(start)) == 0) return text + at;
    return NULL;
}

/* Takes out the card that starts like this. */
static void drop_card(char *text, int64_t *bytes, const char *start)
{
    char *found = find_card(text, *bytes, start);
    if (!found) return;
    *bytes -= TESS_FITS_CARD;
    memmove(found, found + TESS_FITS_CARD, (size_t)(text + *bytes - found));
}

/* Puts the real lengths in. CFITSIO made the header for one pixel, so that it would not
 * reserve memory for the image. */
static void set_length(char *text, int64_t bytes, int axis, int64_t length)
{
    char start[16], card[2 * TESS_FITS_CARD];
    snprintf(start, sizeof start, "NAXIS%d  =", axis);
    char *found = find_card(text, bytes, start);
    if (!found) return;
    snprintf(card, sizeof card, "%s %20lld / %-47s", start, (long long)length,
             "pixels");
    memcpy(found, card, TESS_FITS_CARD);
}

/* The checksum makes the ones-complement sum over the whole file all ones; it was
 * computed with itself set to ASCII zeros (FITS standard 4.0, appendix J). */
static void set_checksum(char *text, int64_t bytes, uint32_t data_sum)
{
    enum { VALUE_AT = 11, VALUE_LENGTH = 16 };
    char value[VALUE_LENGTH + 1], *found = find_card(text, bytes, "CHECKSUM=");
    uint64_t sum = data_sum;
    if (!found) return;
    for (int64_t at = 0; at < bytes; at += 4) {
        unsigned char c[4];
        memcpy(c, text + at, 4);
        sum += (uint32_t)c[0] << 24 | (uint32_t)c[1] << 16 | (uint32_t)c[2] << 8 | c[3];
    }
    fits_encode_chksum(tess_fits_fold(sum), 1, value);
    memcpy(found + VALUE_AT, value, VALUE_LENGTH);
}

/* Writes all keywords to a file in memory. */
static void put_all(fitsfile *fits, const tess_image_meta *meta, bool is_double,
                    const tess_fits_stats *stats, int *failed)
{
    char sum[16];
    LONGLONG lengths[4] = {1, 1, 1, 1};
    fits_create_imgll(fits, is_double ? DOUBLE_IMG : FLOAT_IMG, 4, lengths, failed);
    if (*failed) return;
    put_pixels(fits, meta, stats, failed);
    put_cleaned(fits, &meta->cleaned, failed);
    put_wcs(fits, meta, failed);
    put_observation(fits, meta, failed);
    put_place(fits, meta, failed);
    snprintf(sum, sizeof sum, "%lu", (unsigned long)stats->data_sum);
    put_text(fits, "CHECKSUM", "0000000000000000", "of the whole file", failed);
    put_text(fits, "DATASUM", sum, "of the pixels", failed);
    put_history(fits, meta->gridded.wsclean.typed, meta->history, failed);
}

static void set_lengths(char *text, int64_t bytes, const tess_image_meta *meta)
{
    set_length(text, bytes, 1, meta->nx);
    set_length(text, bytes, 2, meta->ny);
    if (meta->cube) {
        set_length(text, bytes, 3, meta->cube->num_freq);
        set_length(text, bytes, 4, meta->cube->num_stokes);
    }
}

tess_status tess_fits_header_build(const char *path, const tess_image_meta *meta,
                                   bool is_double, const tess_fits_stats *stats,
                                   char **text_out, int64_t *bytes_out)
{
    tess_status status = TESS_OK;
    fitsfile *fits = NULL;
    char *cards = NULL, *text = NULL;
    int failed = 0, num_cards = 0;
    fits_create_file(&fits, "mem://", &failed);
    put_all(fits, meta, is_double, stats, &failed);
    fits_hdr2str(fits, 0, NULL, 0, &cards, &num_cards, &failed);
    if (failed) {
        char why[FLEN_STATUS];
        fits_get_errstatus(failed, why);
        fits_clear_errmsg();
        TESS_FAIL(TESS_ERR_INTERNAL, "%s: header cannot be made: %s", path, why);
    }
    const int64_t used = (int64_t)strlen(cards);
    const int64_t bytes =
        (used + TESS_FITS_BLOCK - 1) / TESS_FITS_BLOCK * TESS_FITS_BLOCK;
    text = tess_alloc(bytes, 1);
    if (!text) TESS_FAIL(TESS_ERR_ALLOC, "%s: no memory for the header", path);
    memset(text, ' ', (size_t)bytes);
    memcpy(text, cards, (size_t)used);
    set_lengths(text, bytes, meta);
    set_checksum(text, bytes, stats->data_sum);
    *text_out = text;
    *bytes_out = bytes;
    text = NULL;
cleanup:
    tess_free(text);
    if (cards) fits_free_memory(cards, &(int){0});
    if (fits) fits_delete_file(fits, &(int){0});
    return status;
}

tess_status tess_fits_header_text(const tess_image_meta *meta, bool is_double,
                                  double min, double max, char **text, int64_t *bytes)
{
    tess_status status = TESS_OK;
    const tess_fits_stats stats = {.min = min, .max = max};
    TESS_TRY(tess_fits_header_build("image", meta, is_double, &stats, text, bytes));
    drop_card(*text, bytes, "CHECKSUM=");
    drop_card(*text, bytes, "DATASUM =");
    *bytes = find_card(*text, *bytes, "END     ") + TESS_FITS_CARD - *text;
cleanup:
    return status;
}

/* Makes HISTORY cards, one after the other. `*cards` comes from CFITSIO. */
static tess_status make_history(const char *path, const char *lines, char **cards)
{
    tess_status status = TESS_OK;
    fitsfile *fits = NULL;
    int failed = 0, num_cards = 0;
    fits_create_file(&fits, "mem://", &failed);
    fits_create_imgll(fits, BYTE_IMG, 0, NULL, &failed);
    if (!failed) put_history(fits, NULL, lines, &failed);
    fits_hdr2str(fits, 0, NULL, 0, cards, &num_cards, &failed);
    fits_clear_errmsg();
    if (failed)
        TESS_FAIL(failed == MEMORY_ALLOCATION ? TESS_ERR_ALLOC : TESS_ERR_INTERNAL,
                  "%s: HISTORY cannot be made (CFITSIO status %d)", path, failed);
cleanup:
    if (fits) fits_delete_file(fits, &(int){0});
    return status;
}

tess_status tess_fits_header_extend(const char *path, const char *header, int64_t bytes,
                                    const char *lines, char **out, int64_t *out_bytes)
{
    tess_status status = TESS_OK;
    char *cards = NULL, *text = NULL;
    TESS_TRY(make_history(path, lines, &cards));
    const int64_t more = (int64_t)strlen(cards);
    text = tess_alloc(bytes + more + TESS_FITS_BLOCK, 1);
    if (!text) TESS_FAIL(TESS_ERR_ALLOC, "%s: no memory for the header", path);
    memcpy(text, header, (size_t)bytes);
    drop_card(text, &bytes, "CHECKSUM=");
    drop_card(text, &bytes, "DATASUM =");
    const char *end = find_card(text, bytes, "END     ");
    if (!end) TESS_FAIL(TESS_ERR_INPUT, "%s: the header has no END", path);
    int64_t used = end - text;
    for (int64_t at = 0; at + TESS_FITS_CARD <= more; at += TESS_FITS_CARD) {
        if (strncmp(cards + at, "HISTORY ", 8) != 0) continue;
        memcpy(text + used, cards + at, TESS_FITS_CARD);
        used += TESS_FITS_CARD;
    }
    memset(text + used, ' ', (size_t)(bytes + more + TESS_FITS_BLOCK - used));
    memcpy(text + used, "END", 3);
    used += TESS_FITS_CARD;
    *out_bytes = (used + TESS_FITS_BLOCK - 1) / TESS_FITS_BLOCK * TESS_FITS_BLOCK;
    *out = text;
    text = NULL;
cleanup:
    tess_free(text);
    if (cards) fits_free_memory(cards, &(int){0});
    return status;
}
