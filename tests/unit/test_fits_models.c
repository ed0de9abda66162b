/* FITS images as models: what is read of files of others, of pixels in memory and of
 * our own; bad files are refused with the documented status. */
#define _GNU_SOURCE
#include <math.h>

#include "fits_folder.h"

typedef struct card {
    const char *key;
    const char *text; /* or NULL */
    double number;
} card;

/* A small image made by CFITSIO alone, with the given cards. */
static void make_image(const char *path, int bitpix, int num_axes, const long *lengths,
                       const card *cards, const short *pixels)
{
    fitsfile *fits = NULL;
    int failed = 0;
    long count = 1;
    for (int k = 0; k < num_axes; ++k)
        count *= lengths[k];
    unlink(path);
    fits_create_diskfile(&fits, path, &failed);
    fits_create_img(fits, bitpix, num_axes, (long *)(size_t)lengths, &failed);
    for (; cards && cards->key; ++cards)
        if (cards->text)
            fits_update_key_str(fits, cards->key, cards->text, NULL, &failed);
        else
            fits_update_key_dbl(fits, cards->key, cards->number, -15, NULL, &failed);
    if (pixels) {
        fits_set_bscale(fits, 1, 0, &failed);
        fits_write_img(fits, TSHORT, 1, count, (short *)(size_t)pixels, &failed);
    }
    fits_close_file(fits, &failed);
    assert_int_equal(failed, 0);
}

#define CELESTIAL                                                                      \
    {"CTYPE1", "RA---SIN", 0}, {"CTYPE2", "DEC--SIN", 0}, {"CRVAL1", NULL, 10},        \
        {"CRVAL2", NULL, -20}, {"CRPIX1", NULL, 2}, {"CRPIX2", NULL, 2},               \
        {"CDELT1", NULL, -0.5},                                                        \
    {                                                                                  \
        "CDELT2", NULL, 0.5                                                            \
    }

static void integers_and_axis_order(void **state)
{
    const fixture *with = *state;
    const long lengths[4] = {3, 2, 4, 2}; /* STOKES before FREQ */
    const card cards[] = {CELESTIAL,
                          {"CTYPE3", "STOKES", 0},
                          {"CRVAL3", NULL, 1},
                          {"CRPIX3", NULL, 1},
                          {"CDELT3", NULL, 1},
                          {"CTYPE4", "FREQ", 0},
                          {"CRVAL4", NULL, 1.1e9},
                          {"CRPIX4", NULL, 2},
                          {"CDELT4", NULL, 1e8},
                          {"BSCALE", NULL, 0.5},
                          {"BZERO", NULL, 100},
                          {"BLANK", NULL, -7},
                          {NULL, NULL, 0}};
    short pixels[48];
    for (int k = 0; k < 48; ++k)
        pixels[k] = (short)(k - 10);
    for (int type = 0; type < 5; ++type) {
        static const int bitpix[5] = {8, 16, 32, -32, -64};
        if (type == 0)
            for (int k = 0; k < 48; ++k)
                pixels[k] = (short)(k + 1);
        const char *path = in_folder(with, "i.fits");
        make_image(path, bitpix[type], 4, lengths, cards, pixels);
        tess_fits_model model;
        double out[6];
        assert_int_equal(tess_fits_open(path, &model), TESS_OK);
        assert_int_equal(model.num_stokes, 4);
        assert_int_equal(model.num_freq, 2);
        assert_int_equal(model.stokes[3], 4);
        assert_true(fabs(model.freq_hz - 1e9) < 1);
        assert_int_equal(tess_fits_read(&model, 2, 1, 0, 2, TESS_PIXEL_DOUBLE, out),
                         TESS_OK);
        for (int k = 0; k < 6; ++k)
            assert_true(out[k] == 100 + 0.5 * pixels[(1 * 4 + 2) * 6 + k]);
        assert_int_equal(tess_fits_read(&model, 0, 0, 1, 1, TESS_PIXEL_DOUBLE, out),
                         TESS_OK);
        assert_true(type == 0 || type > 2 ? out[0] == 100 + 0.5 * pixels[3]
                                          : isnan(out[0]));
        for (int k = 0; k < 48; ++k)
            pixels[k] = (short)(k - 10);
    }
    empty_folder(with);
}

/* Pixels in memory read as a file's do, of either precision. */
static void models_in_memory(void **state)
{
    (void)state;
    float single[24], narrow[3];
    double wide[24], out[3];
    for (int k = 0; k < 24; ++k) {
        single[k] = (float)k / 3;
        wide[k] = -k / 7.0;
    }
    tess_fits_pixels pixels = {
        .nx = 3, .ny = 4, .num_stokes = 2, .pixel = single, .scale_rad = 1e-5};
    tess_fits_model model;
    tess_fits_open_pixels(&pixels, 1.5, -0.5, &model);
    assert_true(model.crpix_x == 2 && model.crpix_y == 3 && model.num_freq == 1);
    assert_true(model.scale_x_rad == -1e-5 && model.ra_rad == 1.5);
    assert_int_equal(model.stokes[1], 2);
    assert_int_equal(tess_fits_read(&model, 1, 0, 3, 1, TESS_PIXEL_DOUBLE, out),
                     TESS_OK);
    for (int i = 0; i < 3; ++i)
        assert_true(out[i] == (double)single[12 + 9 + i]);
    assert_int_equal(tess_fits_read(&model, 1, 0, 3, 2, TESS_PIXEL_DOUBLE, out),
                     TESS_ERR_INTERNAL);
    tess_error_clear();
    pixels.pixel = wide;
    pixels.is_double = true;
    tess_fits_open_pixels(&pixels, 1.5, -0.5, &model);
    assert_int_equal(tess_fits_read(&model, 0, 0, 2, 1, TESS_PIXEL_DOUBLE, out),
                     TESS_OK);
    for (int i = 0; i < 3; ++i)
        assert_true(out[i] == wide[6 + i]);
    assert_int_equal(tess_fits_read(&model, 0, 0, 2, 1, TESS_PIXEL_SINGLE, narrow),
                     TESS_OK);
    for (int i = 0; i < 3; ++i)
        assert_true(narrow[i] == (float)wide[6 + i]);
}

/* What a header is made of comes back from it. */
static void headers_back(void **state)
{
    const fixture *with = *state;
    const char *path = in_folder(with, "meta.fits");
    tess_image_meta meta = sample_meta(6, 5), back;
    const float image[30] = {0};
    tess_fits_model model;
    meta.l0 = 3.75 * meta.scale_rad;
    meta.m0 = -1.5 * meta.scale_rad;
    meta.stokes = -5;
    assert_int_equal(tess_fits_write(with->comm, path, true, &meta,
                                     &(tess_fits_rows){.num_rows = 5, .pixel = image}),
                     TESS_OK);
    assert_int_equal(tess_fits_meta_read(path, &model, &back), TESS_OK);
    assert_true(back.nx == 6 && back.ny == 5 && back.stokes == -5);
    assert_true(fabs(remainder(back.ra_rad - meta.ra_rad, TESS_TWO_PI)) < 1e-14);
    assert_true(fabs(back.dec_rad - meta.dec_rad) < 1e-14);
    assert_true(fabs(back.scale_rad / meta.scale_rad - 1) < 1e-12);
    assert_true(fabs(back.l0 / meta.l0 - 1) < 1e-12);
    assert_true(fabs(back.m0 / meta.m0 - 1) < 1e-12);
    assert_true(back.freq_hz == meta.freq_hz &&
                back.spectral.rest_hz == meta.spectral.rest_hz);
    assert_true(back.bandwidth_hz == meta.bandwidth_hz);
    assert_true(fabs(back.beam.major_rad / meta.beam.major_rad - 1) < 1e-12);
    assert_true(fabs(back.beam.pa_rad / meta.beam.pa_rad - 1) < 1e-12);
    assert_true(fabs(back.time_start_mjd_s - meta.time_start_mjd_s) < 1e-3);
    assert_true(fabs(back.time_end_mjd_s - meta.time_end_mjd_s) < 1e-3);
    assert_true(fabs(back.place_m[1] - meta.place_m[1]) < 1e-4);
    assert_string_equal(back.names.telescope, "EHT");
    assert_string_equal(back.names.observer, "O'Neill");
    assert_string_equal(back.unit, "Jy/beam");
    assert_string_equal(back.gridded.weighting, "briggs 0");
    assert_true(back.gridded.num_vis == 5877);
    assert_true(back.gridded.sum_weights == meta.gridded.sum_weights);
}

static void models_refused(void **state)
{
    const fixture *with = *state;
    const long lengths[3] = {3, 2, 1};
    const long thick[3] = {3, 2, 2};
    const card plain[] = {CELESTIAL, {NULL, NULL, 0}};
    const card cases[][12] = {
        {CELESTIAL, {"CTYPE1", "RA---TAN", 0}, {"CTYPE2", "DEC--TAN", 0}},
        {CELESTIAL, {"CTYPE1", "GLON-SIN", 0}, {"CTYPE2", "GLAT-SIN", 0}},
        {CELESTIAL, {"CDELT1", NULL, 0}},
        {CELESTIAL, {"CROTA2", NULL, 30}},
        {CELESTIAL, {"CD1_1", NULL, -0.5}, {"CD1_2", NULL, 0.1}, {"CD2_2", NULL, 0.5}},
        {CELESTIAL, {"PC2_1", NULL, 0.1}},
        {CELESTIAL, {"LONPOLE", NULL, 90}},
        {CELESTIAL, {"PV2_1", NULL, 0.2}},
        {CELESTIAL, {"CUNIT1", "m", 0}},
        {CELESTIAL, {"CRVAL2", NULL, 95}},
        {CELESTIAL, {"BSCALE", NULL, 0}},
        {CELESTIAL, {"CDELT2", "half", 0}},
        {{"OBJECT", "none", 0}}};
    const char *path = in_folder(with, "m.fits");
    tess_fits_model model = {.nx = -5};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        make_image(path, -32, 3, lengths, cases[k], NULL);
        assert_int_equal(tess_fits_open(path, &model), TESS_ERR_INPUT);
        assert_non_null(strstr(tess_error_message(), path));
        tess_error_clear();
    }
    make_image(path, -32, 3, thick, plain, NULL);
    assert_int_equal(tess_fits_open(path, &model), TESS_ERR_INPUT);
    make_image(path, -32, 2, lengths, plain, NULL);
    assert_int_equal(truncate(path, 2880 + 8), 0);
    assert_int_equal(tess_fits_open(path, &model), TESS_ERR_INPUT);
    assert_int_equal(truncate(path, 800), 0);
    assert_int_equal(tess_fits_open(path, &model), TESS_ERR_INPUT);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(tess_fits_open(path, &model), TESS_ERR_INPUT);
    assert_int_equal(tess_fits_open(with->folder, &model), TESS_ERR_INPUT);
    assert_int_equal(tess_fits_open(in_folder(with, "none.fits"), &model), TESS_ERR_IO);
    assert_int_equal(model.nx, -5);
    tess_error_clear();
    empty_folder(with);
}

/* Diagonal CD and a unit PC matrix are as good as CDELT. */
static void diagonal_matrices(void **state)
{
    const fixture *with = *state;
    const long lengths[2] = {3, 2};
    const card cd[] = {
        CELESTIAL, {"CD1_1", NULL, -0.25}, {"CD2_2", NULL, 0.125}, {NULL, NULL, 0}};
    const card pc[] = {CELESTIAL,
                       {"PC1_1", NULL, 1},
                       {"PC1_2", NULL, 0},
                       {"PC2_2", NULL, 1},
                       {NULL, NULL, 0}};
    const char *path = in_folder(with, "m.fits");
    tess_fits_model model;
    make_image(path, -32, 2, lengths, cd, NULL);
    assert_int_equal(tess_fits_open(path, &model), TESS_OK);
    assert_true(model.scale_x_rad == -0.25 * TESS_RAD_PER_DEG);
    assert_true(model.scale_y_rad == 0.125 * TESS_RAD_PER_DEG);
    make_image(path, -32, 2, lengths, pc, NULL);
    assert_int_equal(tess_fits_open(path, &model), TESS_OK);
    assert_true(model.scale_x_rad == -0.5 * TESS_RAD_PER_DEG);
    assert_int_equal(model.num_stokes, 1);
    assert_int_equal(model.stokes[0], 1);
    empty_folder(with);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_and_axis_order), cmocka_unit_test(models_in_memory),
        cmocka_unit_test(models_refused), cmocka_unit_test(headers_back),
        cmocka_unit_test(diagonal_matrices)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
