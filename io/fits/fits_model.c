/* Reads model images: checks their axes and projection, and reads rows of a Stokes
 * plane. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "sky_frame.h"
#include "tess_const.h"
#include "tess_fits.h"
#include "tess_real.h"

static tess_status check_celestial(const tess_fits_array *array)
{
    tess_status status = TESS_OK;
    const char *path = array->path;
    if (array->num_axes < 2)
        TESS_FAIL(TESS_ERR_INPUT, "%s: is not an image: it has one axis", path);
    const char *x = array->axis[0].type, *y = array->axis[1].type;
    if (strncasecmp(x, "RA--", 4) != 0 || strncasecmp(y, "DEC-", 4) != 0)
        TESS_FAIL(
            TESS_ERR_INPUT,
            "%s: axes 1 and 2 are '%s' and '%s'; they must be RA---SIN and DEC--SIN",
            path, x, y);
    if (strcasecmp(x, "RA---SIN") != 0 || strcasecmp(y, "DEC--SIN") != 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: projection of '%s', '%s' is not SIN; regrid the image to SIN",
                  path, x, y);
    if (fabs(array->slant[0]) > 0 || fabs(array->slant[1]) > 0)
        TESS_FAIL(
            TESS_ERR_INPUT,
            "%s: slant SIN projection (PV2_1, PV2_2); regrid the image to plain SIN",
            path);
    const double diagonal = fmin(fabs(array->matrix[0][0]), fabs(array->matrix[1][1]));
    const double other = fmax(fabs(array->matrix[0][1]), fabs(array->matrix[1][0]));
    /* a corner of a 16384-pixel image then stays within 1e-4 pixel */
    if (other > 1e-8 * diagonal && isfinite(other))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: image is rotated (CROTA2, PC or CD); regrid it with North up",
                  path);
    if (!(fabs(array->pole_deg - 180) <= 1e-9))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: LONPOLE = %g turns the image; regrid it with LONPOLE = 180",
                  path, array->pole_deg);
cleanup:
    return status;
}

static tess_status get_celestial(tess_fits_model *model)
{
    tess_status status = TESS_OK;
    const tess_fits_axis *x = &model->array.axis[0], *y = &model->array.axis[1];
    const double unit_x = tess_fits_unit_rad(x->unit),
                 unit_y = tess_fits_unit_rad(y->unit);
    if (unit_x <= 0 || unit_y <= 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: unit of RA or DEC is '%s'; it must be deg",
                  model->path, unit_x <= 0 ? x->unit : y->unit);
    model->nx = x->length;
    model->ny = y->length;
    model->ra_rad = x->value * unit_x;
    model->dec_rad = y->value * unit_y;
    model->crpix_x = x->pixel;
    model->crpix_y = y->pixel;
    model->scale_x_rad = model->array.matrix[0][0] * unit_x;
    model->scale_y_rad = model->array.matrix[1][1] * unit_y;
    const double product = model->scale_x_rad * model->scale_y_rad;
    if (!isfinite(product) || fabs(product) <= 0 ||
        fabs(model->scale_x_rad) > TESS_PI || fabs(model->scale_y_rad) > TESS_PI)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: pixel size (CDELT1, CDELT2) is zero or not usable", model->path);
    if (!isfinite(model->ra_rad) ||
        !(fabs(model->dec_rad) <= TESS_PI / 2 * (1 + 1e-12)) ||
        !isfinite(model->crpix_x) || !isfinite(model->crpix_y))
        TESS_FAIL(TESS_ERR_INPUT, "%s: reference position (CRVAL, CRPIX) is not usable",
                  model->path);
cleanup:
    return status;
}

/* The North of ICRS lies so close to that of J2000 that pixels stay where they are. */
static void get_frame(tess_fits_model *model)
{
    const tess_fits_array *array = &model->array;
    sky_frame frame;
    double place[2] = {model->ra_rad, model->dec_rad};
    memcpy(model->labelled_rad, place, sizeof place);
    if (sky_frame_parse(model->path, array->system, array->equinox, &frame) !=
        TESS_OK) {
        tess_error_clear(); /* only those who need J2000 refuse the image */
        snprintf(model->frame, sizeof model->frame, "%s",
                 *array->system ? array->system : "FK4");
        return;
    }
    sky_frame_name(&frame, model->frame, sizeof model->frame);
    if (frame.system != SKY_ICRS) return;
    (void)sky_frame_to_j2000(&frame, 0, place);
    model->ra_rad = place[0];
    model->dec_rad = place[1];
    snprintf(model->frame, sizeof model->frame, "J2000");
}

tess_status tess_fits_check_j2000(const tess_fits_model *model)
{
    tess_status status = TESS_OK;
    if (strcmp(model->frame, "J2000") != 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: its positions are in the frame %s (RADESYS, EQUINOX); regrid it "
                  "to J2000",
                  model->path, model->frame);
cleanup:
    return status;
}

static double apart(double ra, double dec, const double to[2])
{
    return hypot(remainder(ra - to[0], TESS_TWO_PI) * cos(to[1]), dec - to[1]);
}

void tess_fits_settle(tess_fits_model *model, double ra_rad, double dec_rad)
{
    const double place[2] = {ra_rad, dec_rad}, *labelled = model->labelled_rad;
    if (!(apart(labelled[0], labelled[1], place) <
          apart(model->ra_rad, model->dec_rad, place)))
        return;
    model->ra_rad = labelled[0];
    model->dec_rad = labelled[1];
}

static tess_status get_stokes(tess_fits_model *model, const tess_fits_axis *axis)
{
    tess_status status = TESS_OK;
    if (axis->length > 4)
        TESS_FAIL(TESS_ERR_INPUT, "%s: STOKES axis has %lld planes; at most 4 are read",
                  model->path, (long long)axis->length);
    model->num_stokes = (int)axis->length;
    for (int k = 0; k < model->num_stokes; ++k) {
        const double code = axis->value + (k + 1 - axis->pixel) * axis->step;
        if (!(fabs(code - round(code)) < 1e-6) || code < -8.5 || code > 4.5 ||
            fabs(code) < 0.5)
            TESS_FAIL(TESS_ERR_INPUT, "%s: plane %d of the STOKES axis has code %g",
                      model->path, k + 1, code);
        model->stokes[k] = (int)lround(code);
    }
cleanup:
    return status;
}

/* Whether an axis is the spectral one. An only plane need not tell its frequency. */
static bool is_spectral(const tess_fits_model *model, const tess_fits_axis *axis)
{
    return tess_fits_is_spectral(axis) &&
           (axis->length > 1 || strncasecmp(axis->type, "FREQ", 4) == 0 ||
            tess_fits_axis_hz(axis, model->array.rest_freq_hz, 1) > 0);
}

/* Checks axes 3 and up: FREQ and STOKES in either order; others must have one plane. */
static tess_status get_planes(tess_fits_model *model)
{
    tess_status status = TESS_OK;
    int64_t stride = model->nx * model->ny;
    bool has_stokes = false;
    model->freq_axis = -1;
    model->num_freq = model->num_stokes = 1;
    model->stokes[0] = 1;
    model->freq_hz = model->array.rest_freq_hz;
    for (int k = 2; k < model->array.num_axes; ++k) {
        const tess_fits_axis *axis = &model->array.axis[k];
        if (is_spectral(model, axis) && model->freq_axis < 0) {
            model->freq_axis = k;
            if (axis->length > INT32_MAX)
                TESS_FAIL(TESS_ERR_INPUT, "%s: too many frequencies", model->path);
            model->num_freq = (int)axis->length;
            model->freq_hz = tess_fits_axis_hz(axis, model->array.rest_freq_hz, 1);
            model->freq_stride = stride;
        } else if (strcasecmp(axis->type, "STOKES") == 0 && !has_stokes) {
            has_stokes = true;
            TESS_TRY(get_stokes(model, axis));
            model->stokes_stride = stride;
        } else if (axis->length > 1)
            TESS_FAIL(
                TESS_ERR_INPUT,
                "%s: axis %d is '%s' with %lld planes; only FREQ and STOKES may have "
                "more than one",
                model->path, k + 1, axis->type, (long long)axis->length);
        stride *= axis->length;
    }
cleanup:
    return status;
}

tess_status tess_fits_open(const char *path, tess_fits_model *model_out)
{
    tess_status status = TESS_OK;
    tess_fits_model model = {0};
    TESS_TRY(tess_fits_array_open(path, &model.array));
    TESS_TRY(check_celestial(&model.array));
    snprintf(model.path, sizeof model.path, "%s", path);
    snprintf(model.unit, sizeof model.unit, "%s", model.array.unit);
    model.is_psf = strcasecmp(model.array.kind, "Beam") == 0;
    model.bitpix = model.array.bitpix;
    TESS_TRY(get_celestial(&model));
    get_frame(&model);
    TESS_TRY(get_planes(&model));
    *model_out = model;
cleanup:
    return status;
}

tess_status tess_fits_open_unplaced(const char *path, bool *is_placed,
                                    tess_fits_model *model_out)
{
    tess_status status = TESS_OK;
    tess_fits_model model = {.frame = "J2000", .bitpix = 0};
    TESS_TRY(tess_fits_array_open(path, &model.array));
    const tess_fits_axis *axis = model.array.axis;
    *is_placed = model.array.num_axes > 1 && (axis[0].type[0] || axis[1].type[0]);
    if (model.array.num_axes < 2 || *is_placed) return tess_fits_open(path, model_out);
    snprintf(model.path, sizeof model.path, "%s", path);
    snprintf(model.unit, sizeof model.unit, "%s", model.array.unit);
    model.bitpix = model.array.bitpix;
    model.nx = axis[0].length;
    model.ny = axis[1].length;
    TESS_TRY(get_planes(&model));
    *model_out = model;
cleanup:
    return status;
}

void tess_fits_open_pixels(const tess_fits_pixels *pixels, double ra_rad,
                           double dec_rad, tess_fits_model *model)
{
    *model = (tess_fits_model){.path = "the model in memory",
                               .nx = pixels->nx,
                               .ny = pixels->ny,
                               .num_freq = 1,
                               .freq_axis = -1,
                               .num_stokes = pixels->num_stokes,
                               .stokes = {1, 2, 3, 4},
                               .ra_rad = ra_rad,
                               .dec_rad = dec_rad,
                               .frame = "J2000",
                               .labelled_rad = {ra_rad, dec_rad},
                               .crpix_x = (double)(pixels->nx / 2 + 1),
                               .crpix_y = (double)(pixels->ny / 2 + 1),
                               .scale_x_rad = -pixels->scale_rad,
                               .scale_y_rad = pixels->scale_rad,
                               .unit = "JY/PIXEL",
                               .bitpix = pixels->is_double ? -64 : -32,
                               .stokes_stride = pixels->nx * pixels->ny,
                               .pixel = pixels->pixel};
}

/* Copies pixels in memory from `first` on. */
static void copy_pixels(const tess_fits_model *model, int64_t first, int64_t count,
                        tess_pixel type, void *out)
{
    const bool is_double = model->bitpix == -64;
    for (int64_t k = 0; k < count; ++k)
        tess_real_set(out, type == TESS_PIXEL_DOUBLE, k,
                      tess_real_at(model->pixel, is_double, first + k));
}

/* Sets the first of these pixels. Local. */
static tess_status find_first(const tess_fits_model *model, int stokes_index,
                              int freq_index, int64_t row_first, int64_t num_rows,
                              int64_t *first)
{
    tess_status status = TESS_OK;
    if (stokes_index < 0 || stokes_index >= model->num_stokes || freq_index < 0 ||
        freq_index >= model->num_freq || row_first < 0 || num_rows < 0 ||
        row_first > model->ny - num_rows)
        TESS_FAIL(TESS_ERR_INTERNAL, "%s: plane or rows outside of the image",
                  model->path);
    *first = stokes_index * model->stokes_stride + freq_index * model->freq_stride +
             row_first * model->nx;
cleanup:
    return status;
}

tess_status tess_fits_read(const tess_fits_model *model, int stokes_index,
                           int freq_index, int64_t row_first, int64_t num_rows,
                           tess_pixel type, void *out)
{
    tess_status status = TESS_OK;
    const int64_t count = num_rows * model->nx;
    int64_t first = 0;
    TESS_TRY(find_first(model, stokes_index, freq_index, row_first, num_rows, &first));
    if (model->pixel)
        copy_pixels(model, first, count, type, out);
    else
        TESS_TRY(tess_fits_array_read(&model->array, first, count, type, out));
cleanup:
    return status;
}
