/* The library's calls on arrays: layouts, masks, bad values, and whose error is whose.
 * Accuracy over random geometries is tested through the Python module
 * (tests/python). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "tessera/tessera.h"

enum { ROWS = 40, CHANS = 5, VIS = ROWS * CHANS, NX = 37, NY = 24, PIXELS = NX * NY };

typedef struct scene {
    double uvw[ROWS][3], freq[CHANS];
    float vis[VIS][2], weight[VIS], image[PIXELS], dirty[2][PIXELS],
        predicted[2][VIS][2];
    uint8_t mask[VIS];
} scene;

static scene *make_scene(void)
{
    scene *s = calloc(1, sizeof *s);
    draw from = {11};
    assert_non_null(s);
    for (int c = 0; c < CHANS; ++c)
        s->freq[c] = 1.4e9 + 2e7 * c;
    for (int k = 0; k < ROWS; ++k)
        for (int i = 0; i < 3; ++i)
            s->uvw[k][i] = draw_uniform(&from, -90, 90);
    for (int k = 0; k < VIS; ++k) {
        s->vis[k][0] = (float)draw_normal(&from);
        s->vis[k][1] = (float)draw_normal(&from);
        s->weight[k] = (float)draw_uniform(&from, 0.5, 2);
        s->mask[k] = draw_uniform(&from, 0, 1) < 0.8;
    }
    for (int k = 0; k < PIXELS; ++k)
        s->image[k] = (float)draw_normal(&from);
    return s;
}

static tess_array_opts make_opts(void)
{
    tess_array_opts opts;
    tess_array_opts_default(&opts);
    opts.nx = NX;
    opts.ny = NY;
    opts.step_l = -1e-3;
    opts.step_m = 1.5e-3;
    opts.center_l = 0.02;
    opts.threads = 2;
    return opts;
}

static tess_array_vis vis_of(scene *s)
{
    return (tess_array_vis){.num_rows = ROWS,
                            .num_chan = CHANS,
                            .uvw = s->uvw[0],
                            .uvw_step_row = sizeof s->uvw[0],
                            .uvw_step_axis = sizeof s->uvw[0][0],
                            .freq = s->freq,
                            .freq_step = sizeof s->freq[0],
                            .vis = s->vis,
                            .vis_step_row = CHANS * sizeof s->vis[0],
                            .vis_step_chan = sizeof s->vis[0],
                            .weight = s->weight,
                            .weight_step_row = CHANS * sizeof s->weight[0],
                            .weight_step_chan = sizeof s->weight[0],
                            .mask = s->mask,
                            .mask_step_row = CHANS,
                            .mask_step_chan = 1};
}

static tess_array_image image_of(float *pixel)
{
    return (tess_array_image){
        .data = pixel, .step_x = sizeof *pixel, .step_y = NX * (int64_t)sizeof *pixel};
}

static double relative(const float *a, const float *b, int count)
{
    double difference = 0, size = 0;
    for (int k = 0; k < count; ++k) {
        const double d = (double)a[k] - (double)b[k];
        difference += d * d;
        size += (double)b[k] * (double)b[k];
    }
    return sqrt(difference / size);
}

/* Channels first and backwards, positions by axis, frequencies backwards, at odd
 * addresses: the image is the same to the last bit, since the gridder sees the same. */
static void test_layouts(void **state)
{
    (void)state;
    scene *s = make_scene();
    const tess_array_opts opts = make_opts();
    const tess_array_image image = image_of(s->dirty[0]), other = image_of(s->dirty[1]);
    tess_array_vis plain = vis_of(s), odd = vis_of(s);
    char *vis = calloc(VIS, 9), *weight = calloc(VIS, 5), *uvw = calloc(3 * ROWS, 8);
    uint8_t *mask = calloc(VIS, 2);
    assert_true(vis && weight && uvw && mask);
    for (int r = 0; r < ROWS; ++r) {
        for (int i = 0; i < 3; ++i)
            memcpy(uvw + 8 * (i * ROWS + ROWS - 1 - r), &s->uvw[r][i], sizeof(double));
        for (int c = 0; c < CHANS; ++c) {
            const int from = r * CHANS + c, to = (CHANS - 1 - c) * ROWS + r;
            memcpy(vis + 9 * to + 1, s->vis[from], 8);
            memcpy(weight + 5 * to + 1, &s->weight[from], 4);
            mask[2 * to] = s->mask[from];
        }
    }
    odd.uvw = (const double *)(const void *)(uvw + 8 * (ROWS - 1));
    odd.uvw_step_row = -8;
    odd.uvw_step_axis = 8 * ROWS;
    odd.vis = vis + 9 * (CHANS - 1) * ROWS + 1;
    odd.vis_step_row = 9;
    odd.vis_step_chan = -9 * ROWS;
    odd.weight = weight + 5 * (CHANS - 1) * ROWS + 1;
    odd.weight_step_row = 5;
    odd.weight_step_chan = -5 * ROWS;
    odd.mask = mask + 2 * (CHANS - 1) * ROWS;
    odd.mask_step_row = 2;
    odd.mask_step_chan = -2 * ROWS;
    assert_int_equal(tess_vis_to_dirty(&opts, &plain, &image, NULL), TESS_OK);
    assert_int_equal(tess_vis_to_dirty(&opts, &odd, &other, NULL), TESS_OK);
    assert_memory_equal(s->dirty[0], s->dirty[1], sizeof s->dirty[0]);
    /* written to the odd layout, and read back from there */
    const tess_array_image model = image_of(s->image);
    plain.vis = s->predicted[0];
    assert_int_equal(tess_dirty_to_vis(&opts, &model, &plain, NULL), TESS_OK);
    assert_int_equal(tess_dirty_to_vis(&opts, &model, &odd, NULL), TESS_OK);
    for (int r = 0; r < ROWS; ++r)
        for (int c = 0; c < CHANS; ++c) {
            const int to = (CHANS - 1 - c) * ROWS + r;
            assert_memory_equal(vis + 9 * to + 1, s->predicted[0][r * CHANS + c], 8);
            assert_int_equal(vis[9 * to], 0); /* between elements nothing is written */
        }
    free(vis);
    free(weight);
    free(uvw);
    free(mask);
    free(s);
}

/* Columns or rows next to one another, and East to the right: the same image within
 * ε. */
static void test_image_layouts(void **state)
{
    (void)state;
    scene *s = make_scene();
    tess_array_opts opts = make_opts();
    tess_array_vis vis = vis_of(s);
    const tess_array_image image = image_of(s->dirty[0]);
    const tess_array_image transposed = {.data = s->dirty[1],
                                         .step_x = NY * (int64_t)sizeof(float),
                                         .step_y = sizeof(float)};
    static float back[PIXELS];
    assert_int_equal(tess_vis_to_dirty(&opts, &vis, &image, NULL), TESS_OK);
    assert_int_equal(tess_vis_to_dirty(&opts, &vis, &transposed, NULL), TESS_OK);
    for (int i = 0; i < NX; ++i)
        for (int j = 0; j < NY; ++j)
            back[j * NX + i] = s->dirty[1][i * NY + j];
    assert_true(relative(back, s->dirty[0], PIXELS) <= 2 * opts.accuracy);
    /* pixel i at l, and at −l: columns in reverse order, odd sizes have a middle */
    opts.step_l = -opts.step_l;
    assert_int_equal(tess_vis_to_dirty(&opts, &vis, &image, NULL), TESS_OK);
    for (int j = 0; j < NY; ++j)
        for (int i = 0; i < NX; ++i)
            s->dirty[1][j * NX + NX - 1 - i] = s->dirty[0][j * NX + i];
    assert_true(relative(s->dirty[1], back, PIXELS) <= 2 * opts.accuracy);
    free(s);
}

/* No weights, weights 1 and masks that let all pass are one thing. */
static void test_weights(void **state)
{
    (void)state;
    scene *s = make_scene();
    const tess_array_opts opts = make_opts();
    const tess_array_image image = image_of(s->dirty[0]), other = image_of(s->dirty[1]);
    tess_array_vis vis = vis_of(s);
    tess_array_report report;
    for (int k = 0; k < VIS; ++k)
        s->weight[k] = 1;
    vis.mask = NULL;
    assert_int_equal(tess_vis_to_dirty(&opts, &vis, &image, &report), TESS_OK);
    assert_int_equal(report.num_vis, VIS);
    vis.weight = NULL;
    assert_int_equal(tess_vis_to_dirty(&opts, &vis, &other, NULL), TESS_OK);
    assert_memory_equal(s->dirty[0], s->dirty[1], sizeof s->dirty[0]);
    memset(s->mask, 255, sizeof s->mask);
    vis.mask = s->mask;
    assert_int_equal(tess_vis_to_dirty(&opts, &vis, &other, NULL), TESS_OK);
    assert_memory_equal(s->dirty[0], s->dirty[1], sizeof s->dirty[0]);
    memset(s->mask, 0, sizeof s->mask);
    assert_int_equal(tess_vis_to_dirty(&opts, &vis, &other, &report), TESS_OK);
    assert_int_equal(report.num_vis, 0);
    for (int k = 0; k < PIXELS; ++k)
        assert_true(s->dirty[1][k] == 0);
    free(s);
}

/* Values that are ignored may be anything; others must be finite. */
static void test_not_finite(void **state)
{
    (void)state;
    scene *s = make_scene();
    const tess_array_opts opts = make_opts();
    const tess_array_image image = image_of(s->dirty[0]), model = image_of(s->image);
    tess_array_vis vis = vis_of(s);
    memset(s->mask, 1, sizeof s->mask);
    memset(s->mask + 3 * CHANS, 0, CHANS); /* row 3 */
    s->vis[3 * CHANS + 2][0] = NAN;
    s->weight[3 * CHANS + 1] = INFINITY;
    s->uvw[3][0] = NAN;
    assert_int_equal(tess_vis_to_dirty(&opts, &vis, &image, NULL), TESS_OK);
    for (int k = 0; k < PIXELS; ++k)
        assert_true(isfinite(s->dirty[0][k]));
    s->vis[17 * CHANS + 4][1] = -INFINITY;
    assert_int_equal(tess_vis_to_dirty(&opts, &vis, &image, NULL), TESS_ERR_INPUT);
    assert_non_null(strstr(tess_last_error(), "row 17, channel 4"));
    vis.vis = s->predicted[0]; /* prediction does not look at values */
    assert_int_equal(tess_dirty_to_vis(&opts, &model, &vis, NULL), TESS_OK);
    s->image[5 * NX + 3] = NAN;
    assert_int_equal(tess_dirty_to_vis(&opts, &model, &vis, NULL), TESS_ERR_INPUT);
    assert_non_null(strstr(tess_last_error(), "image row 5"));
    s->freq[1] = 0;
    assert_int_equal(tess_dirty_to_vis(&opts, &model, &vis, NULL), TESS_ERR_INPUT);
    assert_non_null(strstr(tess_last_error(), "channel 1"));
    free(s);
}

/* ---- very small and very large numbers ---- */

/* Weights and values with few bits, so that they are exact where they are denormal. */
static scene *make_coarse_scene(void)
{
    scene *s = make_scene();
    for (int k = 0; k < VIS; ++k) {
        s->weight[k] = rintf(8 * s->weight[k]) / 8;
        for (int part = 0; part < 2; ++part)
            s->vis[k][part] = rintf(128 * s->vis[k][part]) / 128;
    }
    for (int k = 0; k < PIXELS; ++k)
        s->image[k] = rintf(128 * s->image[k]) / 128;
    return s;
}

static tess_array_image double_image_of(double *pixel)
{
    return (tess_array_image){.data = pixel,
                              .is_double = true,
                              .step_x = sizeof *pixel,
                              .step_y = NX * (int64_t)sizeof *pixel};
}

/* Weights times 2^a and values times 2^b make the image times 2^(a + b), to the last
 * bit, although their products are far beyond single precision. Of what is ignored,
 * nothing becomes infinite. The caller's arrays stay as they are. */
static void test_extreme_weights(void **state)
{
    (void)state;
    static const int exponent[][2] = {{-140, 0},   {0, -140},  {-60, -75}, {-140, -140},
                                      {-140, 120}, {110, 110}, {120, -140}};
    static double expected[PIXELS], found[PIXELS];
    scene *s = make_coarse_scene(), *given = make_coarse_scene();
    tess_array_opts opts = make_opts();
    const tess_array_image first = double_image_of(expected),
                           second = double_image_of(found);
    for (int masked = 0; masked < 2; ++masked) {
        tess_array_vis vis = vis_of(s);
        if (!masked) vis.mask = NULL;
        assert_int_equal(tess_vis_to_dirty(&opts, &vis, &first, NULL), TESS_OK);
        for (size_t k = 0; k < sizeof exponent / sizeof *exponent; ++k) {
            const int *by = exponent[k];
            for (int v = 0; v < VIS; ++v) {
                given->weight[v] = ldexpf(s->weight[v], by[0]);
                for (int part = 0; part < 2; ++part)
                    given->vis[v][part] =
                        masked && !s->mask[v] ? 1e30f : ldexpf(s->vis[v][part], by[1]);
            }
            const scene before = *given;
            vis.vis = given->vis;
            vis.weight = given->weight;
            assert_int_equal(tess_vis_to_dirty(&opts, &vis, &second, NULL), TESS_OK);
            assert_memory_equal(&before, given, sizeof before);
            for (int p = 0; p < PIXELS; ++p)
                assert_true(ldexp(found[p], -by[0] - by[1]) == expected[p]);
        }
    }
    free(s);
    free(given);
}

/* A model times 2^a predicts visibilities times 2^a, as exactly as single precision
 * holds them: to 2^-150 where they are denormal, else to the last bit. */
static void test_extreme_model(void **state)
{
    (void)state;
    static const int exponent[] = {-125, -140, 100};
    scene *s = make_coarse_scene();
    const tess_array_opts opts = make_opts();
    const tess_array_image model = image_of(s->image), scaled = image_of(s->dirty[0]);
    for (int masked = 0; masked < 2; ++masked)
        for (size_t k = 0; k < sizeof exponent / sizeof *exponent; ++k) {
            tess_array_vis vis = vis_of(s);
            if (!masked) vis.weight = NULL;
            if (!masked) vis.mask = NULL;
            vis.vis = s->predicted[0];
            assert_int_equal(tess_dirty_to_vis(&opts, &model, &vis, NULL), TESS_OK);
            for (int p = 0; p < PIXELS; ++p)
                s->dirty[0][p] = ldexpf(s->image[p], exponent[k]);
            vis.vis = s->predicted[1];
            assert_int_equal(tess_dirty_to_vis(&opts, &scaled, &vis, NULL), TESS_OK);
            for (int v = 0; v < VIS; ++v)
                for (int part = 0; part < 2; ++part)
                    assert_true(
                        fabs(ldexp((double)s->predicted[1][v][part], -exponent[k]) -
                             (double)s->predicted[0][v][part]) <=
                        (exponent[k] < 0 ? ldexp(1, -150 - exponent[k]) : 0));
        }
    free(s);
}

/* In double precision, too; the sums are denormal, and hold 2^-1074. */
static void test_extreme_double(void **state)
{
    (void)state;
    static double vis[2][VIS][2], weight[2][VIS], expected[PIXELS], found[PIXELS];
    enum { BY_WEIGHT = -500, BY_VIS = -530 };
    scene *s = make_coarse_scene();
    tess_array_opts opts = make_opts();
    const tess_array_image first = double_image_of(expected),
                           second = double_image_of(found);
    for (int v = 0; v < VIS; ++v) {
        weight[0][v] = (double)s->weight[v];
        weight[1][v] = ldexp(weight[0][v], BY_WEIGHT);
        for (int part = 0; part < 2; ++part) {
            vis[0][v][part] = (double)s->vis[v][part];
            vis[1][v][part] = ldexp(vis[0][v][part], BY_VIS);
        }
    }
    for (int k = 0; k < 2; ++k) {
        tess_array_vis in = vis_of(s);
        in.is_double = true;
        in.vis = vis[k];
        in.vis_step_row = CHANS * sizeof vis[k][0];
        in.vis_step_chan = sizeof vis[k][0];
        in.weight = weight[k];
        in.weight_step_row = CHANS * sizeof weight[k][0];
        in.weight_step_chan = sizeof weight[k][0];
        assert_int_equal(tess_vis_to_dirty(&opts, &in, k ? &second : &first, NULL),
                         TESS_OK);
    }
    for (int p = 0; p < PIXELS; ++p)
        assert_true(fabs(ldexp(found[p], -BY_WEIGHT - BY_VIS) - expected[p]) <=
                    ldexp(1, -1074 - BY_WEIGHT - BY_VIS));
    free(s);
}

/* ---- a w that may be ignored ---- */

typedef struct turned {
    double l, m, nm1;
} turned;

static turned pixel_of(const tess_array_opts *opts, int i, int j)
{
    const double l = opts->center_l + (i - NX / 2) * opts->step_l;
    const double m = opts->center_m + (j - NY / 2) * opts->step_m;
    return (turned){l, m, sqrt(1 - l * l - m * m) - 1};
}

static double turns_of(const scene *s, int v, const turned *at)
{
    const double *uvw = s->uvw[v / CHANS];
    return (uvw[0] * at->l + uvw[1] * at->m + uvw[2] * at->nm1) * s->freq[v % CHANS] /
           299792458.0;
}

/* Phases of w at the farthest pixel from a tenth of ε to thrice it, on an image far
 * from the phase centre, where they are about the same everywhere: with w or without,
 * image and visibilities keep ε of the direct sum. */
static void test_small_w(void **state)
{
    (void)state;
    static const double phase[] = {0.1, 0.3, 0.4, 0.9, 1.5, 2.9};
    scene *s = make_scene();
    tess_array_opts opts = make_opts();
    opts.center_l = 0.3;
    opts.accuracy = 1e-2;
    double farthest = 0;
    for (int k = 0; k < 4; ++k) {
        const turned at = pixel_of(&opts, k % 2 * (NX - 1), k / 2 * (NY - 1));
        farthest = fmax(farthest, fabs(at.nm1));
    }
    memset(s->mask, 1, sizeof s->mask);
    memset(s->image, 0, sizeof s->image);
    s->image[0] = s->image[PIXELS - 1] = 1;
    for (size_t k = 0; k < sizeof phase / sizeof *phase; ++k) {
        double error = 0, size = 0;
        for (int r = 0; r < ROWS; ++r)
            s->uvw[r][2] = phase[k] * opts.accuracy / (2 * acos(-1) * farthest) *
                           299792458.0 / s->freq[CHANS - 1];
        tess_array_vis vis = vis_of(s);
        const tess_array_image image = image_of(s->dirty[0]),
                               model = image_of(s->image);
        assert_int_equal(tess_vis_to_dirty(&opts, &vis, &image, NULL), TESS_OK);
        for (int p = 0; p < PIXELS; ++p) {
            const turned at = pixel_of(&opts, p % NX, p / NX);
            double exact = 0;
            for (int v = 0; v < VIS; ++v) {
                const double angle = 2 * acos(-1) * turns_of(s, v, &at);
                exact += (double)s->weight[v] * ((double)s->vis[v][0] * cos(angle) +
                                                 (double)s->vis[v][1] * sin(angle));
            }
            error += pow((double)s->dirty[0][p] - exact, 2);
            size += exact * exact;
        }
        assert_true(sqrt(error / size) <= opts.accuracy);
        vis.vis = s->predicted[0];
        vis.weight = NULL;
        assert_int_equal(tess_dirty_to_vis(&opts, &model, &vis, NULL), TESS_OK);
        error = size = 0;
        for (int v = 0; v < VIS; ++v) {
            double re = 0, im = 0;
            for (int p = 0; p < PIXELS; p += PIXELS - 1) {
                const turned at = pixel_of(&opts, p % NX, p / NX);
                re += cos(2 * acos(-1) * turns_of(s, v, &at));
                im += sin(2 * acos(-1) * turns_of(s, v, &at));
            }
            error += pow((double)s->predicted[0][v][0] - re, 2) +
                     pow((double)s->predicted[0][v][1] - im, 2);
            size += re * re + im * im;
        }
        assert_true(sqrt(error / size) <= opts.accuracy);
    }
    free(s);
}

static void refused(tess_array_opts opts, const char *word)
{
    scene *s = make_scene();
    const tess_array_vis vis = vis_of(s);
    const tess_array_image image = image_of(s->dirty[0]);
    assert_int_equal(tess_vis_to_dirty(&opts, &vis, &image, NULL), TESS_ERR_USAGE);
    assert_non_null(strstr(tess_last_error(), word));
    free(s);
}

static void test_refused(void **state)
{
    (void)state;
    tess_array_opts opts = make_opts();
    opts.nx = 0;
    refused(opts, "0 x 24");
    opts = make_opts();
    opts.ny = INT64_MAX;
    refused(opts, "pixels");
    opts = make_opts();
    opts.step_m = NAN;
    refused(opts, "direction cosines");
    opts = make_opts();
    opts.center_m = -1.1;
    refused(opts, "centre");
    opts = make_opts();
    opts.accuracy = 1e-6;
    refused(opts, "single precision");
    opts = make_opts();
    opts.accuracy = -1;
    refused(opts, "accuracy");
    opts = make_opts();
    opts.threads = -2;
    refused(opts, "threads");
    opts = make_opts();
    opts.padding_min = 2;
    opts.padding_max = 1.5;
    refused(opts, "paddings");
}

/* ---- whose error ---- */

static void *fail_often(void *argument)
{
    const int channel = *(const int *)argument;
    scene *s = make_scene();
    const tess_array_opts opts = make_opts();
    const tess_array_vis vis = vis_of(s);
    const tess_array_image image = image_of(s->dirty[0]);
    char word[32];
    bool good = true;
    snprintf(word, sizeof word, "channel %d is", channel);
    s->freq[channel] = -1;
    for (int k = 0; k < 200 && good; ++k)
        good = tess_vis_to_dirty(&opts, &vis, &image, NULL) == TESS_ERR_INPUT &&
               strstr(tess_last_error(), word);
    free(s);
    return good ? argument : NULL;
}

static void test_errors_of_threads(void **state)
{
    (void)state;
    pthread_t thread[4];
    int channel[4] = {0, 1, 2, 3};
    for (int k = 0; k < 4; ++k)
        assert_int_equal(pthread_create(&thread[k], NULL, fail_often, &channel[k]), 0);
    for (int k = 0; k < 4; ++k) {
        void *good = NULL;
        assert_int_equal(pthread_join(thread[k], &good), 0);
        assert_non_null(good);
    }
}

/* ---- the imager ---- */

static void test_imager_options(void **state)
{
    (void)state;
    tess_image *image = NULL;
    assert_int_equal(tess_image_create(&image), TESS_OK);
    assert_int_equal(tess_image_count(image), 0);
    assert_null(tess_image_get(image, 0));
    assert_int_equal(tess_image_run(image), TESS_ERR_USAGE); /* no observation */
    assert_int_equal(tess_image_set(image, "obs", "/nowhere/x.uvfits"), TESS_OK);
    assert_int_equal(tess_image_set(image, "size", "many"), TESS_OK);
    assert_int_equal(tess_image_run(image), TESS_ERR_USAGE);
    assert_non_null(strstr(tess_last_error(), "many"));
    assert_int_equal(tess_image_set(image, "size", "64"), TESS_OK);
    assert_int_equal(tess_image_set(image, "scale", "1asec"), TESS_OK);
    assert_int_equal(tess_image_set(image, "no-psf", NULL), TESS_OK);
    assert_int_equal(tess_image_run(image), TESS_ERR_IO);
    assert_non_null(strstr(tess_last_error(), "/nowhere/x.uvfits"));
    assert_int_equal(tess_image_set(image, "help", NULL), TESS_OK);
    assert_int_equal(tess_image_run(image), TESS_ERR_USAGE);
    tess_image_destroy(image);
    tess_image_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),        cmocka_unit_test(test_image_layouts),
        cmocka_unit_test(test_weights),        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_refused),        cmocka_unit_test(test_errors_of_threads),
        cmocka_unit_test(test_imager_options), cmocka_unit_test(test_extreme_weights),
        cmocka_unit_test(test_extreme_model),  cmocka_unit_test(test_extreme_double),
        cmocka_unit_test(test_small_w),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
