/* Reads primary beams from FITS cubes of power or of voltage. */
#include "primary_beam.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "tess_cubic.h"
#include "tess_mem.h"
#include "tess_minmax.h"

static bool begins(const char *text, const char *with)
{
    return strncasecmp(text, with, strlen(with)) == 0;
}

/* ---- the header ---- */

static tess_status get_directions(beam_cube *cube)
{
    tess_status status = TESS_OK;
    const tess_fits_array *array = &cube->array;
    if (array->num_axes < 2)
        TESS_FAIL(TESS_ERR_INPUT, "%s: is no beam: it has one axis", array->path);
    const tess_fits_axis *x = &array->axis[0], *y = &array->axis[1];
    const bool is_east = begins(x->type, "L");
    if (!is_east && !begins(x->type, "AZ") && !begins(x->type, "X"))
        TESS_FAIL(TESS_ERR_INPUT, "%s: axis 1 of a beam must be AZ, X or L, not '%s'",
                  array->path, x->type);
    if (!begins(y->type, "EL") && !begins(y->type, "Y") && !begins(y->type, "M"))
        TESS_FAIL(TESS_ERR_INPUT, "%s: axis 2 of a beam must be EL, Y or M, not '%s'",
                  array->path, y->type);
    cube->x_rad = x->step * tess_fits_unit_rad(x->unit) * (is_east ? -1 : 1);
    cube->y_rad = y->step * tess_fits_unit_rad(y->unit);
    if (!(fabs(cube->x_rad * cube->y_rad) > 0) ||
        !isfinite(cube->x_rad * cube->y_rad) ||
        !isfinite(x->pixel * x->value + y->pixel * y->value) || x->length < 4 ||
        y->length < 4)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: axes 1 and 2 of a beam need an angle's unit (CUNIT), a step "
                  "(CDELT) and 4 pixels",
                  array->path);
cleanup:
    return status;
}

/* Which entries of a Jones matrix the planes of voltages are: one is of both feeds, two
 * are of X and Y, and four are XX, XY, YX and YY unless codes of Stokes parameters tell
 * another order. */
static void name_entries(const tess_fits_axis *axis, beam_cube *cube)
{
    static const int of_code[4] = {0, 3, 1, 2}; /* XX, YY, XY, YX are −5 to −8 */
    const double first = axis->value + (1 - axis->pixel) * axis->step;
    const int num = (int)axis->length;
    cube->num_entries = num == 1 || num == 2 || num == 4 ? num : 0;
    for (int k = 0; k < cube->num_entries; ++k) {
        const double code = first + k * axis->step;
        const bool is_code = num == 4 && code <= -1 && code >= -8;
        cube->entry[k] =
            is_code ? of_code[((int)-code - 1) % 4] : (num == 2 ? 3 * k : k);
    }
}

/* Finds the planes that count: of powers that of Stokes I, or else the two that make
 * it; of voltages all. */
static tess_status choose_feeds(const tess_fits_axis *axis, bool is_voltage,
                                beam_cube *cube)
{
    tess_status status = TESS_OK;
    const double first = axis->value + (1 - axis->pixel) * axis->step;
    cube->num_feeds = (int)axis->length;
    if (is_voltage && axis->length <= 4) name_entries(axis, cube);
    if (is_voltage || axis->length == 1) return TESS_OK;
    int found = 0;
    for (int64_t k = 0; k < axis->length; ++k) {
        const double code = first + (double)k * axis->step;
        const bool is_stokes_i = fabs(code - 1) < 0.5;
        /* −1 and −2 are RR and LL, −5 and −6 are XX and YY */
        const bool is_parallel = fabs(code + 1.5) < 1 || fabs(code + 5.5) < 1;
        if (is_stokes_i) {
            cube->feed_first = k;
            cube->num_feeds = 1;
            return TESS_OK;
        }
        if (is_parallel && found++ == 0) cube->feed_first = k;
    }
    if (found != 2)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: the STOKES axis of a beam has neither I, nor XX and YY, nor RR "
                  "and LL",
                  cube->array.path);
    cube->num_feeds = 2;
cleanup:
    return status;
}

static tess_status get_frequencies(const tess_fits_axis *axis, beam_cube *cube)
{
    tess_status status = TESS_OK;
    const double hz = tess_fits_unit_hz(axis->unit);
    if (!(hz > 0))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: unit of the beam's FREQ axis is '%s'; it must be Hz",
                  cube->array.path, axis->unit);
    if (axis->length > 1 && axis->type[4] == '-')
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: frequency axis '%s' of the beam is not linear; write one with "
                  "CTYPE 'FREQ'",
                  cube->array.path, axis->type);
    cube->freq_step_hz = axis->step * hz;
    cube->freq_hz = axis->value * hz + (1 - axis->pixel) * cube->freq_step_hz;
    cube->num_freq = (int)axis->length;
    const double last = cube->freq_hz + (cube->num_freq - 1) * cube->freq_step_hz;
    if (axis->length > INT32_MAX || !(cube->freq_hz > 0) || !(last > 0) ||
        !isfinite(last) || !(fabs(cube->freq_step_hz) > 0))
        TESS_FAIL(TESS_ERR_INPUT, "%s: the FREQ axis of the beam is not usable",
                  cube->array.path);
cleanup:
    return status;
}

static tess_status get_planes(beam_cube *cube)
{
    tess_status status = TESS_OK;
    const tess_fits_array *array = &cube->array;
    const tess_fits_axis *stokes = NULL;
    int64_t stride = array->axis[0].length * array->axis[1].length;
    cube->num_freq = 0;
    cube->num_feeds = cube->num_entries = 1;
    for (int k = 2; k < array->num_axes; ++k) {
        const tess_fits_axis *axis = &array->axis[k];
        if (begins(axis->type, "FREQ") && cube->num_freq == 0) {
            TESS_TRY(get_frequencies(axis, cube));
            cube->freq_stride = stride;
        } else if (begins(axis->type, "STOKES") && !stokes) {
            stokes = axis;
            cube->feed_stride = stride;
        } else if (begins(axis->type, "COMPLEX") && axis->length == 2)
            cube->part_stride = stride;
        else if (axis->length > 1)
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: axis %d of a beam must be FREQ, STOKES or COMPLEX, not '%s'",
                      array->path, k + 1, axis->type);
        stride *= axis->length;
    }
    if (cube->num_freq == 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: the beam has no FREQ axis", array->path);
    if (stokes && cube->part_stride > 0) cube->num_entries = 0;
    if (stokes) TESS_TRY(choose_feeds(stokes, cube->part_stride > 0, cube));
cleanup:
    return status;
}

tess_status beam_cube_open(const char *path, beam_cube *to)
{
    tess_status status = TESS_OK;
    beam_cube cube = {0};
    TESS_TRY(tess_fits_array_open(path, &cube.array));
    TESS_TRY(get_directions(&cube));
    TESS_TRY(get_planes(&cube));
    *to = cube;
cleanup:
    return status;
}

void beam_cube_range(const beam_cube *cube, double *low_hz, double *high_hz)
{
    const double last = cube->freq_hz + (cube->num_freq - 1) * cube->freq_step_hz;
    const double slack = cube->num_freq == 1 ? 0.5 * fabs(cube->freq_step_hz) : 0;
    *low_hz = fmin(cube->freq_hz, last) - slack;
    *high_hz = fmax(cube->freq_hz, last) + slack;
}

/* ---- the pixels ---- */

beam_map beam_cube_map(const beam_cube *cube)
{
    const tess_fits_axis *x = &cube->array.axis[0], *y = &cube->array.axis[1];
    return (beam_map){.nx = x->length,
                      .ny = y->length,
                      .x0 = x->pixel - 1 - x->value / x->step,
                      .y0 = y->pixel - 1 - y->value / y->step,
                      .dx = cube->x_rad,
                      .dy = cube->y_rad};
}

tess_status beam_cube_plane(const beam_cube *cube, int plane, double *part,
                            beam_map *map)
{
    tess_status status = TESS_OK;
    const int64_t pixels = map->nx * map->ny;
    const int parts = cube->part_stride > 0 ? 2 : 1;
    memset(map->value, 0, (size_t)pixels * sizeof *map->value);
    for (int feed = 0; feed < cube->num_feeds; ++feed)
        for (int k = 0; k < parts; ++k) {
            const int64_t first = plane * cube->freq_stride + k * cube->part_stride +
                                  (cube->feed_first + feed) * cube->feed_stride;
            TESS_TRY(tess_fits_array_read(&cube->array, first, pixels,
                                          TESS_PIXEL_DOUBLE, part));
            for (int64_t i = 0; i < pixels; ++i)
                map->value[i] += parts == 2 ? part[i] * part[i] : part[i];
        }
    const double middle = beam_map_at(map, 0, 0);
    if (!(middle > 0))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: plane %d of the beam is not positive at its middle",
                  cube->array.path, plane + 1);
    for (int64_t i = 0; i < pixels; ++i)
        map->value[i] /= middle;
cleanup:
    return status;
}

/* The share of each plane in the mean over channels; returns the sum of weights. */
static double share_planes(const beam_cube *cube, int64_t num_chan,
                           const double *freq_hz, const double *weight, double *share)
{
    double sum = 0;
    for (int64_t c = 0; c < num_chan; ++c) {
        const double at = (freq_hz[c] - cube->freq_hz) / cube->freq_step_hz;
        const double inside = fmin(fmax(at, 0), cube->num_freq - 1);
        const int below = (int)fmin(floor(inside), fmax(cube->num_freq - 2, 0));
        const double above = inside - below;
        share[below] += weight[c] * (1 - above);
        if (above > 0) share[below + 1] += weight[c] * above;
        sum += weight[c];
    }
    return sum;
}

tess_status beam_cube_mean(const beam_cube *cube, int64_t num_chan,
                           const double *freq_hz, const double *weight, beam_map *to)
{
    tess_status status = TESS_OK;
    beam_map mean = beam_cube_map(cube), plane = mean;
    const int64_t pixels = mean.nx * mean.ny;
    double *part = tess_alloc(pixels, sizeof *part);
    double *share = tess_alloc_zero(cube->num_freq, sizeof *share);
    mean.value = tess_alloc_zero(pixels, sizeof *mean.value);
    plane.value = tess_alloc(pixels, sizeof *plane.value);
    if (!part || !share || !mean.value || !plane.value)
        TESS_FAIL(TESS_ERR_ALLOC, "%s: primary beam", cube->array.path);
    const double sum = share_planes(cube, num_chan, freq_hz, weight, share);
    for (int k = 0; k < cube->num_freq; ++k) {
        if (!(share[k] > 0)) continue;
        TESS_TRY(beam_cube_plane(cube, k, part, &plane));
        for (int64_t i = 0; i < pixels; ++i)
            mean.value[i] += share[k] / sum * plane.value[i];
    }
    *to = mean;
    mean.value = NULL;
cleanup:
    tess_free(part);
    tess_free(share);
    tess_free(mean.value);
    tess_free(plane.value);
    return status;
}

/* ---- power on a grid ---- */

double beam_map_at(const beam_map *map, double x, double y)
{
    const double column = x / map->dx + map->x0, row = y / map->dy + map->y0;
    double in_x[4], in_y[4], sum = 0;
    if (!(column >= 0 && column <= (double)(map->nx - 1)) ||
        !(row >= 0 && row <= (double)(map->ny - 1)))
        return 0;
    const int64_t i = (int64_t)column, j = (int64_t)row;
    tess_cubic_weights(column - (double)i, in_x);
    tess_cubic_weights(row - (double)j, in_y);
    for (int b = 0; b < 4; ++b) {
        const double *line =
            map->value + tess_clamp_i64(j + b - 1, 0, map->ny - 1) * map->nx;
        for (int a = 0; a < 4; ++a)
            sum += in_y[b] * in_x[a] * line[tess_clamp_i64(i + a - 1, 0, map->nx - 1)];
    }
    return isfinite(sum) ? sum : 0;
}
