/* Reads FITS images of any axes: finds the pixels, and reads them in pieces. */
#define _GNU_SOURCE
#include "tess_fits_array.h"

#include <errno.h>
#include <fcntl.h>
#include <fitsio.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "fits_guard.h"
#include "fits_keys.h"
#include "tess_const.h"
#include "tess_input.h"
#include "tess_mem.h"

enum { PIECE = 1 << 18 };

bool tess_fits_is_name(const char *path)
{
    static const char *const endings[] = {".fits", ".fit", ".fts"};
    const char *dot = strrchr(path, '.');
    for (size_t k = 0; dot && k < sizeof endings / sizeof *endings; ++k)
        if (strcasecmp(dot, endings[k]) == 0) return true;
    return false;
}

static void get_axes(fitsfile *fits, tess_fits_array *array, int *failed)
{
    for (int k = 0; k < array->num_axes; ++k) {
        tess_fits_axis *axis = &array->axis[k];
        char key[FLEN_KEYWORD];
        axis->step = 1;
        snprintf(key, sizeof key, "CTYPE%d", k + 1);
        fits_get_text(fits, key, axis->type, sizeof axis->type, failed);
        snprintf(key, sizeof key, "CUNIT%d", k + 1);
        fits_get_text(fits, key, axis->unit, sizeof axis->unit, failed);
        snprintf(key, sizeof key, "CRVAL%d", k + 1);
        fits_get_number(fits, key, &axis->value, failed);
        snprintf(key, sizeof key, "CRPIX%d", k + 1);
        fits_get_number(fits, key, &axis->pixel, failed);
        snprintf(key, sizeof key, "CDELT%d", k + 1);
        fits_get_number(fits, key, &axis->step, failed);
        snprintf(key, sizeof key, "PS%d_0", k + 1);
        fits_get_text(fits, key, axis->table, sizeof axis->table, failed);
        snprintf(key, sizeof key, "PS%d_1", k + 1);
        fits_get_text(fits, key, axis->column, sizeof axis->column, failed);
    }
}

/* Computes the matrix from pixels to intermediate world coordinates (FITS paper II,
 * Calabretta & Greisen 2002; section 6 for CROTA2). */
static void get_matrix(fitsfile *fits, tess_fits_array *array, int *failed)
{
    const double step[2] = {array->axis[0].step,
                            array->num_axes > 1 ? array->axis[1].step : 1.0};
    double rotation = 0, cd[2][2] = {{NAN, NAN}, {NAN, NAN}};
    bool has_cd = false;
    fits_get_number(fits, "CROTA2", &rotation, failed);
    const double c = cos(rotation * TESS_RAD_PER_DEG),
                 s = sin(rotation * TESS_RAD_PER_DEG);
    const double old[2][2] = {{step[0] * c, -step[1] * s}, {step[0] * s, step[1] * c}};
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) {
            char key[FLEN_KEYWORD];
            double pc = NAN;
            snprintf(key, sizeof key, "CD%d_%d", i + 1, j + 1);
            fits_get_number(fits, key, &cd[i][j], failed);
            has_cd = has_cd || !isnan(cd[i][j]);
            snprintf(key, sizeof key, "PC%d_%d", i + 1, j + 1);
            fits_get_number(fits, key, &pc, failed);
            array->matrix[i][j] = isnan(pc) ? old[i][j] : step[i] * pc;
        }
    for (int i = 0; i < 2 && has_cd; ++i)
        for (int j = 0; j < 2; ++j)
            array->matrix[i][j] = isnan(cd[i][j]) ? 0 : cd[i][j];
}

/* Reads an equinox: 2000.0, 'J2000', 'B1950'. */
static void get_frame(fitsfile *fits, tess_fits_array *array, int *failed)
{
    char year[FLEN_VALUE] = "";
    fits_get_text(fits, "RADECSYS", array->system, sizeof array->system, failed);
    fits_get_text(fits, "RADESYS", array->system, sizeof array->system, failed);
    fits_get_text(fits, "SPECSYS", array->specsys, sizeof array->specsys, failed);
    fits_get_text(fits, "EPOCH", year, sizeof year, failed);
    fits_get_text(fits, "EQUINOX", year, sizeof year, failed);
    array->equinox = strtod(year + strspn(year, " JB"), NULL);
    if (!(array->equinox > 1850 && array->equinox < 2100)) array->equinox = 0;
}

static void get_scaling(fitsfile *fits, tess_fits_array *array, int *failed)
{
    array->bscale = 1;
    fits_get_number(fits, "BSCALE", &array->bscale, failed);
    fits_get_number(fits, "BZERO", &array->bzero, failed);
    array->pole_deg = 180;
    fits_get_number(fits, "LONPOLE", &array->pole_deg, failed);
    fits_get_number(fits, "PV2_1", &array->slant[0], failed);
    fits_get_number(fits, "PV2_2", &array->slant[1], failed);
    fits_get_number(fits, "RESTFREQ", &array->rest_freq_hz, failed);
    fits_get_number(fits, "RESTFRQ", &array->rest_freq_hz, failed);
    fits_get_number(fits, "BMAJ", &array->beam_deg[0], failed);
    fits_get_number(fits, "BMIN", &array->beam_deg[1], failed);
    fits_get_number(fits, "BPA", &array->beam_deg[2], failed);
    array->sum_weights = NAN;
    fits_get_number(fits, "WSCVWSUM", &array->sum_weights, failed);
    fits_get_number(fits, "SUMWT", &array->sum_weights, failed);
    fits_get_text(fits, "BUNIT", array->unit, sizeof array->unit, failed);
    fits_get_text(fits, "BTYPE", array->kind, sizeof array->kind, failed);
    get_frame(fits, array, failed);
}

static tess_status check_extent(const tess_fits_array *array, int64_t file_bytes,
                                int64_t *num_pixels)
{
    tess_status status = TESS_OK;
    const int64_t size = (array->bitpix < 0 ? -array->bitpix : array->bitpix) / 8;
    int64_t count = 1, bytes = 0;
    bool overflow = false;
    for (int k = 0; k < array->num_axes; ++k) {
        if (array->axis[k].length == 0)
            TESS_FAIL(TESS_ERR_INPUT, "%s: %s", array->path,
                      k == 0 ? "holds visibilities (random groups), not an image"
                             : "image has no pixels");
        overflow = overflow || array->axis[k].length < 0 ||
                   __builtin_mul_overflow(count, array->axis[k].length, &count);
    }
    overflow = overflow || __builtin_mul_overflow(count, size, &bytes) ||
               __builtin_add_overflow(bytes, array->data_offset, &bytes);
    if (overflow || bytes > file_bytes)
        TESS_FAIL(
            TESS_ERR_INPUT,
            "%s: is truncated: %lld bytes, its header asks for %s%lld; copy it again",
            array->path, (long long)file_bytes, overflow ? "more than " : "",
            overflow ? (long long)INT64_MAX : (long long)bytes);
    if (!isfinite(array->bscale) || !isfinite(array->bzero) || fabs(array->bscale) <= 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: BSCALE or BZERO is not usable", array->path);
    *num_pixels = count;
cleanup:
    return status;
}

tess_status tess_fits_array_open(const char *path, tess_fits_array *array_out)
{
    tess_status status = TESS_OK;
    fits_image_file file = {.fd = -1};
    int failed = 0;
    LONGLONG lengths[TESS_FITS_MAX_AXES] = {0}, start = 0, offset = 0, end = 0;
    char why[FLEN_STATUS];
    tess_fits_array array = {0};
    TESS_TRY(fits_image_open(path, &file));
    fitsfile *fits = file.fits;
    if (strlen(path) >= sizeof array.path)
        TESS_FAIL(TESS_ERR_INPUT, "%s: path is too long", path);
    snprintf(array.path, sizeof array.path, "%s", path);
    fits_get_hdu_num(fits, &array.hdu);
    fits_get_img_paramll(fits, TESS_FITS_MAX_AXES, &array.bitpix, &array.num_axes,
                         lengths, &failed);
    if (!failed && array.num_axes > TESS_FITS_MAX_AXES)
        TESS_FAIL(TESS_ERR_INPUT, "%s: has %d axes; at most %d are read", path,
                  array.num_axes, (int)TESS_FITS_MAX_AXES);
    for (int k = 0; k < array.num_axes && !failed; ++k)
        array.axis[k].length = lengths[k];
    get_axes(fits, &array, &failed);
    get_matrix(fits, &array, &failed);
    get_scaling(fits, &array, &failed);
    fits_get_hduaddrll(fits, &start, &offset, &end, &failed);
    if (failed) {
        fits_get_errstatus(failed, why);
        TESS_FAIL(TESS_ERR_INPUT, "%s: header cannot be read: %s", path, why);
    }
    array.data_offset = offset;
    if (array.bitpix > 0) /* the keyword means nothing beside floating point */
        TESS_TRY(fits_guard_blank(fits, path, &array.has_blank, &array.blank));
    TESS_TRY(check_extent(&array, file.bytes, &array.num_pixels));
    *array_out = array;
cleanup:
    fits_image_close(&file);
    return status;
}

static uint32_t word_32(const unsigned char *byte)
{
    return (uint32_t)byte[0] << 24 | (uint32_t)byte[1] << 16 | (uint32_t)byte[2] << 8 |
           byte[3];
}

static uint64_t word_64(const unsigned char *byte)
{
    return (uint64_t)word_32(byte) << 32 | word_32(byte + 4);
}

static void floats_from(const unsigned char *byte, int64_t count, double *out)
{
    for (int64_t k = 0; k < count; ++k) {
        const uint32_t bits = word_32(byte + 4 * k);
        float value;
        memcpy(&value, &bits, sizeof value);
        out[k] = (double)value;
    }
}

static void doubles_from(const unsigned char *byte, int64_t count, double *out)
{
    for (int64_t k = 0; k < count; ++k) {
        const uint64_t bits = word_64(byte + 8 * k);
        memcpy(&out[k], &bits, sizeof bits);
    }
}

static void integers_from(const tess_fits_array *array, const unsigned char *byte,
                          int64_t count, double *out)
{
    const int size = array->bitpix / 8;
    for (int64_t k = 0; k < count; ++k, byte += size) {
        int64_t value = 0;
        switch (array->bitpix) {
        case 8:
            value = byte[0];
            break;
        case 16:
            value = (int16_t)(byte[0] << 8 | byte[1]);
            break;
        case 32:
            value = (int32_t)word_32(byte);
            break;
        default:
            value = (int64_t)word_64(byte);
            break;
        }
        out[k] =
            array->has_blank && value == array->blank ? (double)NAN : (double)value;
    }
}

static void convert(const tess_fits_array *array, const unsigned char *byte,
                    int64_t count, double *out)
{
    if (array->bitpix == -32)
        floats_from(byte, count, out);
    else if (array->bitpix == -64)
        doubles_from(byte, count, out);
    else
        integers_from(array, byte, count, out);
    if (fabs(array->bscale - 1) > 0 || fabs(array->bzero) > 0)
        for (int64_t k = 0; k < count; ++k)
            out[k] = array->bzero + array->bscale * out[k];
}

/* Converts pixels to single precision; those of single precision without a detour, for
 * which a compiler has vectors. */
static void convert_single(const tess_fits_array *array, const unsigned char *byte,
                           int64_t count, float *out)
{
    enum { SOME = 1024 };
    double some[SOME];
    const int size = abs(array->bitpix) / 8;
    const bool is_scaled = fabs(array->bscale - 1) > 0 || fabs(array->bzero) > 0;
    if (array->bitpix == -32 && !is_scaled) {
        for (int64_t k = 0; k < count; ++k) {
            const uint32_t bits = word_32(byte + 4 * k);
            memcpy(&out[k], &bits, sizeof bits);
        }
        return;
    }
    for (int64_t k = 0; k < count; k += SOME) {
        const int64_t part = count - k < SOME ? count - k : SOME;
        convert(array, byte + k * size, part, some);
        for (int64_t i = 0; i < part; ++i)
            out[k + i] = (float)some[i];
    }
}

tess_status tess_fits_array_read(const tess_fits_array *array, int64_t first,
                                 int64_t count, tess_pixel type, void *out)
{
    tess_status status = TESS_OK;
    const int size = abs(array->bitpix) / 8;
    unsigned char *piece = NULL;
    const int fd = open(array->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be opened: %s", array->path,
                  strerror(errno));
    if (first < 0 || count < 0 || first > array->num_pixels - count)
        TESS_FAIL(TESS_ERR_INTERNAL, "%s: pixels %lld + %lld are not in the image",
                  array->path, (long long)first, (long long)count);
    piece = tess_alloc(count < PIECE ? count : PIECE, (size_t)size);
    if (!piece) TESS_FAIL(TESS_ERR_ALLOC, "%s: no memory to read it", array->path);
    for (int64_t k = 0; k < count; k += PIECE) {
        const int64_t part = count - k < PIECE ? count - k : PIECE;
        TESS_TRY(tess_input_read(fd, array->path, piece, part * size,
                                 array->data_offset + (first + k) * size));
        if (type == TESS_PIXEL_DOUBLE)
            convert(array, piece, part, (double *)out + k);
        else
            convert_single(array, piece, part, (float *)out + k);
    }
cleanup:
    tess_free(piece);
    if (fd >= 0) close(fd);
    return status;
}
