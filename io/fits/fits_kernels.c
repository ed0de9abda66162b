/* Reads convolution functions from FITS, and writes them to FITS. */
#define _GNU_SOURCE
#include "tess_fits_kernels.h"

#include <fitsio.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fits_new.h"
#include "tess_fits_array.h"
#include "tess_input.h"
#include "tess_mem.h"

enum { MAX_SUPPORT = 1024, MAX_OVERSAMPLING = 64, MAX_PLANES = 4096 };

/* Mirror images may differ by this part of a plane's largest value, because of single
 * precision and some arithmetic. */
static const double EVEN_WITHIN = 1e-5;

int tess_fits_kernels_half(const tess_fits_kernels *kernels)
{
    return kernels->support * kernels->oversampling / 2 + 1;
}

void tess_fits_kernels_free(tess_fits_kernels *kernels)
{
    tess_free(kernels->value);
    *kernels = (tess_fits_kernels){0};
}

/* ---- header ---- */

static tess_status get_number(fitsfile *fits, const char *path, const char *key,
                              double least, double most, double *value)
{
    tess_status status = TESS_OK;
    int failed = 0;
    fits_read_key(fits, TDOUBLE, key, value, NULL, &failed);
    fits_clear_errmsg();
    if (failed)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: convolution functions need the keyword %s (see tessera image "
                  "--help)",
                  path, key);
    if (!(*value >= least && *value <= most))
        TESS_FAIL(TESS_ERR_INPUT, "%s: %s is %g; it must be from %g to %g", path, key,
                  *value, least, most);
cleanup:
    return status;
}

static tess_status get_whole(fitsfile *fits, const char *path, const char *key,
                             int least, int most, int *value)
{
    tess_status status = TESS_OK;
    double number = 0;
    TESS_TRY(get_number(fits, path, key, least, most, &number));
    *value = (int)number;
    if (*value != number)
        TESS_FAIL(TESS_ERR_INPUT, "%s: %s is %g, which is no whole number", path, key,
                  number);
cleanup:
    return status;
}

static tess_status get_spacing(fitsfile *fits, const char *path, bool *is_linear)
{
    tess_status status = TESS_OK;
    char text[FLEN_VALUE] = "";
    int failed = 0;
    fits_read_key(fits, TSTRING, "GCFWSPAC", text, NULL, &failed);
    fits_clear_errmsg();
    if (failed || (strcmp(text, "SQRT") != 0 && strcmp(text, "LINEAR") != 0))
        TESS_FAIL(TESS_ERR_INPUT, "%s: GCFWSPAC must be 'SQRT' or 'LINEAR'", path);
    *is_linear = text[0] == 'L';
cleanup:
    return status;
}

static tess_status get_keywords(const tess_fits_array *array,
                                tess_fits_kernels *kernels)
{
    tess_status status = TESS_OK;
    int failed = 0;
    fitsfile *fits = NULL;
    const char *path = array->path;
    fits_open_diskfile(&fits, path, READONLY, &failed); /* whatever its name means */
    fits_movabs_hdu(fits, array->hdu, NULL, &failed);
    fits_clear_errmsg();
    if (failed) TESS_TRY(tess_input_check_limit(path));
    if (failed) TESS_FAIL(TESS_ERR_INPUT, "%s: its header cannot be read", path);
    TESS_TRY(get_whole(fits, path, "GCFSUPP", 2, MAX_SUPPORT, &kernels->support));
    if (kernels->support % 2 != 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: GCFSUPP is %d; it must be even", path,
                  kernels->support);
    TESS_TRY(
        get_whole(fits, path, "GCFOVER", 1, MAX_OVERSAMPLING, &kernels->oversampling));
    TESS_TRY(get_spacing(fits, path, &kernels->is_linear));
    TESS_TRY(get_number(fits, path, "GCFWMAX", 0, 1e12, &kernels->w_max_lambda));
    TESS_TRY(get_number(fits, path, "GCFFLDL", 1e-12, 2, &kernels->field_l));
    TESS_TRY(get_number(fits, path, "GCFFLDM", 1e-12, 2, &kernels->field_m));
cleanup:
    if (fits) {
        failed = 0;
        fits_close_file(fits, &failed);
    }
    return status;
}

static tess_status check_axes(const tess_fits_array *array,
                              const tess_fits_kernels *kernels)
{
    tess_status status = TESS_OK;
    const int64_t side = (int64_t)kernels->support * kernels->oversampling + 1;
    const tess_fits_axis *axis = array->axis;
    if (array->num_axes != 4 || axis[3].length != 2)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: convolution functions have 4 axes, the last of length 2 (real "
                  "and imaginary part); this has %d",
                  array->path, array->num_axes);
    if (axis[0].length != side || axis[1].length != side)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: its kernels have %lld × %lld pixels; GCFSUPP %d and GCFOVER %d "
                  "make that %lld × %lld",
                  array->path, (long long)axis[0].length, (long long)axis[1].length,
                  kernels->support, kernels->oversampling, (long long)side,
                  (long long)side);
    if (axis[2].length < 1 || axis[2].length > MAX_PLANES)
        TESS_FAIL(TESS_ERR_INPUT, "%s: %lld planes of w; from 1 to %d", array->path,
                  (long long)axis[2].length, MAX_PLANES);
    if (axis[2].length > 1 && kernels->w_max_lambda == 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: GCFWMAX is 0, with %lld planes", array->path,
                  (long long)axis[2].length);
cleanup:
    return status;
}

/* ---- values ---- */

/* Whether the mirror images of the plane are equal to it. */
static bool is_even(int64_t half, const double *whole, double largest)
{
    const int64_t side = 2 * half - 1, middle = half - 1;
    for (int64_t x = 0; x < side; ++x)
        for (int64_t y = 0; y < side; ++y) {
            const int64_t u = llabs(x - middle), v = llabs(y - middle);
            const double there = whole[(middle + u) * side + middle + v];
            if (fabs(whole[x * side + y] - there) > EVEN_WITHIN * largest) return false;
        }
    return true;
}

/* Reads a part of a plane, all of whose values have to be finite. */
static tess_status read_plane(const tess_fits_array *array,
                              const tess_fits_kernels *kernels, int plane, int part,
                              double *whole, double *largest)
{
    tess_status status = TESS_OK;
    const int64_t side = 2 * (int64_t)tess_fits_kernels_half(kernels) - 1;
    const int64_t first = ((int64_t)part * kernels->num_planes + plane) * side * side;
    TESS_TRY(tess_fits_array_read(array, first, side * side, TESS_PIXEL_DOUBLE, whole));
    *largest = 0;
    for (int64_t k = 0; k < side * side; ++k) {
        if (!isfinite(whole[k]))
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: a value of plane %d is not finite (pixel %lld, %lld)",
                      array->path, plane, (long long)(k % side + 1),
                      (long long)(k / side + 1));
        *largest = fmax(*largest, fabs(whole[k]));
    }
cleanup:
    return status;
}

/* Makes a quarter of a part of an even plane, which is the mean of the four mirror
 * images. Each is divided before it is added, because the sum of finite values may not
 * be finite. */
static void fold_plane(int64_t half, const double *whole, double *quarter)
{
    const int64_t side = 2 * half - 1, middle = half - 1;
    for (int64_t x = 0; x < half; ++x)
        for (int64_t y = 0; y < half; ++y)
            quarter[2 * (x * half + y)] =
                0.25 * whole[(middle + x) * side + middle + y] +
                0.25 * whole[(middle + x) * side + middle - y] +
                0.25 * whole[(middle - x) * side + middle + y] +
                0.25 * whole[(middle - x) * side + middle - y];
}

static tess_status read_values(const tess_fits_array *array, tess_fits_kernels *kernels)
{
    tess_status status = TESS_OK;
    const int64_t half = tess_fits_kernels_half(kernels), side = 2 * half - 1;
    const int parts = 2 * kernels->num_planes;
    double *whole = tess_alloc(side * side, sizeof *whole), largest;
    if (!whole) TESS_FAIL(TESS_ERR_ALLOC, "%s: convolution functions", array->path);
    for (int k = 0; k < parts; ++k) {
        TESS_TRY(read_plane(array, kernels, k / 2, k % 2, whole, &largest));
        if (!is_even(half, whole, largest)) kernels->is_uneven = true;
    }
    const int64_t values = kernels->is_uneven ? side * side : half * half;
    kernels->value =
        tess_alloc(kernels->num_planes * values, 2 * sizeof *kernels->value);
    if (!kernels->value)
        TESS_FAIL(TESS_ERR_ALLOC, "%s: no memory for %d convolution functions",
                  array->path, kernels->num_planes);
    for (int k = 0; k < parts; ++k) {
        double *to = kernels->value + 2 * (k / 2) * values + k % 2;
        TESS_TRY(read_plane(array, kernels, k / 2, k % 2, whole, &largest));
        if (!kernels->is_uneven) fold_plane(half, whole, to);
        for (int64_t j = 0; j < values && kernels->is_uneven; ++j)
            to[2 * j] = whole[j];
    }
cleanup:
    tess_free(whole);
    return status;
}

tess_status tess_fits_kernels_read(const char *path, tess_fits_kernels *kernels)
{
    tess_status status = TESS_OK;
    tess_fits_array array;
    tess_fits_kernels found = {0};
    TESS_TRY(tess_fits_array_open(path, &array));
    TESS_TRY(get_keywords(&array, &found));
    TESS_TRY(check_axes(&array, &found));
    found.num_planes = (int)array.axis[2].length;
    found.is_double = array.bitpix == -64;
    TESS_TRY(read_values(&array, &found));
    *kernels = found;
    found.value = NULL;
cleanup:
    tess_fits_kernels_free(&found);
    return status;
}

/* ---- writing ---- */

static void put_header(fitsfile *fits, const tess_fits_kernels *of, int *failed)
{
    double w_max = of->w_max_lambda, field_l = of->field_l, field_m = of->field_m;
    int support = of->support, oversampling = of->oversampling;
    char spacing[8] = "SQRT";
    if (of->is_linear) snprintf(spacing, sizeof spacing, "LINEAR");
    fits_write_key(fits, TINT, "GCFSUPP", &support, "cells of a kernel", failed);
    fits_write_key(fits, TINT, "GCFOVER", &oversampling, "pixels of a cell", failed);
    fits_write_key(fits, TSTRING, "GCFWSPAC", spacing, "planes are even in", failed);
    fits_write_key(fits, TDOUBLE, "GCFWMAX", &w_max, "[wavelengths] w of last plane",
                   failed);
    fits_write_key(fits, TDOUBLE, "GCFFLDL", &field_l, "field of the grid, l", failed);
    fits_write_key(fits, TDOUBLE, "GCFFLDM", &field_m, "field of the grid, m", failed);
}

/* Makes one part of one plane, with all four quarters. */
static void unfold_plane(const tess_fits_kernels *of, int plane, int part,
                         double *whole)
{
    const int64_t half = tess_fits_kernels_half(of), side = 2 * half - 1;
    const double *quarter = of->value + 2 * plane * half * half + part;
    for (int64_t x = 0; x < side; ++x)
        for (int64_t y = 0; y < side; ++y)
            whole[x * side + y] =
                quarter[2 * (llabs(x - half + 1) * half + llabs(y - half + 1))];
}

tess_status tess_fits_kernels_write(const char *path, bool overwrite,
                                    const tess_fits_kernels *kernels)
{
    tess_status status = TESS_OK;
    int failed = 0;
    fitsfile *fits = NULL;
    char temp[TESS_OUT_FILE_NAME] = "";
    const int64_t half = tess_fits_kernels_half(kernels), side = 2 * half - 1;
    LONGLONG axes[4] = {side, side, kernels->num_planes, 2};
    double *whole = tess_alloc(side * side, sizeof *whole);
    if (!whole) TESS_FAIL(TESS_ERR_ALLOC, "%s: convolution functions", path);
    TESS_TRY(fits_new_begin(path, overwrite, temp, &fits));
    fits_resize_imgll(fits, kernels->is_double ? DOUBLE_IMG : FLOAT_IMG, 4, axes,
                      &failed);
    if (!failed) put_header(fits, kernels, &failed);
    for (int k = 0; k < 2 * kernels->num_planes && !failed; ++k) {
        unfold_plane(kernels, k % kernels->num_planes, k / kernels->num_planes, whole);
        fits_write_img(fits, TDOUBLE, (LONGLONG)k * side * side + 1, side * side, whole,
                       &failed);
    }
    TESS_TRY(fits_new_close(path, fits, failed));
    TESS_TRY(tess_out_file_publish(temp, path, overwrite));
    temp[0] = '\0';
cleanup:
    tess_out_file_discard(temp);
    tess_free(whole);
    return status;
}
