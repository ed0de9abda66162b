/* Takes values of directions from an image of a-terms. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "aterms.h"
#include "tess_const.h"
#include "tess_fits_array.h"
#include "tess_mem.h"
#include "tess_minmax.h"

/* Axes beside the two of the sky. */
enum { MATRIX, ANTENNA, FREQ, TIME, AXES };
static const char *const axis_names[AXES] = {"MATRIX", "ANTENNA", "FREQ", "TIME"};

/* An image: where its axes are, and the pixels below and left of each direction. */
typedef struct aterm_image {
    tess_fits_array array;
    const tess_fits_axis *axis[AXES]; /* NULL: there is none */
    int64_t length[AXES], stride[AXES];
    int64_t first_row, num_rows; /* that all directions need */
    double (*place)[2];          /* [num_directions] pixels from 0 */
} aterm_image;

/* ---- the header ---- */

/* Shifts of sources are those that all antennas see. */
static int64_t num_antennas(aterm_kind kind, const tess_aterms_opts *opts)
{
    return kind == ATERM_DLDM ? 1 : opts->num_antennas;
}

static tess_status find_axes(aterm_kind kind, const tess_aterms_opts *opts,
                             aterm_image *image)
{
    tess_status status = TESS_OK;
    const tess_fits_array *array = &image->array;
    int64_t stride = 1;
    for (int k = 0; k < AXES; ++k)
        image->length[k] = 1;
    for (int k = 0; k < array->num_axes; ++k) {
        const tess_fits_axis *axis = &array->axis[k];
        int which = 0;
        while (which < AXES && strcasecmp(axis->type, axis_names[which]) != 0)
            ++which;
        if (k >= 2 && ((which == AXES && axis->length > 1) ||
                       (which < AXES && image->axis[which])))
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: axis %d of an image of a-terms is '%s'; it should be one of "
                      "MATRIX, ANTENNA, FREQ and TIME",
                      array->path, k + 1, axis->type);
        if (k >= 2 && which < AXES) {
            image->axis[which] = axis;
            image->length[which] = axis->length;
            image->stride[which] = stride;
        }
        stride *= axis->length;
    }
    if (image->length[MATRIX] != aterm_parts(kind))
        TESS_FAIL(
            TESS_ERR_INPUT,
            "%s: %lld numbers along the axis MATRIX of an image of a-terms, which "
            "should be %lld",
            array->path, (long long)image->length[MATRIX],
            (long long)aterm_parts(kind));
    if (image->length[ANTENNA] != num_antennas(kind, opts))
        TESS_FAIL(TESS_ERR_INPUT, "%s: has %lld antennas, and %s %lld", array->path,
                  (long long)image->length[ANTENNA],
                  kind == ATERM_DLDM ? "an image of shifts (dldm) has"
                                     : "the observation has",
                  (long long)num_antennas(kind, opts));
cleanup:
    return status;
}

/* The value of an axis at pixel k from 0. */
static double value_of(const tess_fits_axis *axis, int64_t k)
{
    return axis->value + ((double)k + 1 - axis->pixel) * axis->step;
}

static bool has_projection(const tess_fits_axis *axis, const char *name)
{
    const size_t length = strlen(axis->type);
    return length > 3 && strcasecmp(axis->type + length - 3, name) == 0;
}

/* Where a direction lies, in pixels from 0; false: behind the plane of the image. */
static bool place_of(const tess_fits_array *array, const double direction[2],
                     double at[2])
{
    const double ra0 = array->axis[0].value * TESS_RAD_PER_DEG;
    const double dec0 = array->axis[1].value * TESS_RAD_PER_DEG;
    const double d_ra = direction[0] - ra0, s = sin(direction[1]),
                 c = cos(direction[1]);
    const double n = s * sin(dec0) + c * cos(dec0) * cos(d_ra);
    const double over = has_projection(&array->axis[0], "TAN") ? n : 1;
    const double x = c * sin(d_ra) / over / TESS_RAD_PER_DEG;
    const double y =
        (s * cos(dec0) - c * sin(dec0) * cos(d_ra)) / over / TESS_RAD_PER_DEG;
    const double(*m)[2] = array->matrix, whole = m[0][0] * m[1][1] - m[0][1] * m[1][0];
    at[0] = array->axis[0].pixel - 1 + (m[1][1] * x - m[0][1] * y) / whole;
    at[1] = array->axis[1].pixel - 1 + (m[0][0] * y - m[1][0] * x) / whole;
    return n > 0;
}

static tess_status find_places(const tess_aterms_opts *opts, aterm_image *image)
{
    tess_status status = TESS_OK;
    const tess_fits_array *array = &image->array;
    const double nx = (double)array->axis[0].length, ny = (double)array->axis[1].length;
    double low = ny, high = 0;
    if (strncasecmp(array->axis[0].type, "RA--", 4) != 0 ||
        (!has_projection(&array->axis[0], "SIN") &&
         !has_projection(&array->axis[0], "TAN")))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: axes 1 and 2 of an image of a-terms must be RA and DEC, in the "
                  "projection SIN or TAN, not '%s'",
                  array->path, array->axis[0].type);
    image->place = tess_alloc(opts->num_directions, sizeof *image->place);
    if (!image->place) TESS_FAIL(TESS_ERR_ALLOC, "%s: no memory", array->path);
    for (int64_t k = 0; k < opts->num_directions; ++k) {
        double *at = image->place[k];
        const bool is_there = place_of(array, opts->direction[k], at);
        if (!is_there ||
            !(at[0] >= -0.5 && at[0] <= nx - 0.5 && at[1] >= -0.5 && at[1] <= ny - 0.5))
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: the direction %.4f, %.4f deg of a facet is outside of this "
                      "image of a-terms",
                      array->path, opts->direction[k][0] / TESS_RAD_PER_DEG,
                      opts->direction[k][1] / TESS_RAD_PER_DEG);
        at[0] = fmin(fmax(at[0], 0), nx - 1);
        at[1] = fmin(fmax(at[1], 0), ny - 1);
        low = fmin(low, floor(at[1]));
        high = fmax(high, ceil(at[1]));
    }
    image->first_row = (int64_t)low;
    image->num_rows = (int64_t)(high - low) + 1;
cleanup:
    return status;
}

/* ---- values ---- */

/* Appends the times of an image, which come after those before. */
static tess_status add_times(const aterm_image *image, aterm_values *to)
{
    tess_status status = TESS_OK;
    const int64_t before = to->num_times, more = image->length[TIME];
    const int64_t step =
        to->num_freqs * to->num_antennas * to->num_directions * aterm_parts(to->kind);
    const tess_fits_axis *axis = image->axis[TIME];
    double *time = tess_alloc(before + more, sizeof *time);
    double *value = tess_alloc((before + more) * step, sizeof *value);
    if (before > 0 && time && value) {
        memcpy(time, to->time_mjd_s, (size_t)before * sizeof *time);
        memcpy(value, to->value, (size_t)(before * step) * sizeof *value);
    }
    if (time && value) {
        tess_free(to->time_mjd_s);
        tess_free(to->value);
        to->time_mjd_s = time;
        to->value = value;
        time = value = NULL;
    } else
        TESS_FAIL(TESS_ERR_ALLOC, "%s: no memory for its values", image->array.path);
    for (int64_t k = 0; k < more; ++k) {
        double *at = to->time_mjd_s + before + k;
        *at = axis ? value_of(axis, k) : 0;
        if (!isfinite(*at) || (before + k > 0 && !(at[0] > at[-1])))
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: times of a-terms do not ascend, or not from image to image",
                      image->array.path);
    }
    to->num_times += more;
cleanup:
    tess_free(time);
    tess_free(value);
    return status;
}

/* Between the four pixels around a place. Pixels beyond the edge are not needed. */
static double between(const aterm_image *image, const double *rows, const double at[2])
{
    const int64_t nx = image->array.axis[0].length;
    const double x = floor(at[0]), y = floor(at[1]);
    const double right = at[0] - x, up = at[1] - y;
    const double *low = rows + ((int64_t)y - image->first_row) * nx + (int64_t)x;
    double value = (1 - right) * (1 - up) * low[0];
    if (right > 0) value += right * (1 - up) * low[1];
    if (up > 0) value += (1 - right) * up * low[nx];
    if (right > 0 && up > 0) value += right * up * low[nx + 1];
    return value;
}

/* The values of a time and a frequency, [antenna][direction][part]. */
static tess_status take_plane(const aterm_image *image, const aterm_values *of,
                              int64_t time, int64_t freq, double *rows, double *value)
{
    tess_status status = TESS_OK;
    const int64_t parts = aterm_parts(of->kind), nx = image->array.axis[0].length;
    for (int64_t a = 0; a < of->num_antennas; ++a)
        for (int64_t part = 0; part < parts; ++part) {
            const int64_t first = time * image->stride[TIME] +
                                  freq * image->stride[FREQ] +
                                  a * image->stride[ANTENNA] +
                                  part * image->stride[MATRIX] + image->first_row * nx;
            TESS_TRY(tess_fits_array_read(&image->array, first, image->num_rows * nx,
                                          TESS_PIXEL_DOUBLE, rows));
            for (int64_t k = 0; k < of->num_directions; ++k)
                value[(a * of->num_directions + k) * parts + part] =
                    between(image, rows, image->place[k]);
        }
cleanup:
    return status;
}

/* The frequencies of the first image, which all others have, too. */
static tess_status take_freqs(const aterm_image *image, aterm_values *to)
{
    tess_status status = TESS_OK;
    const tess_fits_axis *axis = image->axis[FREQ];
    const bool is_first = to->num_times == 0;
    if (is_first) to->freq_hz = tess_alloc(image->length[FREQ], sizeof *to->freq_hz);
    if (!to->freq_hz)
        TESS_FAIL(TESS_ERR_ALLOC, "%s: no memory for its values", image->array.path);
    if (is_first) to->num_freqs = image->length[FREQ];
    if (to->num_freqs != image->length[FREQ])
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: has %lld frequencies, and the image before it %lld",
                  image->array.path, (long long)image->length[FREQ],
                  (long long)to->num_freqs);
    for (int64_t k = 0; k < to->num_freqs; ++k) {
        const double unit = axis ? tess_fits_unit_hz(axis->unit) : 1;
        const double hz = axis ? value_of(axis, k) * unit : 0;
        if (is_first) to->freq_hz[k] = hz;
        if (!isfinite(hz) || (k > 0 && !(to->freq_hz[k] > to->freq_hz[k - 1])))
            TESS_FAIL(TESS_ERR_INPUT, "%s: frequencies of a-terms do not ascend",
                      image->array.path);
    }
cleanup:
    return status;
}

tess_status aterm_image_take(const char *path, const tess_aterms_opts *opts,
                             aterm_values *values)
{
    tess_status status = TESS_OK;
    aterm_image image = {.place = NULL};
    double *rows = NULL;
    const int64_t before = values->num_times;
    TESS_TRY(tess_fits_array_open(path, &image.array));
    if (image.array.num_axes < 2)
        TESS_FAIL(TESS_ERR_INPUT, "%s: is no image of a-terms: it has one axis", path);
    TESS_TRY(find_axes(values->kind, opts, &image));
    TESS_TRY(find_places(opts, &image));
    values->num_antennas = num_antennas(values->kind, opts);
    values->num_directions = opts->num_directions;
    TESS_TRY(take_freqs(&image, values));
    rows = tess_alloc(image.num_rows * image.array.axis[0].length, sizeof *rows);
    if (!rows) TESS_FAIL(TESS_ERR_ALLOC, "%s: no memory for its pixels", path);
    TESS_TRY(add_times(&image, values));
    const int64_t step =
        values->num_antennas * values->num_directions * aterm_parts(values->kind);
    for (int64_t t = 0; t < image.length[TIME]; ++t)
        for (int64_t f = 0; f < values->num_freqs; ++f)
            TESS_TRY(take_plane(&image, values, t, f, rows,
                                values->value +
                                    ((before + t) * values->num_freqs + f) * step));
cleanup:
    tess_free(rows);
    tess_free(image.place);
    return status;
}

void aterm_values_free(aterm_values *values)
{
    tess_free(values->time_mjd_s);
    tess_free(values->freq_hz);
    tess_free(values->value);
    *values = (aterm_values){0};
}
