/* FITS images: what is written is what is read, headers survive, bad files are refused
 * with the documented status and leave nothing behind. */
#define _GNU_SOURCE
#include <fitsio.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "fits_folder.h"
#include "preview_file.h"
#include "tess_const.h"
#include "tess_fits.h"
#include "tess_out_file.h"

static void round_trip_float(void **state)
{
    const fixture *with = *state;
    static const int64_t sizes[][2] = {{1, 1}, {3, 5}, {16, 16}, {721, 2}, {1, 1439}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
        const int64_t nx = sizes[s][0], ny = sizes[s][1];
        tess_image_meta meta = sample_meta(nx, ny);
        float *image = calloc((size_t)(nx * ny), sizeof *image);
        double *back = calloc((size_t)(nx * ny), sizeof *back);
        for (int64_t k = 0; k < nx * ny; ++k)
            image[k] = (float)sin(1.0 + (double)k);
        image[nx * ny / 2] = NAN;
        if (nx * ny > 4) image[0] = -INFINITY;
        const char *path = in_folder(with, "a.fits");
        assert_int_equal(
            tess_fits_write(with->comm, path, true, &meta,
                            &(tess_fits_rows){.num_rows = ny, .pixel = image}),
            TESS_OK);
        check_sums(path);
        tess_fits_model model;
        assert_int_equal(tess_fits_open(path, &model), TESS_OK);
        assert_int_equal(model.nx, nx);
        assert_int_equal(model.ny, ny);
        assert_int_equal(model.bitpix, -32);
        assert_int_equal(tess_fits_read(&model, 0, 0, 0, ny, TESS_PIXEL_DOUBLE, back),
                         TESS_OK);
        for (int64_t k = 0; k < nx * ny; ++k)
            assert_true(isfinite(image[k]) ? back[k] == (double)image[k]
                                           : isnan(back[k]));
        free(image);
        free(back);
    }
    assert_int_equal(empty_folder(with), 1);
}

static void round_trip_double(void **state)
{
    const fixture *with = *state;
    tess_image_meta meta = sample_meta(17, 9);
    double image[9 * 17], back[3 * 17];
    for (int k = 0; k < 9 * 17; ++k)
        image[k] = 1e-300 * k + 1.0 / 3;
    image[40] = INFINITY;
    const char *path = in_folder(with, "d.fits");
    assert_int_equal(
        tess_fits_write(
            with->comm, path, false, &meta,
            &(tess_fits_rows){.num_rows = 9, .is_double = true, .pixel = image}),
        TESS_OK);
    check_sums(path);
    tess_fits_model model;
    assert_int_equal(tess_fits_open(path, &model), TESS_OK);
    assert_int_equal(tess_fits_read(&model, 0, 0, 2, 3, TESS_PIXEL_DOUBLE, back),
                     TESS_OK);
    for (int k = 0; k < 3 * 17; ++k)
        assert_true(k + 34 == 40 ? isnan(back[k]) : back[k] == image[k + 34]);
    assert_int_equal(tess_fits_read(&model, 0, 0, 7, 3, TESS_PIXEL_DOUBLE, back),
                     TESS_ERR_INTERNAL);
    tess_error_clear();
}

/* Numbers come back to the last bit but one, or in 14 digits (5e-14) where exponents
 * take columns; text is ASCII; history is all there. */
static void header_survives(void **state)
{
    const fixture *with = *state;
    tess_image_meta meta = sample_meta(4, 7);
    float image[28] = {0};
    image[3] = 2.5F;
    image[9] = -1.5F;
    const char *path = in_folder(with, "h.fits");
    assert_int_equal(tess_fits_write(with->comm, path, false, &meta,
                                     &(tess_fits_rows){.num_rows = 7, .pixel = image}),
                     TESS_OK);
    tess_fits_model model;
    assert_int_equal(tess_fits_open(path, &model), TESS_OK);
    assert_true(fabs(model.scale_y_rad / meta.scale_rad - 1) < 5e-14);
    assert_true(model.scale_x_rad == -model.scale_y_rad);
    assert_true(fabs(model.ra_rad - (meta.ra_rad + TESS_TWO_PI)) < 1e-15);
    assert_true(fabs(model.dec_rad - meta.dec_rad) < 1e-16);
    assert_true(model.crpix_x == 3 && model.crpix_y == 4);
    assert_true(model.freq_hz == meta.freq_hz);
    assert_string_equal(model.unit, "Jy/beam");

    fitsfile *fits = NULL;
    int failed = 0, num = 0;
    char text[FLEN_VALUE], card[FLEN_CARD];
    double value;
    fits_open_diskfile(&fits, path, READONLY, &failed);
    fits_read_key(fits, TSTRING, "DATE-OBS", text, NULL, &failed);
    assert_string_equal(text, "2017-04-11T00:32:05.250");
    fits_read_key(fits, TSTRING, "OBSERVER", text, NULL, &failed);
    assert_string_equal(text, "O'Neill");
    fits_read_key(fits, TSTRING, "OBJECT", text, NULL, &failed);
    assert_string_equal(text, "M?ssier 87");
    fits_read_key(fits, TDOUBLE, "DATAMIN", &value, NULL, &failed);
    assert_true(value == -1.5);
    fits_read_key(fits, TDOUBLE, "DATAMAX", &value, NULL, &failed);
    assert_true(value == 2.5);
    fits_read_key(fits, TDOUBLE, "SUMWT", &value, NULL, &failed);
    assert_true(value == 1.25e9);
    fits_read_key(fits, TDOUBLE, "BMAJ", &value, NULL, &failed);
    assert_true(fabs(value * TESS_RAD_PER_DEG / meta.beam.major_rad - 1) < 5e-14);
    assert_int_equal(failed, 0);
    char history[400] = "";
    fits_get_hdrspace(fits, &num, NULL, &failed);
    for (int k = 1; k <= num; ++k) {
        fits_read_record(fits, k, card, &failed);
        if (strncmp(card, "HISTORY", 7) != 0) continue;
        strcat(history, card + 8);
        strcat(history, "|");
    }
    fits_close_file(fits, &failed);
    assert_int_equal(strncmp(history, "tessera ", 8), 0); /* and its version */
    assert_string_equal(strchr(history, '|') + 1,
                        "tessera image a very long command line that has to be "
                        "broken somewhere|  because it does not fit ? at all|"
                        "second line|last|");
    empty_folder(with);
}

static void write_one(const fixture *with, const char *path,
                      const tess_image_meta *meta)
{
    float *image = calloc((size_t)(meta->nx * meta->ny), sizeof *image);
    assert_int_equal(
        tess_fits_write(with->comm, path, true, meta,
                        &(tess_fits_rows){.num_rows = meta->ny, .pixel = image}),
        TESS_OK);
    free(image);
}

/* The reference pixel is nx/2 and ny/2 counted from 0, odd sizes rounded down. */
static void reference_pixels(void **state)
{
    const fixture *with = *state;
    static const struct {
        int64_t nx, ny;
        double x, y;
    } cases[] = {{1, 1, 1, 1}, {4, 7, 3, 4}, {7, 4, 4, 3}, {5, 3, 3, 2}, {2, 2, 2, 2}};
    const char *path = in_folder(with, "r.fits");
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        const tess_image_meta meta = sample_meta(cases[k].nx, cases[k].ny);
        tess_fits_model model;
        write_one(with, path, &meta);
        assert_int_equal(tess_fits_open(path, &model), TESS_OK);
        assert_true(model.crpix_x == cases[k].x && model.crpix_y == cases[k].y);
    }
    empty_folder(with);
}

/* What programs look for beside the axes. */
static void keywords(void **state)
{
    const fixture *with = *state;
    char text[FLEN_VALUE];
    tess_image_meta meta = sample_meta(3, 2);
    const char *path = in_folder(with, "k.fits");
    setenv("SOURCE_DATE_EPOCH", "1700000000", 1);
    write_one(with, path, &meta);
    unsetenv("SOURCE_DATE_EPOCH");
    read_text(path, "DATE", text);
    assert_string_equal(text, "2023-11-14T22:13:20");
    read_text(path, "BTYPE", text);
    assert_string_equal(text, "Intensity");
    read_text(path, "BUNIT", text);
    assert_string_equal(text, "Jy/beam");
    read_text(path, "NVIS", text);
    assert_string_equal(text, "5877");
    assert_true(read_number(path, "FREQMEAN") == meta.gridded.freq_mean_hz);
    assert_true(read_number(path, "RESTFRQ") == meta.spectral.rest_hz);
    read_text(path, "DATE-BEG", text);
    assert_string_equal(text, "2017-04-11T00:32:05.250");
    read_text(path, "DATE-END", text);
    assert_string_equal(text, "2017-04-11T00:33:05.250");
    /* half a millisecond */
    const double day = 57854.0, off = 0.5e-3 / 86400;
    assert_true(fabs(read_number(path, "MJD-OBS") - day - 1925.25 / 86400) < off);
    assert_true(fabs(read_number(path, "MJD-BEG") - day - 1925.25 / 86400) < off);
    assert_true(fabs(read_number(path, "MJD-END") - day - 1985.25 / 86400) < off);

    meta.is_psf = true;
    write_one(with, path, &meta);
    read_text(path, "BTYPE", text);
    assert_string_equal(text, "Beam");
    read_text(path, "DATE", text);
    assert_int_equal(strlen(text), 19);
    assert_int_equal(strncmp(text, "20", 2), 0); /* now */
    empty_folder(with);
}

/* The array's place, as geocentric and as geodetic coordinates of the same point on the
 * ellipsoid of IAU (1976); none for the middle of antennas on several continents. */
static void places(void **state)
{
    const fixture *with = *state;
    static const double lon_lat_height[][3] = {{-107.61833, 34.07881, 2111.9},
                                               {0, 0, 0},
                                               {139.5, -89.9, 2800},
                                               {21.4, 90, 10}};
    const double a = 6378140, f = 1 / 298.2577, e2 = f * (2 - f);
    tess_image_meta meta = sample_meta(3, 2);
    const char *path = in_folder(with, "g.fits");
    for (size_t k = 0; k < sizeof lon_lat_height / sizeof *lon_lat_height; ++k) {
        const double *at = lon_lat_height[k];
        const double lon = at[0] * TESS_RAD_PER_DEG, lat = at[1] * TESS_RAD_PER_DEG;
        const double normal = a / sqrt(1 - e2 * sin(lat) * sin(lat));
        meta.place_m[0] = (normal + at[2]) * cos(lat) * cos(lon);
        meta.place_m[1] = (normal + at[2]) * cos(lat) * sin(lon);
        meta.place_m[2] = (normal * (1 - e2) + at[2]) * sin(lat);
        write_one(with, path, &meta);
        assert_true(fabs(read_number(path, "OBSGEO-X") - meta.place_m[0]) < 1e-4);
        assert_true(fabs(read_number(path, "OBSGEO-Y") - meta.place_m[1]) < 1e-4);
        assert_true(fabs(read_number(path, "OBSGEO-Z") - meta.place_m[2]) < 1e-4);
        /* 1e-9 deg are .1 mm, the rounding of the header */
        assert_true(fabs(read_number(path, "OBSGEO-L") - at[0]) < 1e-9 ||
                    at[1] > 89.99);
        assert_true(fabs(read_number(path, "OBSGEO-B") - at[1]) < 1e-9);
        assert_true(fabs(read_number(path, "OBSGEO-H") - at[2]) < 1e-3);
    }
    static const double nowhere[][3] = {{0, 0, 0}, {-2e6, -3e6, 3e6}, {NAN, 0, 0}};
    for (size_t k = 0; k < sizeof nowhere / sizeof *nowhere; ++k) {
        fitsfile *fits = NULL;
        int failed = 0, missing = 0;
        char text[FLEN_VALUE];
        memcpy(meta.place_m, nowhere[k], sizeof meta.place_m);
        write_one(with, path, &meta);
        fits_open_diskfile(&fits, path, READONLY, &failed);
        fits_read_key(fits, TSTRING, "OBSGEO-X", text, NULL, &missing);
        fits_close_file(fits, &failed);
        assert_int_equal(missing, KEY_NO_EXIST);
    }
    empty_folder(with);
}

/* Every number ends in column 30, as the fixed format has it. */
static void columns(void **state)
{
    const fixture *with = *state;
    const char *path = in_folder(with, "c.fits");
    static const double sizes[] = {0.75,     1.0 / 3,   1e-6 / 7, 1e-13 / 3,
                                   -1.0 / 3, -1e-9 / 7, 0.1 / 7,  1e9 / 7};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; ++k) {
        fitsfile *fits = NULL;
        int failed = 0, num = 0;
        char card[FLEN_CARD];
        tess_image_meta meta = sample_meta(3, 2);
        meta.dec_rad = remainder(sizes[k], 1);
        meta.ra_rad = sizes[k];
        meta.scale_rad = 1e-9 * fabs(sizes[k]);
        meta.gridded.sum_weights = sizes[k] * 1e20;
        meta.beam.pa_rad = sizes[k];
        meta.freq_hz = fabs(sizes[k]) * 1e11;
        write_one(with, path, &meta);
        fits_open_diskfile(&fits, path, READONLY, &failed);
        fits_get_hdrspace(fits, &num, NULL, &failed);
        for (int c = 1; c <= num; ++c) {
            fits_read_record(fits, c, card, &failed);
            if (strncmp(card + 8, "= ", 2) != 0 || strchr(card, '\'')) continue;
            assert_true(card[29] != ' ' && (card[30] == ' ' || card[30] == '\0'));
        }
        fits_close_file(fits, &failed);
        assert_int_equal(failed, 0);
        const double dec = tess_fits_degrees(meta.dec_rad);
        assert_true(fabs(read_number(path, "CRVAL2") / dec - 1) < 5e-14);
        assert_true(read_number(path, "CDELT1") == -read_number(path, "CDELT2"));
    }
    empty_folder(with);
}

static void dates(void **state)
{
    const fixture *with = *state;
    static const struct {
        double mjd_s;
        const char *text;
    } cases[] = {{0.5, "1858-11-17T00:00:00.500"},
                 {40587 * 86400.0, "1970-01-01T00:00:00.000"},
                 {51603 * 86400.0 + 86399.9999, "2000-03-01T00:00:00.000"},
                 {60369 * 86400.0 + 43200, "2024-02-29T12:00:00.000"}};
    float pixel = 1;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        tess_image_meta meta = sample_meta(1, 1);
        meta.time_start_mjd_s = cases[k].mjd_s;
        const char *path = in_folder(with, "t.fits");
        assert_int_equal(
            tess_fits_write(with->comm, path, true, &meta,
                            &(tess_fits_rows){.num_rows = 1, .pixel = &pixel}),
            TESS_OK);
        fitsfile *fits = NULL;
        int failed = 0;
        char text[FLEN_VALUE];
        fits_open_diskfile(&fits, path, READONLY, &failed);
        fits_read_key(fits, TSTRING, "DATE-OBS", text, NULL, &failed);
        fits_close_file(fits, &failed);
        assert_string_equal(text, cases[k].text);
    }
    empty_folder(with);
}

/* No data: zeros, ΣW = 0, and an image of NaN alone. No card is without a value. */
static void empty_image(void **state)
{
    const fixture *with = *state;
    tess_image_meta meta = sample_meta(2, 2);
    meta.gridded.sum_weights = meta.beam.major_rad = meta.bandwidth_hz =
        meta.gridded.freq_mean_hz = 0;
    meta.gridded.num_vis = 0;
    meta.time_start_mjd_s = NAN;
    meta.freq_hz = NAN;
    meta.history = NULL;
    float image[4] = {NAN, NAN, INFINITY, NAN};
    const char *path = in_folder(with, "n.fits");
    assert_int_equal(tess_fits_write(with->comm, path, false, &meta,
                                     &(tess_fits_rows){.num_rows = 2, .pixel = image}),
                     TESS_OK);
    check_sums(path);
    tess_fits_model model;
    assert_int_equal(tess_fits_open(path, &model), TESS_OK);
    fitsfile *fits = NULL;
    int failed = 0, num = 0;
    char name[FLEN_CARD], value[FLEN_VALUE], comment[FLEN_COMMENT];
    fits_open_diskfile(&fits, path, READONLY, &failed);
    fits_get_hdrspace(fits, &num, NULL, &failed);
    for (int k = 1; k <= num; ++k) {
        fits_read_keyn(fits, k, name, value, comment, &failed);
        assert_true(value[0] != '\0' || strcmp(name, "COMMENT") == 0 ||
                    strcmp(name, "HISTORY") == 0);
        assert_true(strcmp(name, "DATAMIN") != 0 && strcmp(name, "BMAJ") != 0 &&
                    strcmp(name, "DATE-OBS") != 0);
    }
    fits_close_file(fits, &failed);
    assert_int_equal(failed, 0);
    empty_folder(with);
}

static void refuse_write(const fixture *with, const char *path, bool overwrite,
                         const tess_image_meta *meta, tess_status expected)
{
    float image[16] = {0};
    tess_error_clear();
    assert_int_equal(
        tess_fits_write(with->comm, path, overwrite, meta,
                        &(tess_fits_rows){.num_rows = meta->ny, .pixel = image}),
        expected);
    assert_true(strlen(tess_error_message()) > 10);
    tess_error_clear();
}

static void writing_refused(void **state)
{
    const fixture *with = *state;
    tess_image_meta meta = sample_meta(4, 4);
    float image[16] = {0};
    const char *path = in_folder(with, "a.fits");
    assert_int_equal(tess_fits_write(with->comm, path, false, &meta,
                                     &(tess_fits_rows){.num_rows = 4, .pixel = image}),
                     TESS_OK);
    refuse_write(with, path, false, &meta, TESS_ERR_IO);
    assert_int_equal(tess_out_check_target(path, false), TESS_ERR_IO);
    assert_int_equal(tess_out_check_target(path, true), TESS_OK);
    refuse_write(with, with->folder, true, &meta, TESS_ERR_IO);
    refuse_write(with, in_folder(with, "no/such/a.fits"), true, &meta, TESS_ERR_IO);
    refuse_write(with, in_folder(with, "a.fits/b.fits"), true, &meta, TESS_ERR_IO);
    refuse_write(with, "", true, &meta, TESS_ERR_IO);
    refuse_write(with, "/dev/null", true, &meta, TESS_ERR_IO);
    meta.nx = INT64_MAX / 2;
    refuse_write(with, in_folder(with, "b.fits"), true, &meta, TESS_ERR_USAGE);
    meta = sample_meta(4, 4);
    meta.scale_rad = NAN;
    refuse_write(with, in_folder(with, "b.fits"), true, &meta, TESS_ERR_USAGE);
    assert_int_equal(tess_fits_write(with->comm, in_folder(with, "b.fits"), true, &meta,
                                     &(tess_fits_rows){.num_rows = 3, .pixel = image}),
                     TESS_ERR_USAGE);
    tess_error_clear();
    assert_int_equal(empty_folder(with), 1);
}

/* Previews of awkward images: one pixel, strips, blanks, constants, both signs, the
 * pole, the whole sky, a reduced one. */
static void previews(void **state)
{
    const fixture *with = *state;
    static const struct {
        int64_t nx, ny;
        double scale_asec, dec_deg, value;
        int stokes;
    } cases[] = {{1, 1, 10, 0, 1, 1},         {1200, 2, 1, 10, 2, 1},
                 {2, 1500, 1e-6, -10, 0, 2},  {40, 30, 30, 89.99, (double)NAN, 1},
                 {64, 64, 7200, 35, -5, -5},  {50, 50, 600, -90, 1e-9, 3},
                 {2100, 1900, 2, 45, 1e7, 1}, {100, 100, 180, 0, 0, 4}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        tess_image_meta meta = sample_meta(cases[k].nx, cases[k].ny);
        const int64_t count = meta.nx * meta.ny;
        float *image = calloc((size_t)count, sizeof *image);
        meta.scale_rad = cases[k].scale_asec * TESS_RAD_PER_ASEC;
        meta.dec_rad = cases[k].dec_deg * TESS_RAD_PER_DEG;
        meta.beam.major_rad = 5 * meta.scale_rad;
        meta.beam.minor_rad = 3 * meta.scale_rad;
        meta.stokes = cases[k].stokes;
        for (int64_t i = 0; i < count; ++i)
            image[i] = (float)(cases[k].value * (i % 1000 == 0 ? 1e4 : sin((double)i)));
        if (k % 2) image[count / 2] = INFINITY;
        const char *path = in_folder(with, "p.png");
        assert_int_equal(
            write_preview(with->comm, path, true, &meta,
                          &(tess_fits_rows){.num_rows = meta.ny, .pixel = image}),
            TESS_OK);
        struct stat info;
        assert_int_equal(stat(path, &info), 0);
        assert_true(info.st_size > 2000);
        assert_int_equal(
            write_preview(with->comm, path, false, &meta,
                          &(tess_fits_rows){.num_rows = meta.ny, .pixel = image}),
            TESS_ERR_IO);
        tess_error_clear();
        free(image);
    }
    assert_int_equal(empty_folder(with), 1);
}

static void names(void **state)
{
    static const char *const good[] = {"a.fits", "b.uv/c.FIT", "d.e.fts", ".fits"};
    static const char *const bad[] = {"a.uvfits", "fits", "a.fits.gz", "a.fits/b", ""};
    (void)state;
    for (size_t k = 0; k < sizeof good / sizeof *good; ++k)
        assert_true(tess_fits_is_name(good[k]));
    for (size_t k = 0; k < sizeof bad / sizeof *bad; ++k)
        assert_false(tess_fits_is_name(bad[k]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip_float), cmocka_unit_test(round_trip_double),
        cmocka_unit_test(header_survives),  cmocka_unit_test(reference_pixels),
        cmocka_unit_test(keywords),         cmocka_unit_test(places),
        cmocka_unit_test(columns),          cmocka_unit_test(dates),
        cmocka_unit_test(empty_image),      cmocka_unit_test(writing_refused),
        cmocka_unit_test(previews),         cmocka_unit_test(names)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
