/* The comparison behind `tessera compare`. */
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
#include <unistd.h>

#include <cmocka.h>

#include "compare.h"
#include "tess_const.h"
#include "tess_fits.h"

enum { N = 20 };

static tess_comm *comm;
static char root[64];

static int set_up(void **state)
{
    (void)state;
    strcpy(root, "test_compare_XXXXXX");
    return mkdtemp(root) && tess_comm_self(&comm) == TESS_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", root);
    tess_comm_free(comm);
    return system(command);
}

static tess_image_meta sample_meta(void)
{
    return (tess_image_meta){.nx = N,
                             .ny = N,
                             .ra_rad = 0.1,
                             .dec_rad = -0.5,
                             .scale_rad = 1e-6,
                             .freq_hz = 1e9,
                             .bandwidth_hz = 1e6,
                             .stokes = 1,
                             .unit = "JY/BEAM"};
}

/* Peak 1 at (3, 2), elsewhere about 1e-3. */
static void sample_image(double image[N * N])
{
    for (int k = 0; k < N * N; ++k)
        image[k] = 1e-3 * sin(k + 0.5);
    image[2 * N + 3] = 1;
    image[7] = NAN;
}

static const char *write_image(const char *name, const tess_image_meta *meta,
                               const double *image)
{
    static char path[2][256];
    char *out = path[name[0] == 'b'];
    snprintf(out, sizeof path[0], "%s/%s", root, name);
    assert_int_equal(
        tess_fits_write(
            comm, out, true, meta,
            &(tess_fits_rows){.num_rows = meta->ny, .is_double = true, .pixel = image}),
        TESS_OK);
    return out;
}

static tess_status compare(const char *a, const char *b, double rtol, double atol,
                           tess_compare_result *result)
{
    tess_compare_opts opts;
    tess_compare_opts_default(&opts);
    opts.rtol = rtol;
    opts.atol = atol;
    *result = (tess_compare_result){0};
    const tess_status status = tess_compare_files(a, b, &opts, result);
    tess_error_clear();
    return status;
}

static void equal_images(void **state)
{
    (void)state;
    double image[N * N];
    sample_image(image);
    const tess_image_meta meta = sample_meta();
    const char *a = write_image("a.fits", &meta, image);
    tess_compare_result result;
    assert_int_equal(compare(a, a, 0, 0, &result), TESS_OK);
    assert_int_equal(result.num_pairs, 1);
    assert_int_equal(result.num_pixels, N * N);
    assert_true(result.max_abs == 0 && result.l2_relative == 0 && result.peak == 1);
}

static void tolerances(void **state)
{
    (void)state;
    double image[N * N], other[N * N];
    sample_image(image);
    const tess_image_meta meta = sample_meta();
    const char *a = write_image("a.fits", &meta, image);
    tess_compare_result result;
    memcpy(other, image, sizeof other);
    other[2 * N + 3] = 1 + 1e-5; /* relative where large */
    const char *b = write_image("b.fits", &meta, other);
    assert_int_equal(compare(a, b, 1.1e-5, -1, &result), TESS_OK);
    assert_int_equal(compare(a, b, 0.9e-5, -1, &result), TESS_ERR_DIFFERENT);
    assert_int_equal(result.num_different, 1);
    assert_int_equal(result.max_pixel[0], 3);
    assert_int_equal(result.max_pixel[1], 2);
    assert_true(fabs(result.max_abs - 1e-5) < 1e-12);
    assert_true(fabs(result.l2_relative / 1e-5 - 1) < 1e-3);

    memcpy(other, image, sizeof other);
    other[100] += 1e-5; /* rms is 0.05: absolute where small */
    b = write_image("b.fits", &meta, other);
    assert_int_equal(compare(a, b, 3e-4, -1, &result), TESS_OK);
    assert_int_equal(compare(a, b, 1e-4, -1, &result), TESS_ERR_DIFFERENT);
    assert_int_equal(compare(a, b, 1e-4, 2e-5, &result), TESS_OK);
    assert_int_equal(compare(a, b, 0, 0.9e-5, &result), TESS_ERR_DIFFERENT);

    memcpy(other, image, sizeof other);
    other[8] = NAN;
    b = write_image("b.fits", &meta, other);
    assert_int_equal(compare(a, b, 1, 1, &result), TESS_ERR_DIFFERENT);
    assert_int_equal(result.num_blank, 1);
    assert_int_equal(compare(a, b, -1, -1, &result), TESS_ERR_USAGE);
    assert_int_equal(compare(a, b, NAN, -1, &result), TESS_ERR_USAGE);
}

static void headers(void **state)
{
    (void)state;
    double image[N * N];
    sample_image(image);
    const tess_image_meta meta = sample_meta();
    const char *a = write_image("a.fits", &meta, image);
    tess_compare_result result;
    for (int k = 0; k < 8; ++k) {
        tess_image_meta other = meta;
        bool differs = true;
        switch (k) {
        case 0:
            other.nx = N / 2;
            other.ny = 2 * N;
            break;
        case 1:
            other.scale_rad *= 1.001;
            break;
        case 2:
            other.dec_rad += 1e-8;
            break;
        case 3:
            other.freq_hz *= 1.001;
            break;
        case 4:
            other.stokes = 2;
            break;
        case 5:
            strcpy(other.unit, "JY/PIXEL");
            break;
        case 6: /* a whole turn, and another beam, weighting and history */
            other.ra_rad += TESS_TWO_PI;
            other.beam.major_rad = other.beam.minor_rad = 1e-5;
            other.history = "another";
            differs = false;
            break;
        default:
            other.ra_rad += 1e-10; /* 1e-4 pixel */
            differs = false;
            break;
        }
        const char *b = write_image("b.fits", &other, image);
        assert_int_equal(compare(a, b, 1e-5, -1, &result),
                         differs ? TESS_ERR_DIFFERENT : TESS_OK);
        assert_int_equal(result.header[0] != '\0', differs);
    }
}

/* The reference position of one image as a longitude of some system and unit, in the
 * header of a file that is there. */
static void set_longitude(const char *path, int axis, const char *type,
                          const char *unit, double value)
{
    fitsfile *fits = NULL;
    int failed = 0;
    char key[FLEN_KEYWORD];
    fits_open_diskfile(&fits, path, READWRITE, &failed);
    snprintf(key, sizeof key, "CTYPE%d", axis);
    fits_update_key_str(fits, key, type, NULL, &failed);
    snprintf(key, sizeof key, "CUNIT%d", axis);
    fits_update_key_str(fits, key, unit, NULL, &failed);
    snprintf(key, sizeof key, "CRVAL%d", axis);
    fits_update_key_dbl(fits, key, value, -15, NULL, &failed);
    snprintf(key, sizeof key, "CDELT%d", axis);
    fits_update_key_dbl(fits, key, 0.01, -15, NULL, &failed);
    fits_close_file(fits, &failed);
    assert_int_equal(failed, 0);
}

/* 187.7 and -172.3 degrees are one place, in every system, unit and order of axes;
 * 187.7 and -172.7 degrees are two. */
static void whole_turns(void **state)
{
    (void)state;
    double image[N * N];
    sample_image(image);
    const tess_image_meta meta = sample_meta();
    tess_compare_result result;
    static const struct {
        int axis;
        const char *type, *unit;
        double turn;
    } cases[] = {{1, "RA---SIN", "deg", 360},
                 {1, "RA---SIN", "", 360},
                 {1, "RA---SIN", "rad", TESS_TWO_PI},
                 {1, "GLON-CAR", "deg", 360},
                 {1, "ELON-TAN", "arcsec", 1296000},
                 {1, "HPLN-TAN", "deg", 360},
                 {2, "RA---SIN", "deg", 360},
                 {3, "RA", "deg", 360},
                 {1, "LINEAR", "deg", 0}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        const char *a = write_image("a.fits", &meta, image);
        const char *b = write_image("b.fits", &meta, image);
        const double turn = cases[k].turn > 0 ? cases[k].turn : 360;
        const double value = 187.7 / 360 * turn;
        set_longitude(a, cases[k].axis, cases[k].type, cases[k].unit, value);
        set_longitude(b, cases[k].axis, cases[k].type, cases[k].unit, value - turn);
        assert_int_equal(compare(a, b, 1e-5, -1, &result),
                         cases[k].turn > 0 ? TESS_OK : TESS_ERR_DIFFERENT);
        set_longitude(b, cases[k].axis, cases[k].type, cases[k].unit,
                      value - turn - 0.4 / 360 * turn);
        assert_int_equal(compare(a, b, 1e-5, -1, &result), TESS_ERR_DIFFERENT);
    }
}

/* A header with coordinates that overflow is the same as itself. */
static void absurd_coordinates(void **state)
{
    (void)state;
    double image[N * N];
    sample_image(image);
    const tess_image_meta meta = sample_meta();
    const char *a = write_image("a.fits", &meta, image);
    tess_compare_result result;
    fitsfile *fits = NULL;
    int failed = 0;
    fits_open_diskfile(&fits, a, READWRITE, &failed);
    fits_update_key_dbl(fits, "CRPIX3", 1e308, -15, NULL, &failed);
    fits_update_key_dbl(fits, "CDELT3", 2e6, -15, NULL, &failed);
    fits_close_file(fits, &failed);
    assert_int_equal(failed, 0);
    assert_int_equal(compare(a, a, 0, 0, &result), TESS_OK);
}

static void count_reports(const tess_compare_result *result, void *context)
{
    *(int *)context += 1 + 100 * result->differs;
}

static void folders(void **state)
{
    (void)state;
    double image[N * N], other[N * N];
    char a[128], b[128], name[128];
    const tess_image_meta meta = sample_meta();
    tess_compare_result result;
    sample_image(image);
    memcpy(other, image, sizeof other);
    other[0] = 0.5;
    snprintf(a, sizeof a, "%s/a", root);
    snprintf(b, sizeof b, "%s/b", root);
    mkdir(a, 0777);
    mkdir(b, 0777);
    assert_int_equal(compare(a, b, 1e-5, -1, &result), TESS_ERR_INPUT);
    for (int k = 0; k < 4; ++k) {
        snprintf(name, sizeof name, "a/%d-stage.fits", k);
        write_image(name, &meta, image);
        snprintf(name, sizeof name, "b/%d-stage.fits", k);
        write_image(name, &meta, k >= 2 ? other : image);
    }
    int reports = 0;
    tess_compare_opts opts;
    tess_compare_opts_default(&opts);
    opts.report = count_reports;
    opts.context = &reports;
    assert_int_equal(tess_compare_files(a, b, &opts, &result), TESS_ERR_DIFFERENT);
    assert_non_null(strstr(tess_error_message(), "2-stage.fits"));
    tess_error_clear();
    assert_int_equal(reports, 204);
    assert_int_equal(result.num_pairs, 4);
    assert_string_equal(result.name, "2-stage.fits");
    snprintf(name, sizeof name, "%s/b/1-stage.fits", root);
    unlink(name);
    assert_int_equal(compare(a, b, 1e-5, -1, &result), TESS_ERR_DIFFERENT);
    assert_string_equal(result.name, "1-stage.fits");
    assert_int_equal(compare(a, a, 1e-5, -1, &result), TESS_OK);
    assert_int_equal(compare(a, "no such folder", 1e-5, -1, &result), TESS_ERR_IO);
    snprintf(name, sizeof name, "%s/a/1-stage.fits", root);
    assert_int_equal(compare(name, b, 1e-5, -1, &result), TESS_ERR_USAGE);
    assert_int_equal(truncate(name, 4000), 0);
    assert_int_equal(compare(a, a, 1e-5, -1, &result), TESS_ERR_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equal_images),
                                       cmocka_unit_test(tolerances),
                                       cmocka_unit_test(headers),
                                       cmocka_unit_test(whole_turns),
                                       cmocka_unit_test(absurd_coordinates),
                                       cmocka_unit_test(folders)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
