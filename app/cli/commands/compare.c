/* Compares two FITS images, or two folders of stage dumps, within tolerances. */
#define _GNU_SOURCE
#include "compare.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "tess_fits_array.h"
#include "tess_mem.h"

enum { PIECE = 1 << 18 };

typedef struct image_pair {
    tess_fits_array a, b;
    double *values_a, *values_b; /* [PIECE] */
} image_pair;

void tess_compare_opts_default(tess_compare_opts *opts)
{
    *opts = (tess_compare_opts){.rtol = 1e-5, .atol = -1};
}

/* ---- headers ---- */

static int64_t axis_length(const tess_fits_array *image, int axis)
{
    return axis < image->num_axes ? image->axis[axis].length : 1;
}

static bool sizes_differ(const image_pair *pair, tess_compare_result *result)
{
    for (int k = 0; k < TESS_FITS_MAX_AXES; ++k) {
        const long long a = axis_length(&pair->a, k), b = axis_length(&pair->b, k);
        if (a == b) continue;
        snprintf(result->header, sizeof result->header,
                 "axis %d has %lld pixels in one and %lld in the other", k + 1, a, b);
        return true;
    }
    return false;
}

/* Coordinates are printed with 15 digits at times, which is less than 1e-3 of a
 * microarcsecond pixel. */
static double position_tolerance(const tess_fits_axis *a, const tess_fits_axis *b)
{
    return fmax(1e-3 * fabs(a->step), 1e-14 * fmax(fabs(a->value), fabs(b->value)));
}

/* How far two coordinates of an axis are apart. Longitudes that differ by whole turns
 * are the same. */
static double distance(const tess_fits_axis *axis, double a, double b)
{
    const double turn = tess_fits_turn(axis);
    return fabs(turn > 0 ? remainder(a - b, turn) : a - b);
}

/* Whether axis `k`, one of the first two, differs. The other one of them is the
 * latitude of a longitude. */
static bool place_differs(const image_pair *pair, int k)
{
    const tess_fits_axis *a = &pair->a.axis[k], *b = &pair->b.axis[k];
    const tess_fits_axis *other = &pair->a.axis[1 - k];
    double off = distance(a, a->value, b->value);
    if (tess_fits_turn(a) > 0)
        off *= fabs(cos(other->value * tess_fits_unit_rad(other->unit)));
    return !(off <= position_tolerance(a, b)) || !(fabs(a->pixel - b->pixel) <= 1e-3);
}

static bool step_differs(const image_pair *pair, int k)
{
    const double step = hypot(pair->a.matrix[k][0], pair->a.matrix[k][1]);
    for (int j = 0; j < 2; ++j) {
        const double off = pair->a.matrix[k][j] - pair->b.matrix[k][j];
        if (!(fabs(off) * (double)axis_length(&pair->a, j) <= 1e-3 * step)) return true;
    }
    return false;
}

/* Frequency and Stokes of the planes, or a longitude that is not among the first axes.
 */
static bool planes_differ(const tess_fits_axis *a, const tess_fits_axis *b)
{
    for (int64_t plane = 1; plane <= a->length;
         plane += a->length > 1 ? a->length - 1 : 1) {
        const double at_a = a->value + ((double)plane - a->pixel) * a->step;
        const double at_b = b->value + ((double)plane - b->pixel) * b->step;
        const double tolerance =
            tess_fits_turn(a) > 0 ? position_tolerance(a, b) : 1e-6 * fabs(at_a);
        if (!(distance(a, at_a, at_b) <= tolerance)) return true;
    }
    return false;
}

static bool is_same(const double *a, const double *b, size_t count)
{
    return memcmp(a, b, count * sizeof *a) == 0;
}

/* Whether both headers have the same numbers for an axis, be they of use or not:
 * coordinates that overflow are not equal to themselves. */
static bool axis_is_same(const image_pair *pair, int k)
{
    const tess_fits_axis *a = &pair->a.axis[k], *b = &pair->b.axis[k];
    return is_same(&a->value, &b->value, 1) && is_same(&a->pixel, &b->pixel, 1) &&
           is_same(&a->step, &b->step, 1) &&
           (k > 1 || is_same(pair->a.matrix[k], pair->b.matrix[k], 2));
}

static bool headers_differ(const image_pair *pair, tess_compare_result *result)
{
    const tess_fits_array *a = &pair->a, *b = &pair->b;
    const size_t size = sizeof result->header;
    const int num_axes = a->num_axes < b->num_axes ? a->num_axes : b->num_axes;
    for (int k = 0; k < num_axes; ++k) {
        const tess_fits_axis *x = &a->axis[k], *y = &b->axis[k];
        const char *what = NULL;
        if (strcasecmp(x->type, y->type) != 0 || strcasecmp(x->unit, y->unit) != 0) {
            snprintf(result->header, size, "axis %d is '%s' (%s) and '%s' (%s)", k + 1,
                     x->type, x->unit, y->type, y->unit);
            return true;
        }
        if (axis_is_same(pair, k)) continue;
        if (k < 2 && num_axes > 1) {
            if (step_differs(pair, k))
                what = "pixel size or rotation";
            else if (place_differs(pair, k))
                what = "reference position";
        } else if (planes_differ(x, y))
            what = "value";
        if (!what) continue;
        snprintf(
            result->header, size,
            "%s of axis %d (%s) differs: %.15g at pixel %.9g by %.15g, and %.15g at "
            "pixel %.9g by %.15g",
            what, k + 1, x->type, x->value, x->pixel, x->step, y->value, y->pixel,
            y->step);
        return true;
    }
    if (strcasecmp(a->unit, b->unit) != 0) {
        snprintf(result->header, size, "unit is '%s' and '%s'", a->unit, b->unit);
        return true;
    }
    return false;
}

/* ---- pixels ---- */

/* rms and peak of A, and how many of its pixels are finite. */
static tess_status measure(image_pair *pair, tess_compare_result *result,
                           int64_t *num_finite)
{
    tess_status status = TESS_OK;
    double sum = 0;
    int64_t used = 0;
    for (int64_t first = 0; first < pair->a.num_pixels; first += PIECE) {
        const int64_t left = pair->a.num_pixels - first,
                      part = left < PIECE ? left : PIECE;
        double part_sum = 0;
        TESS_TRY(tess_fits_array_read(&pair->a, first, part, TESS_PIXEL_DOUBLE,
                                      pair->values_a));
        for (int64_t k = 0; k < part; ++k) {
            const double value = pair->values_a[k];
            if (!isfinite(value)) continue;
            part_sum += value * value;
            result->peak = fmax(result->peak, fabs(value));
            ++used;
        }
        sum += part_sum;
    }
    *num_finite = used;
    result->rms = used > 0 ? sqrt(sum / (double)used) : 0;
    if (!isfinite(result->rms)) result->rms = result->peak; /* squares overflowed */
cleanup:
    return status;
}

static void keep_largest(const image_pair *pair, int64_t pixel, double a, double b,
                         tess_compare_result *result)
{
    result->max_abs = fabs(a - b);
    result->max_a = a;
    result->max_b = b;
    for (int k = 0; k < 4; ++k) {
        const int64_t length = axis_length(&pair->a, k);
        result->max_pixel[k] = k < 3 ? pixel % length : pixel;
        pixel /= length;
    }
}

/* Where a comparison of pixels has come to. */
typedef struct pixel_sums {
    double near_zero; /* differences up to this do not count */
    double scale;     /* rms of A, by which differences are divided; 0: they are not */
    double sum;       /* of squares of (A − B) / scale */
    bool any;         /* a pair of finite pixels has been seen */
} pixel_sums;

/* Pixels of which one is not finite: blank pixels are like blank pixels. */
static void compare_odd(double a, double b, tess_compare_result *result)
{
    const bool same = (isnan(a) && isnan(b)) || (!isnan(a) && a <= b && a >= b);
    result->num_different += !same;
    result->num_blank += isnan(a) != isnan(b);
}

/* Compares the `count` pixels from `first` on that have been read from both images. */
static void compare_part(const image_pair *pair, const tess_compare_opts *opts,
                         int64_t first, int64_t count, pixel_sums *sums,
                         tess_compare_result *result)
{
    double part_sum = 0;
    for (int64_t k = 0; k < count; ++k) {
        const double a = pair->values_a[k], b = pair->values_b[k];
        if (!isfinite(a) || !isfinite(b)) {
            compare_odd(a, b, result);
            continue;
        }
        const double off = fabs(a - b);
        if (!(off <= sums->near_zero) && !(off <= opts->rtol * fmax(fabs(a), fabs(b))))
            ++result->num_different;
        if (sums->scale > 0) part_sum += (off / sums->scale) * (off / sums->scale);
        if (!sums->any || off > result->max_abs)
            keep_largest(pair, first + k, a, b, result);
        sums->any = true;
    }
    sums->sum += part_sum;
}

static tess_status compare_pixels(image_pair *pair, const tess_compare_opts *opts,
                                  tess_compare_result *result)
{
    tess_status status = TESS_OK;
    int64_t num_finite = 0;
    TESS_TRY(measure(pair, result, &num_finite));
    const double scale = result->rms;
    pixel_sums sums = {.near_zero = opts->atol >= 0 ? opts->atol * result->peak
                                                    : opts->rtol * scale,
                       .scale = scale};
    for (int64_t first = 0; first < pair->a.num_pixels; first += PIECE) {
        const int64_t left = pair->a.num_pixels - first,
                      part = left < PIECE ? left : PIECE;
        TESS_TRY(tess_fits_array_read(&pair->a, first, part, TESS_PIXEL_DOUBLE,
                                      pair->values_a));
        TESS_TRY(tess_fits_array_read(&pair->b, first, part, TESS_PIXEL_DOUBLE,
                                      pair->values_b));
        compare_part(pair, opts, first, part, &sums, result);
    }
    result->l2_relative = 0;
    if (scale > 0)
        result->l2_relative = sqrt(sums.sum / (double)num_finite);
    else if (result->max_abs > 0)
        result->l2_relative = INFINITY;
cleanup:
    return status;
}

/* ---- files and folders ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static tess_status compare_pair(const char *a, const char *b,
                                const tess_compare_opts *opts,
                                tess_compare_result *result)
{
    tess_status status = TESS_OK;
    image_pair *pair = tess_alloc_zero(1, sizeof *pair);
    if (!pair) TESS_FAIL(TESS_ERR_ALLOC, "no memory to compare images");
    *result = (tess_compare_result){0};
    snprintf(result->name, sizeof result->name, "%.255s", base_name(a));
    TESS_TRY(tess_fits_array_open(a, &pair->a));
    TESS_TRY(tess_fits_array_open(b, &pair->b));
    result->differs = sizes_differ(pair, result);
    if (result->differs) goto cleanup;
    result->num_pixels = pair->a.num_pixels;
    if (!opts->pixels_only) result->differs = headers_differ(pair, result);
    pair->values_a = tess_alloc(PIECE, sizeof(double));
    pair->values_b = tess_alloc(PIECE, sizeof(double));
    if (!pair->values_a || !pair->values_b)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory to compare images");
    TESS_TRY(compare_pixels(pair, opts, result));
    result->differs = result->differs || result->num_different > 0;
cleanup:
    if (pair) {
        tess_free(pair->values_a);
        tess_free(pair->values_b);
    }
    tess_free(pair);
    return status;
}

/* The first difference stays; until there is one, the worst pair. */
static void take(const tess_compare_opts *opts, tess_compare_result *found,
                 int num_pairs, tess_compare_result *result)
{
    found->num_pairs = num_pairs;
    if (opts->report) opts->report(found, opts->context);
    const bool worse = found->l2_relative > result->l2_relative || num_pairs == 1;
    if (!result->differs && (found->differs || worse)) *result = *found;
    result->num_pairs = num_pairs;
}

static int is_fits_name(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && tess_fits_is_name(entry->d_name);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void free_names(struct dirent **names, int count)
{
    for (int k = 0; k < count; ++k)
        free(names[k]);
    free(names);
}

static tess_status compare_named(const char *a, const char *b, const char *name,
                                 const tess_compare_opts *opts,
                                 tess_compare_result *found)
{
    tess_status status = TESS_OK;
    char path_a[4096], path_b[4096];
    const int used_a = snprintf(path_a, sizeof path_a, "%s/%s", a, name);
    const int used_b = snprintf(path_b, sizeof path_b, "%s/%s", b, name);
    if (used_a >= (int)sizeof path_a || used_b >= (int)sizeof path_b)
        TESS_FAIL(TESS_ERR_INPUT, "%s: path is too long", a);
    TESS_TRY(compare_pair(path_a, path_b, opts, found));
cleanup:
    return status;
}

static tess_status compare_folders(const char *a, const char *b,
                                   const tess_compare_opts *opts,
                                   tess_compare_result *result)
{
    tess_status status = TESS_OK;
    struct dirent **names_a = NULL, **names_b = NULL;
    int num_a = 0, num_b = 0;
    num_a = scandir(a, &names_a, is_fits_name, by_name);
    if (num_a < 0)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be listed: %s", a, strerror(errno));
    num_b = scandir(b, &names_b, is_fits_name, by_name);
    if (num_b < 0)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be listed: %s", b, strerror(errno));
    if (num_a == 0 || num_b == 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: holds no FITS images", num_a == 0 ? a : b);
    for (int i = 0, j = 0, pairs = 1; i < num_a || j < num_b; ++pairs) {
        tess_compare_result found = {0};
        const int order = i >= num_a   ? 1
                          : j >= num_b ? -1
                                       : strcmp(names_a[i]->d_name, names_b[j]->d_name);
        const char *name = order <= 0 ? names_a[i]->d_name : names_b[j]->d_name;
        if (order == 0)
            TESS_TRY(compare_named(a, b, name, opts, &found));
        else {
            snprintf(found.name, sizeof found.name, "%.255s", name);
            snprintf(found.header, sizeof found.header, "is missing in %.400s",
                     order < 0 ? b : a);
            found.differs = true;
        }
        take(opts, &found, pairs, result);
        i += order <= 0;
        j += order >= 0;
    }
cleanup:
    free_names(names_a, num_a);
    free_names(names_b, num_b);
    return status;
}

static tess_status is_folder(const char *path, bool *folder)
{
    tess_status status = TESS_OK;
    struct stat info;
    if (stat(path, &info) != 0)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    *folder = S_ISDIR(info.st_mode);
cleanup:
    return status;
}

/* The difference as the error message. */
static tess_status report_difference(const tess_compare_result *result)
{
    tess_status status = TESS_OK;
    if (!result->differs) goto cleanup;
    if (result->header[0])
        TESS_FAIL(TESS_ERR_DIFFERENT, "%s: %s", result->name, result->header);
    TESS_FAIL(
        TESS_ERR_DIFFERENT,
        "%s: %lld of %lld pixels differ (%lld blank in one only); largest difference "
        "%.6g at pixel (%lld, %lld, %lld, %lld): %.9g and %.9g; relative L2 %.3g",
        result->name, (long long)result->num_different, (long long)result->num_pixels,
        (long long)result->num_blank, result->max_abs, (long long)result->max_pixel[0],
        (long long)result->max_pixel[1], (long long)result->max_pixel[2],
        (long long)result->max_pixel[3], result->max_a, result->max_b,
        result->l2_relative);
cleanup:
    return status;
}

tess_status tess_compare_files(const char *a, const char *b,
                               const tess_compare_opts *opts,
                               tess_compare_result *result)
{
    tess_status status = TESS_OK;
    tess_compare_result found = {0}, first = {0};
    bool folder_a = false, folder_b = false;
    if (!(opts->rtol >= 0) || !isfinite(opts->rtol) || isnan(opts->atol) ||
        opts->atol > 1e300)
        TESS_FAIL(TESS_ERR_USAGE, "tolerances must be finite and not negative");
    TESS_TRY(is_folder(a, &folder_a));
    TESS_TRY(is_folder(b, &folder_b));
    if (folder_a != folder_b)
        TESS_FAIL(TESS_ERR_USAGE,
                  "%s is a folder and %s is not; give two images or two folders",
                  folder_a ? a : b, folder_a ? b : a);
    if (folder_a) {
        TESS_TRY(compare_folders(a, b, opts, &first));
    } else {
        TESS_TRY(compare_pair(a, b, opts, &found));
        take(opts, &found, 1, &first);
    }
    *result = first;
    status = report_difference(&first);
cleanup:
    return status;
}
