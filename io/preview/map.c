/* Draws maps of grids as FITS and PNG. */
#define _GNU_SOURCE
#include "tess_map.h"

#include <fitsio.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fits_header.h"
#include "fits_new.h"
#include "preview.h"
#include "tess_mem.h"
#include "tess_out_file.h"

enum { MOST_PIXELS = 1024 };

static const char *const axis_name[2] = {"V", "U"};

static void put_header(fitsfile *fits, const tess_map *map, int *failed)
{
    const int64_t cells[2] = {map->nv, map->nu};
    for (int k = 0; k < 2; ++k) {
        char key[20], name[2]; /* 8 of them, which not all compilers see */
        double step = 1, zero = 0, middle = (double)(cells[k] / 2 + 1);
        snprintf(name, sizeof name, "%s", axis_name[k]);
        snprintf(key, sizeof key, "CTYPE%d", k + 1);
        fits_write_key(fits, TSTRING, key, name, "[cells]", failed);
        snprintf(key, sizeof key, "CRPIX%d", k + 1);
        fits_write_key(fits, TDOUBLE, key, &middle, "middle of the grid", failed);
        snprintf(key, sizeof key, "CRVAL%d", k + 1);
        fits_write_key(fits, TDOUBLE, key, &zero, NULL, failed);
        snprintf(key, sizeof key, "CDELT%d", k + 1);
        fits_write_key(fits, TDOUBLE, key, &step, NULL, failed);
    }
    fits_write_key_str(fits, "BUNIT", map->unit, NULL, failed);
    fits_write_history(fits, map->history, failed);
}

static tess_status write_fits(const char *path, bool overwrite, const tess_map *map)
{
    tess_status status = TESS_OK;
    int failed = 0;
    fitsfile *fits = NULL;
    char temp[TESS_OUT_FILE_NAME] = "";
    LONGLONG axes[2] = {map->nv, map->nu};
    TESS_TRY(fits_new_begin(path, overwrite, temp, &fits));
    fits_resize_imgll(fits, FLOAT_IMG, 2, axes, &failed);
    if (!failed) put_header(fits, map, &failed);
    fits_write_img(fits, TFLOAT, 1, map->nu * map->nv, (void *)(uintptr_t)map->value,
                   &failed);
    TESS_TRY(fits_new_close(path, fits, failed));
    TESS_TRY(tess_out_file_publish(temp, path, overwrite));
    temp[0] = '\0';
cleanup:
    tess_out_file_discard(temp);
    return status;
}

/* Finds the largest value of each block of `factor` × `factor` cells, u upwards. */
static void reduce(const tess_map *map, int64_t factor, int64_t width, int64_t height,
                   float *out)
{
    memset(out, 0, (size_t)(width * height) * sizeof *out);
    for (int64_t u = 0; u < map->nu; ++u)
        for (int64_t v = 0; v < map->nv; ++v) {
            float *to = &out[(height - 1 - u / factor) * width + v / factor];
            if (map->value[u * map->nv + v] > *to) *to = map->value[u * map->nv + v];
        }
}

static tess_status write_png(const char *path, bool overwrite, const tess_map *map)
{
    tess_status status = TESS_OK;
    char temp[TESS_OUT_FILE_NAME] = "";
    const int64_t longest = map->nu > map->nv ? map->nu : map->nv;
    const int64_t factor = (longest + MOST_PIXELS - 1) / MOST_PIXELS;
    const int64_t width = (map->nv + factor - 1) / factor;
    const int64_t height = (map->nu + factor - 1) / factor;
    preview_colour colour[PREVIEW_COLOURS], *pixel = tess_alloc(width * height, 3);
    float *value = tess_alloc(width * height, sizeof *value), most = 0;
    if (!pixel || !value) TESS_FAIL(TESS_ERR_ALLOC, "%s: a picture", path);
    reduce(map, factor, width, height, value);
    tess_preview_map(PREVIEW_HEAT, colour);
    for (int64_t k = 0; k < width * height; ++k)
        if (value[k] > most) most = value[k];
    for (int64_t k = 0; k < width * height; ++k) {
        const double part =
            most > 0 ? log1p((double)value[k]) / log1p((double)most) : 0;
        pixel[k] = colour[(int)(part * (PREVIEW_COLOURS - 1))];
    }
    TESS_TRY(tess_preview_png(path, overwrite, width, height, &pixel[0].red, temp));
    TESS_TRY(tess_out_file_publish(temp, path, overwrite));
    temp[0] = '\0';
cleanup:
    tess_out_file_discard(temp);
    tess_free(pixel);
    tess_free(value);
    return status;
}

static tess_status write_one(const char *name, const char *ending, bool overwrite,
                             const tess_map *map,
                             tess_status (*write)(const char *, bool, const tess_map *))
{
    tess_status status = TESS_OK;
    char *path = NULL;
    if (asprintf(&path, "%s%s", name, ending) < 0) {
        path = NULL;
        TESS_FAIL(TESS_ERR_ALLOC, "%s: a name", name);
    }
    TESS_TRY(write(path, overwrite, map));
cleanup:
    free(path); /* from asprintf */
    return status;
}

tess_status tess_map_check(const char *name, bool overwrite)
{
    tess_status status = TESS_OK;
    static const char *const endings[] = {".fits", ".png"};
    for (size_t k = 0; k < sizeof endings / sizeof *endings; ++k) {
        char path[TESS_OUT_FILE_NAME];
        if (snprintf(path, sizeof path, "%s%s", name, endings[k]) >= (int)sizeof path)
            TESS_FAIL(TESS_ERR_IO, "%s: name is too long; choose a shorter one", name);
        TESS_TRY(tess_out_check_target(path, overwrite));
    }
cleanup:
    return status;
}

tess_status tess_map_write(const char *name, bool overwrite, const tess_map *map)
{
    tess_status status = TESS_OK;
    TESS_TRY(write_one(name, ".fits", overwrite, map, write_fits));
    TESS_TRY(write_one(name, ".png", overwrite, map, write_png));
cleanup:
    return status;
}
