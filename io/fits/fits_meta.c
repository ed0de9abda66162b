/* Reads the header of an image into what a header is made of, so that an image that is
 * made of another one tells the same. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "fits_header.h"
#include "fits_keys.h"
#include "tess_const.h"
#include "tess_mem.h"

/* The sides of a pixel may differ by this share: a corner of a 16384-pixel image then
 * stays within 1e-3 pixel. */
static const double MOST_UNEVEN = 1e-7;

/* ---- times ---- */

/* Computes the modified Julian day of a date of the Gregorian calendar. This is the
 * reverse of tess_fits_date. */
static double day_of(int year, int month, int day)
{
    const int64_t y = year - (month <= 2), era = (y >= 0 ? y : y - 399) / 400;
    const int64_t yoe = y - era * 400;
    const int64_t doy = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    const int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return (double)(era * 146097 + doe - 678881);
}

/* Reads a date in seconds; 0 if there is none. */
static double get_time(fitsfile *fits, const char *key, int *failed)
{
    char text[FLEN_VALUE] = "";
    int year, month, day, hour, minute, bad = 0;
    double second;
    fits_get_text(fits, key, text, sizeof text, failed);
    if (*failed || !*text) return 0;
    fits_str2time(text, &year, &month, &day, &hour, &minute, &second, &bad);
    if (bad) return 0;
    return day_of(year, month, day) * TESS_SECONDS_PER_DAY + 3600.0 * hour +
           60.0 * minute + second;
}

/* ---- axes ---- */

static tess_status take_axes(const tess_fits_model *image, tess_image_meta *meta)
{
    tess_status status = TESS_OK;
    const double scale_rad = image->scale_y_rad;
    if (!(image->scale_x_rad < 0 && scale_rad > 0))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: East is not to the left or North not up (CDELT1, CDELT2); turn "
                  "the image",
                  image->path);
    if (!(fabs(image->scale_x_rad + scale_rad) <= MOST_UNEVEN * scale_rad))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: pixels are not square (CDELT1, CDELT2); regrid the image",
                  image->path);
    meta->nx = image->nx;
    meta->ny = image->ny;
    meta->ra_rad = image->ra_rad;
    meta->dec_rad = image->dec_rad;
    meta->scale_rad = scale_rad;
    meta->l0 = scale_rad * (image->crpix_x - 1 - (double)(image->nx / 2));
    meta->m0 = -scale_rad * (image->crpix_y - 1 - (double)(image->ny / 2));
    meta->stokes = image->stokes[0];
cleanup:
    return status;
}

/* Returns the width of a channel as a cube's table of planes tells it, or 0. */
static tess_status read_width(const tess_fits_model *image, double *width_hz)
{
    tess_status status = TESS_OK;
    fits_table from = {.fd = -1};
    double found;
    *width_hz = 0;
    TESS_TRY(fits_table_find(image->path, "PLANES", &from));
    if (from.fits && fits_table_column(&from, "BANDWID", 1, &found) && found > 0 &&
        isfinite(found))
        *width_hz = found;
cleanup:
    fits_table_close(&from);
    return status;
}

/* Finds frequency and width of the first plane. Without a table, the width is the step
 * of the axis. Frequencies in a table have no step, so the neighbouring frequency gives
 * the width. */
static tess_status take_frequency(const tess_fits_model *image, tess_image_meta *meta)
{
    tess_status status = TESS_OK;
    const int num = image->num_freq;
    double *freq_hz = tess_alloc(num, sizeof *freq_hz);
    bool *has_data = tess_alloc(num, sizeof *has_data);
    if (!freq_hz || !has_data) TESS_FAIL(TESS_ERR_ALLOC, "%s: planes", image->path);
    TESS_TRY(tess_fits_frequencies(image, freq_hz, has_data));
    meta->freq_hz = freq_hz[0];
    if (num > 1) TESS_TRY(read_width(image, &meta->bandwidth_hz));
    if (meta->bandwidth_hz > 0 || image->freq_axis < 0) goto cleanup;
    const tess_fits_axis *axis = &image->array.axis[image->freq_axis];
    if (num > 1)
        meta->bandwidth_hz = fabs(freq_hz[1] - freq_hz[0]);
    else if (strncasecmp(axis->type, "FREQ", 4) == 0)
        meta->bandwidth_hz = fabs(axis->step) * tess_fits_unit_hz(axis->unit);
    else
        meta->bandwidth_hz =
            fabs(tess_fits_axis_hz(axis, image->array.rest_freq_hz, 2) - freq_hz[0]);
cleanup:
    tess_free(freq_hz);
    tess_free(has_data);
    return status;
}

/* ---- keywords ---- */

static void take_beam(const tess_fits_array *array, tess_fits_beam *beam)
{
    if (!(array->beam_deg[0] > 0 && array->beam_deg[1] > 0)) return;
    beam->major_rad = array->beam_deg[0] * TESS_RAD_PER_DEG;
    beam->minor_rad = array->beam_deg[1] * TESS_RAD_PER_DEG;
    beam->pa_rad = array->beam_deg[2] * TESS_RAD_PER_DEG;
}

static void get_observation(fitsfile *fits, tess_image_meta *meta, int *failed)
{
    fits_get_number(fits, "EQUINOX", &meta->equinox, failed);
    fits_get_text(fits, "OBJECT", meta->names.object, sizeof meta->names.object,
                  failed);
    fits_get_text(fits, "TELESCOP", meta->names.telescope, sizeof meta->names.telescope,
                  failed);
    fits_get_text(fits, "OBSERVER", meta->names.observer, sizeof meta->names.observer,
                  failed);
    fits_get_text(fits, "DATACOL", meta->gridded.data_column,
                  sizeof meta->gridded.data_column, failed);
    fits_get_number(fits, "OBSGEO-X", &meta->place_m[0], failed);
    fits_get_number(fits, "OBSGEO-Y", &meta->place_m[1], failed);
    fits_get_number(fits, "OBSGEO-Z", &meta->place_m[2], failed);
    meta->time_start_mjd_s = get_time(fits, "DATE-OBS", failed);
    meta->time_end_mjd_s = get_time(fits, "DATE-END", failed);
}

/* The frame of frequencies; topocentric where it is not one that is known. */
static void get_spectral(fitsfile *fits, const tess_fits_model *image,
                         tess_fits_spectral *spectral, int *failed)
{
    char name[16] = "";
    double velosys = NAN;
    fits_get_text(fits, "SPECSYS", name, sizeof name, failed);
    fits_get_number(fits, "VELOSYS", &velosys, failed);
    spectral->frame = tess_spectral_frame_like(name);
    if (strcasecmp(name, tess_spectral_frame_specsys(spectral->frame)) != 0)
        snprintf(spectral->other, sizeof spectral->other, "%s", name);
    spectral->is_chosen = isfinite(velosys);
    spectral->velosys_m_s = velosys;
    if (image->freq_axis < 0) return;
    const char *type = image->array.axis[image->freq_axis].type;
    if (strcasecmp(type, "VRAD") == 0) spectral->velocity = TESS_RADIO;
    if (strcasecmp(type, "VOPT") == 0) spectral->velocity = TESS_OPTICAL;
}

static void get_gridded(fitsfile *fits, tess_fits_gridded *gridded, int *failed)
{
    double num_vis = 0;
    fits_get_text(fits, "WEIGHT", gridded->weighting, sizeof gridded->weighting,
                  failed);
    fits_get_number(fits, "WSCIMGWG", &gridded->sum_weights, failed); /* WSClean's */
    fits_get_number(fits, "SUMWT", &gridded->sum_weights, failed);
    fits_get_number(fits, "WSCNVIS", &num_vis, failed);
    fits_get_number(fits, "NVIS", &num_vis, failed);
    fits_get_number(fits, "FREQMEAN", &gridded->freq_mean_hz, failed);
    if (num_vis >= 0 && num_vis < 1e18) gridded->num_vis = (int64_t)num_vis;
}

tess_status tess_fits_meta_read(const char *path, tess_fits_model *image,
                                tess_image_meta *meta_out)
{
    tess_status status = TESS_OK;
    fits_image_file file = {.fd = -1};
    tess_image_meta meta = {0};
    int failed = 0;
    TESS_TRY(tess_fits_open(path, image));
    TESS_TRY(take_axes(image, &meta));
    TESS_TRY(take_frequency(image, &meta));
    take_beam(&image->array, &meta.beam);
    meta.spectral.rest_hz = image->array.rest_freq_hz;
    snprintf(meta.unit, sizeof meta.unit, "%.15s", image->unit);
    TESS_TRY(fits_image_open(path, &file));
    get_observation(file.fits, &meta, &failed);
    get_gridded(file.fits, &meta.gridded, &failed);
    get_spectral(file.fits, image, &meta.spectral, &failed);
    if (failed)
        TESS_FAIL(TESS_ERR_INPUT, "%s: header cannot be read (CFITSIO status %d)", path,
                  failed);
    *meta_out = meta;
cleanup:
    fits_image_close(&file);
    return status;
}
