/* PNG previews: labels say where they are, for fields near the poles, at 0h, of the
 * whole sky and of microarcseconds; the sky is drawn up to its horizon; the reduced
 * image has the means, extremes and noise of the full one. */
#define _GNU_SOURCE
#include <math.h>
#include <png.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "preview.h"
#include "preview_file.h"
#include "tess_const.h"
#include "tess_mem.h"

static tess_image_meta field(double ra_deg, double dec_deg, int64_t nx, int64_t ny,
                             double scale_asec)
{
    return (tess_image_meta){.nx = nx,
                             .ny = ny,
                             .ra_rad = ra_deg * TESS_RAD_PER_DEG,
                             .dec_rad = dec_deg * TESS_RAD_PER_DEG,
                             .scale_rad = scale_asec * TESS_RAD_PER_ASEC,
                             .stokes = 1,
                             .unit = "JY/BEAM"};
}

static preview_layout layout_of(const tess_image_meta *meta)
{
    const double per_pixel =
        720.0 / (double)(meta->nx > meta->ny ? meta->nx : meta->ny);
    return (preview_layout){.left = 150,
                            .top = 92,
                            .right = 150 + (int)lround(per_pixel * (double)meta->nx),
                            .bottom = 92 + (int)lround(per_pixel * (double)meta->ny),
                            .pixel_x = per_pixel,
                            .pixel_y = per_pixel,
                            .size = 13,
                            .weight = 1.5};
}

/* "4h 01m 30.5s" or "-29d45'" as the font's characters to seconds of time or arc. */
static double seconds_in(const char *text)
{
    double sum = 0, unit = 3600;
    const double sign = text[0] == TEXT_MINUS[0] ? -1 : 1;
    for (const char *at = text; *at;) {
        if ((*at >= '0' && *at <= '9')) {
            char *end;
            sum += unit * strtod(at, &end);
            unit /= 60;
            at = end;
        } else {
            ++at;
        }
    }
    return sign * sum;
}

/* RA and Dec of a canvas position by rotating its unit vector; false beyond the
 * horizon. */
static bool sky_at(const tess_image_meta *meta, const preview_layout *layout, double x,
                   double y, double *ra, double *dec)
{
    double l, m;
    tess_preview_direction(meta, layout, x, y, &l, &m);
    const double n2 = 1 - l * l - m * m, n = sqrt(fmax(n2, 0));
    const double sd = sin(meta->dec_rad), cd = cos(meta->dec_rad);
    const double sa = sin(meta->ra_rad), ca = cos(meta->ra_rad);
    /* to the centre, East, North */
    const double vx = n * cd * ca - l * sa - m * sd * ca;
    const double vy = n * cd * sa + l * ca - m * sd * sa;
    const double vz = n * sd + m * cd;
    *ra = atan2(vy, vx);
    *dec = atan2(vz, hypot(vx, vy));
    return n2 > 0;
}

/* Canvas pixels between where a label is and the line it names. */
static double distance_off(const tess_image_meta *meta, const preview_layout *layout,
                           const preview_label *label)
{
    double ra, dec, away;
    assert_true(sky_at(meta, layout, label->x, label->y, &ra, &dec));
    if (label->across)
        away = cos(dec) *
               remainder(ra - seconds_in(label->text) * TESS_PI / 43200, TESS_TWO_PI);
    else
        away = dec - seconds_in(label->text) * TESS_RAD_PER_ASEC;
    return fabs(away) / meta->scale_rad * layout->pixel_x;
}

static void check_places(const preview_layout *layout, const preview_axes *axes)
{
    const preview_text style = {.size = layout->size};
    for (int i = 0; i < axes->num; ++i) {
        const preview_label *a = &axes->label[i];
        const double wide = tess_text_width(&style, a->text);
        assert_true(a->x >= layout->left && a->x <= layout->right);
        assert_true(a->y >= layout->top && a->y <= layout->bottom);
        assert_true(a->edge != PREVIEW_BOTTOM || (a->across && a->y == layout->bottom));
        assert_true(a->edge != PREVIEW_LEFT || (!a->across && a->x == layout->left));
        if (a->edge == PREVIEW_INSIDE)
            assert_true(a->x - wide / 2 > layout->left &&
                        a->x + wide / 2 < layout->right);
        for (int j = 0; j < i; ++j) { /* no two touch */
            const preview_label *b = &axes->label[j];
            const double both = 0.5 * (wide + tess_text_width(&style, b->text));
            if (a->edge == b->edge)
                assert_true(fabs(a->x - b->x) > both ||
                            fabs(a->y - b->y) > 1.5 * layout->size);
        }
    }
}

static void labels_tell_the_truth(void **state)
{
    (void)state;
    static const struct {
        double ra, dec;
        int64_t nx, ny;
        double scale_asec;
        int least; /* labels of each coordinate */
    } cases[] = {
        {60, -30, 1024, 1024, 2, 4},      /* a plain field */
        {40, 90, 300, 300, 24, 4},        /* poles in the middle, */
        {10, -90, 300, 300, 60, 4},       /* */
        {40, 90, 300, 300, 2, 4},         /* in a small field, */
        {40, 89.5, 400, 400, 24, 3},      /* in view, */
        {100, 80, 400, 400, 270, 3},      /* in a wide field, */
        {40, 89.5, 300, 300, 2, 3},       /* and just outside */
        {0, 20, 400, 400, 2, 3},          /* either side of 0h */
        {359.99, -20, 400, 400, 5, 3},    /* */
        {0.01, 20, 400, 400, 180, 3},     /* */
        {200, -27, 512, 512, 804.6, 4},   /* all sky */
        {0, 0, 512, 512, 804.6, 4},       /* */
        {200, 90, 512, 512, 804.6, 4},    /* */
        {200, -90, 511, 509, 804.6, 4},   /* */
        {300, 37, 80, 80, 3600, 4},       /* most of it */
        {180, 0, 800, 200, 360, 3},       /* a strip */
        {187.7, 12.4, 4096, 4096, 60, 3}, /* a wide field */
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        const tess_image_meta meta = field(cases[k].ra, cases[k].dec, cases[k].nx,
                                           cases[k].ny, cases[k].scale_asec);
        const preview_layout layout = layout_of(&meta);
        preview_axes axes;
        int num[2] = {0, 0};
        tess_preview_axes_choose(&meta, &layout, &axes);
        assert_true(axes.graticule);
        for (int i = 0; i < axes.num; ++i) {
            ++num[axes.label[i].across];
            /* edge ticks are found between pixels, others lie on the line */
            const double off = distance_off(&meta, &layout, &axes.label[i]);
            if (off > 1)
                fail_msg("case %zu: label %d at (%g, %g) is off by %g pixels", k, i,
                         axes.label[i].x, axes.label[i].y, off);
        }
        if (num[0] < cases[k].least || num[1] < cases[k].least)
            fail_msg("case %zu: %d labels of RA, %d of Dec", k, num[1], num[0]);
        check_places(&layout, &axes);
    }
}

/* Any centre and field size. */
static void labels_anywhere(void **state)
{
    (void)state;
    srand(11);
    for (int k = 0; k < 300; ++k) {
        const double u = (double)rand() / RAND_MAX, v = (double)rand() / RAND_MAX,
                     w = (double)rand() / RAND_MAX;
        /* from a fifth of a degree to the half-sky */
        const double width_rad = 2 * pow(10, -2.8 * w);
        const tess_image_meta meta =
            field(360 * u, asin(2 * v - 1) / TESS_RAD_PER_DEG, 600, 600,
                  width_rad / 600 / TESS_RAD_PER_ASEC);
        const preview_layout layout = layout_of(&meta);
        preview_axes axes;
        int num[2] = {0, 0};
        tess_preview_axes_choose(&meta, &layout, &axes);
        for (int i = 0; i < axes.num; ++i) {
            ++num[axes.label[i].across];
            const double off = distance_off(&meta, &layout, &axes.label[i]);
            if (off > 1)
                fail_msg("field %d at (%g, %g), %g rad: a label is off by %g", k,
                         360 * u, meta.dec_rad / TESS_RAD_PER_DEG, width_rad, off);
        }
        if (num[0] < 2 || num[1] < 2)
            fail_msg("field %d at (%g, %g), %g rad: %d labels of RA, %d of Dec", k,
                     360 * u, meta.dec_rad / TESS_RAD_PER_DEG, width_rad, num[1],
                     num[0]);
        check_places(&layout, &axes);
    }
}

static void tiny_fields_have_offsets(void **state)
{
    (void)state;
    static const struct {
        double scale_asec;
        const char *unit;
        double unit_asec;
    } cases[] = {{1e-6, TEXT_MU "as", 1e-6}, {1e-4, "mas", 1e-3}, {0.05, "arcsec", 1}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        const tess_image_meta meta = field(187.7, 12.4, 128, 128, cases[k].scale_asec);
        const preview_layout layout = layout_of(&meta);
        preview_axes axes;
        int num[2] = {0, 0};
        tess_preview_axes_choose(&meta, &layout, &axes);
        assert_false(axes.graticule);
        assert_non_null(strstr(axes.title_x, cases[k].unit));
        for (int i = 0; i < axes.num; ++i) {
            const preview_label *label = &axes.label[i];
            double l, m;
            tess_preview_direction(&meta, &layout, label->x, label->y, &l, &m);
            const bool minus = label->text[0] == TEXT_MINUS[0];
            const double value = strtod(label->text + minus, NULL) * (minus ? -1 : 1) *
                                 cases[k].unit_asec * TESS_RAD_PER_ASEC;
            assert_true(fabs((label->across ? l : m) - value) < 1e-6 * meta.scale_rad);
            ++num[label->across];
        }
        assert_true(num[0] >= 4 && num[1] >= 4);
        check_places(&layout, &axes);
    }
}

/* Canvas of a preview as it was written. */
static uint8_t *read_png(const char *path, png_image *png)
{
    uint8_t *rgb;
    memset(png, 0, sizeof *png);
    png->version = PNG_IMAGE_VERSION;
    assert_true(png_image_begin_read_from_file(png, path));
    png->format = PNG_FORMAT_RGB;
    rgb = malloc(PNG_IMAGE_SIZE(*png));
    assert_true(png_image_finish_read(png, NULL, rgb, 0, NULL));
    return rgb;
}

static bool near_label(const preview_axes *axes, const double at[2])
{
    for (int k = 0; k < axes->num; ++k)
        if (fabs(axes->label[k].x - at[0]) < 60 && fabs(axes->label[k].y - at[1]) < 30)
            return true;
    return false;
}

/* Sum of the three colours. */
static int brightness(const uint8_t *rgb, const png_image *png, const double at[2])
{
    const uint8_t *pixel = &rgb[3 * ((size_t)at[1] * png->width + (size_t)at[0])];
    return pixel[0] + pixel[1] + pixel[2];
}

/* Without interpolation towards the horizon, its edge would be as coarse as the pixels
 * of the image, which are three times as large as those of the preview. */
static void sky_reaches_the_horizon(void **state)
{
    tess_comm *comm = *state;
    enum { N = 300 };
    const char *path = "test_preview_sky.png";
    const double half = 0.48; /* of the field, in radii of the sky: it is 0.96 wide */
    const tess_image_meta meta = field(30, 40, N, N, 1 / half / N / TESS_RAD_PER_ASEC);
    float *image = malloc(N * N * sizeof *image);
    png_image png;
    int checked = 0;
    for (int j = 0; j < N; ++j)
        for (int i = 0; i < N; ++i)
            image[j * N + i] =
                hypot((i - N / 2) / (half * N), (j - N / 2) / (half * N)) < 1 ? 1.0f
                                                                              : NAN;
    assert_int_equal(write_preview(comm, path, true, &meta,
                                   &(tess_fits_rows){.num_rows = N, .pixel = image}),
                     TESS_OK);
    uint8_t *rgb = read_png(path, &png);
    const preview_layout layout = layout_of(&meta);
    const double pixel = meta.scale_rad / layout.pixel_x;
    preview_axes axes;
    tess_preview_axes_choose(&meta, &layout, &axes);
    for (int k = 0; k < 720; ++k) {
        const double angle = TESS_PI * k / 360, c = cos(angle), s = sin(angle);
        double above[2], below[2];
        tess_preview_place(&meta, &layout, (1 - 1.3 * pixel) * c, (1 - 1.3 * pixel) * s,
                           above);
        tess_preview_place(&meta, &layout, (1 + 2.5 * pixel) * c, (1 + 2.5 * pixel) * s,
                           below);
        if (near_label(&axes, above)) continue;
        ++checked;
        /* lines of the graticule brighten; beyond is the background */
        assert_true(brightness(rgb, &png, above) > 250);
        assert_int_equal(brightness(rgb, &png, below), 16 + 17 + 21);
    }
    assert_true(checked > 400);
    free(rgb);
    free(image);
    unlink(path);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Statistics and values against sorting and summing. */
static void reduced_image(void **state)
{
    tess_comm *comm = *state;
    static const struct {
        int64_t nx, ny;
        bool is_double;
    } cases[] = {{700, 500, false}, {1921, 300, true}, {2900, 1000, false}};
    srand(5);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        const int64_t nx = cases[k].nx, ny = cases[k].ny;
        const tess_image_meta meta = field(0, 0, nx, ny, 1);
        const size_t size = cases[k].is_double ? sizeof(double) : sizeof(float);
        void *pixels = malloc((size_t)(nx * ny) * size);
        preview_image image = {0};
        for (int64_t i = 0; i < nx * ny; ++i) {
            double value = 2 + (double)rand() / RAND_MAX;
            if (i % 1013 == 0) value = NAN;
            if (i % 2011 == 0) value = -INFINITY;
            if (i < 64) value = NAN;
            if (cases[k].is_double)
                ((double *)pixels)[i] = value;
            else
                ((float *)pixels)[i] = (float)value;
        }
        assert_int_equal(
            tess_preview_reduce(comm, &meta,
                                &(tess_fits_rows){.num_rows = ny,
                                                  .is_double = cases[k].is_double,
                                                  .pixel = pixels},
                                960, &image),
            TESS_OK);
        const int64_t factor = (nx + 959) / 960,
                      count = (int64_t)image.width * image.height;
        double *sorted = malloc((size_t)count * sizeof *sorted);
        double largest = 0;
        int64_t used = 0;
        assert_int_equal(image.factor, factor);
        for (int64_t c = 0; c < count; ++c) {
            const int64_t i0 = c % image.width * factor, j0 = c / image.width * factor;
            double sum = 0, num = 0;
            for (int64_t j = j0; j < j0 + factor && j < ny; ++j)
                for (int64_t i = i0; i < i0 + factor && i < nx; ++i) {
                    const int64_t at = j * nx + i;
                    const double value = cases[k].is_double
                                             ? ((double *)pixels)[at]
                                             : (double)((float *)pixels)[at];
                    if (!isfinite(value)) continue;
                    sum += value;
                    ++num;
                    largest = fmax(largest, (double)(float)value);
                }
            if (num > 0) {
                assert_true(fabs((double)image.value[c] - sum / num) < 1e-6);
                sorted[used++] = (double)image.value[c];
            } else {
                assert_true(isnan(image.value[c]));
            }
        }
        qsort(sorted, (size_t)used, sizeof *sorted, ascending);
        assert_true(image.min == sorted[0] && image.max == sorted[used - 1]);
        assert_true(image.low == sorted[used / 1000]);
        const double median = sorted[used / 2];
        for (int64_t c = 0; c < used; ++c)
            sorted[c] = fabs(sorted[c] - median);
        qsort(sorted, (size_t)used, sizeof *sorted, ascending);
        assert_true(fabs(image.sigma - 1.4826 * sorted[used / 2]) < 1e-6);
        /* of the pixels, uniform from 2 to 3, whatever their blocks average to */
        assert_true(image.peak == largest);
        assert_true(fabs(image.rms / (1.4826 / 4) - 1) < 0.02);
        free(sorted);
        free(pixels);
        tess_free(image.value);
    }
}

static int set_up(void **state)
{
    return tess_comm_self((tess_comm **)state) == TESS_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    tess_comm_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_tell_the_truth), cmocka_unit_test(labels_anywhere),
        cmocka_unit_test(tiny_fields_have_offsets),
        cmocka_unit_test(sky_reaches_the_horizon), cmocka_unit_test(reduced_image)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
