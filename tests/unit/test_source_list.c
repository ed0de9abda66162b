/* Lists of sources: both spellings of the header, columns, spectra and shapes,
 * positions to the digits that are written, and what is wrong with a line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "draw.h"
#include "sim_sky.h"
#include "tess_comm.h"
#include "tess_const.h"
#include "tess_geom.h"
#include "tess_mem.h"
#include "tess_source_list.h"

#define HEADER                                                                         \
    "Format = Name, Type, Ra, Dec, I, SpectralIndex, LogarithmicSI, "                  \
    "ReferenceFrequency='1.5e8', MajorAxis, MinorAxis, Orientation\n"

static tess_source_list parsed(const char *text)
{
    tess_source_list list = {0};
    if (tess_source_list_parse("a.txt", text, &list, NULL, 0) != TESS_OK)
        fail_msg("%s", tess_error_message());
    return list;
}

static void refused(const char *text, const char *line, const char *reason)
{
    tess_source_list list = {.num_sources = -1};
    assert_int_equal(tess_source_list_parse("a.txt", text, &list, NULL, 0),
                     TESS_ERR_INPUT);
    const char *message = tess_error_message();
    if (!strstr(message, "a.txt") || !strstr(message, line) || !strstr(message, reason))
        fail_msg("'%s' does not say '%s' and '%s'", message, line, reason);
    tess_error_clear();
    assert_int_equal(list.num_sources, -1); /* untouched */
}

/* What WSClean and DP3 write: empty cells, brackets, capital and small letters. */
static void test_columns(void **state)
{
    tess_source_list list = parsed(
        HEADER "\n"
               "s0c0,POINT,08:28:05.152,39.35.08.511,0.5,[-0.25,.125],false,"
               "125584411.621094,,,\n"
               "# a comment, with, commas\n"
               "s1c0,GAUSSIAN,-00:00:01,-00.00.30.25,-2e-3,[],true,,83.6,41.8,30\r\n"
               "s1c1,gaussian,12h30m00s,-30d15m,1,-0.7,,,10");
    assert_int_equal(list.num_sources, 3);
    const tess_listed_source *s = list.source;
    assert_false(s[0].is_gaussian);
    assert_true(fabs(s[0].ra_rad - (8 * 3600 + 28 * 60 + 5.152) * TESS_TWO_PI / 86400) <
                1e-15);
    assert_true(fabs(s[0].dec_rad - (39 * 3600 + 35 * 60 + 8.511) * TESS_RAD_PER_ASEC) <
                1e-15);
    assert_true(s[0].flux_jy[0] == 0.5 && s[0].flux_jy[1] == 0);
    assert_int_equal(s[0].num_terms, 2);
    assert_true(list.term[0] == -0.25 && list.term[1] == 0.125);
    assert_false(s[0].is_log);
    assert_true(s[0].ref_hz == 125584411.621094);
    assert_int_equal(s[0].line, 3);

    assert_true(s[1].is_gaussian);
    assert_true(fabs(s[1].ra_rad - TESS_TWO_PI * (1 - 1 / 86400.0)) < 1e-14);
    assert_true(fabs(s[1].dec_rad + 30.25 * TESS_RAD_PER_ASEC) < 1e-18);
    assert_true(s[1].flux_jy[0] == -2e-3);
    assert_int_equal(s[1].num_terms, 0);
    assert_true(s[1].ref_hz == 1.5e8); /* of the header */
    assert_true(fabs(s[1].major_rad / TESS_RAD_PER_ASEC - 83.6) < 1e-12);
    assert_true(fabs(s[1].minor_rad / TESS_RAD_PER_ASEC - 41.8) < 1e-12);
    assert_true(fabs(s[1].pa_rad / TESS_RAD_PER_DEG - 30) < 1e-12);

    assert_true(s[2].is_gaussian && s[2].is_log);
    assert_true(fabs(s[2].ra_rad - TESS_TWO_PI * 12.5 / 24) < 1e-14);
    assert_true(s[2].minor_rad == s[2].major_rad); /* round */
    assert_int_equal(s[2].num_terms, 1);
    assert_true(list.term[s[2].first_term] == -0.7);
    tess_source_list_free(&list);
}

/* The other spelling, columns in another order, patches, defaults, names in quotes. */
static void test_headers(void **state)
{
    static const char *const headers[] = {
        "# (Name, Type, Patch, Ra, Dec, I, Q='0.25', ReferenceFrequency=\"2e8\", "
        "SpectralIndex='[-0.8]', LogarithmicSI='false') = format\n",
        "\xEF\xBB\xBF# made by hand\n\n  format=name,TYPE,patch,ra,dec,i,q='0.25',"
        "referencefrequency=2e8,SpectralIndex = [-0.8] , LogarithmicSI=no\n",
        "#(Name,Type,Patch,Ra,Dec,I,Q=.25,ReferenceFrequency='200000000.0',"
        "SpectralIndex='[-0.8,0.0]',LogarithmicSI=FALSE)=FORMAT\n"};
    static const char rows[] = ", , patch1, 00:00:00, +00.00.00\n"
                               "'a, b', POINT, patch1, 01:00:00, +01:30:00, 3\n"
                               "c,,patch1,15deg,1.5deg,3,\n";
    for (size_t k = 0; k < sizeof headers / sizeof *headers; ++k) {
        char text[1024];
        snprintf(text, sizeof text, "%s%s", headers[k], rows);
        tess_source_list list = parsed(text);
        assert_int_equal(list.num_sources, 2);
        for (int s = 0; s < 2; ++s) {
            const tess_listed_source *source = &list.source[s];
            assert_true(fabs(source->ra_rad - 15 * TESS_RAD_PER_DEG) < 1e-15);
            assert_true(fabs(source->dec_rad - 1.5 * TESS_RAD_PER_DEG) < 1e-15);
            assert_true(source->flux_jy[0] == 3 && source->flux_jy[1] == 0.25);
            assert_int_equal(source->num_terms, 1);
            assert_true(list.term[source->first_term] == -0.8);
            assert_false(source->is_log);
            assert_true(source->ref_hz == 2e8);
        }
        tess_source_list_free(&list);
    }
}

/* Columns that have no meaning here are told. */
static void test_other_columns(void **state)
{
    tess_source_list list;
    char ignored[32];
    assert_int_equal(tess_source_list_parse("a.txt",
                                            "Format = Ra, Dec, I, Ishapelet, Category\n"
                                            "1deg,2deg,3,x,[1,2]\n",
                                            &list, ignored, sizeof ignored),
                     TESS_OK);
    assert_string_equal(ignored, "Ishapelet, Category");
    assert_int_equal(list.num_sources, 1);
    tess_source_list_free(&list);
}

static void test_bad_headers(void **state)
{
    refused("", "header", "without");
    refused("# only, comments\n", "header", "without");
    refused("a,b,c\n", "line 1", "no header");
    refused("\n\nFormat = Name, Ra, I\n", "line 3", "Dec");
    refused("Format = Ra, Dec, I, ra\n", "line 1", "twice");
    refused(
        "Format = Ra, Dec, I,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,"
        ",,,,,,,\n",
        "line 1", "columns");
}

static void test_bad_lines(void **state)
{
    static const char *const bad[][2] = {
        {"a,POINT,01:00:00,01.00.00,nan", "'I'"},
        {"a,POINT,01:00:00,01.00.00,inf", "'I'"},
        {"a,POINT,01:00:00,01.00.00,1e999", "'I'"},
        {"a,POINT,01:00:00,01.00.00,", "empty"},
        {"a,POINT,01:00:00,01.00.00", "empty"},
        {"a,POINT,01:00:00,01.00.00,1 Jy", "'I'"},
        {"a,POINT,,01.00.00,1", "'Ra'"},
        {"a,POINT,01:60:00,01.00.00,1", "'Ra'"},
        {"a,POINT,nan,01.00.00,1", "'Ra'"},
        {"a,POINT,83.6,01.00.00,1", "unit"},
        {"a,POINT,01:00:00,-07.43,1", "unit"},
        {"a,POINT,01:00:00,91.00.00,1", "'Dec'"},
        {"a,POINT,01:00:00,90.00.01,1", "sphere"},
        {"a,POINT,01:00:00,01.60.00,1", "'Dec'"},
        {"a,POINT,01:00:00,01.00.60,1", "'Dec'"},
        {"a,POINT,01:00:00,1.0.0.0.0,1", "'Dec'"},
        {"a,POINT,01:00:00,9999999999999999999999.0.0,1", "'Dec'"},
        {"a,POINT,361.00.00,01.00.00,1", "'Ra'"},
        {"a,SHAPELET,01:00:00,01.00.00,1", "neither POINT nor GAUSSIAN"},
        {"a,POINT,01:00:00,01.00.00,1,[1,nan]", "'SpectralIndex'"},
        {"a,POINT,01:00:00,01.00.00,1,[1,,2]", "'SpectralIndex'"},
        {"a,POINT,01:00:00,01.00.00,1,[1,2", "bracket"},
        {"a,POINT,01:00:00,01.00.00,1,[1 2]", "'SpectralIndex'"},
        {"a,POINT,01:00:00,01.00.00,1,[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
         "1,"
         "1,1,1,1,1,1,1,1]",
         "more terms"},
        {"a,POINT,01:00:00,01.00.00,1,[1],maybe", "'LogarithmicSI'"},
        {"a,POINT,01:00:00,01.00.00,1,[1],true,-1", "negative"},
        {"a,POINT,01:00:00,01.00.00,1,[1],true,0", "reference frequency"},
        {"a,GAUSSIAN,01:00:00,01.00.00,1,[],true,,-1,1,0", "negative"},
        {"a,GAUSSIAN,01:00:00,01.00.00,1,[],true,,1,nan,0", "'MinorAxis'"},
        {"a,POINT,01:00:00,01.00.00,1,[],true,,1,1,0,7", "columns"},
        {"a,POINT,01:00:00,01.00.00,\"1,[],true,,1,1,0", "'I'"}};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; ++k) {
        char text[2048];
        snprintf(text, sizeof text, "%s\ngood,POINT,00:00:00,00.00.00,1\n%s\n", HEADER,
                 bad[k][0]);
        refused(text, "line 4", bad[k][1]);
    }
    refused("Format = Ra, Dec, I, SpectralIndex\n1deg,1deg,1,[1]\n", "line 2",
            "reference frequency");
}

/* Axes of points do not count, nor terms that are zeros, which need no frequency. */
static void test_what_does_not_count(void **state)
{
    tess_source_list list =
        parsed("Format = Ra, Dec, I, SpectralIndex, Type, MajorAxis\n"
               "1deg,1deg,1,[0,0.0],POINT,77\n"
               "1deg,1deg,1,0,GAUSSIAN,0\n");
    assert_int_equal(list.num_sources, 2);
    for (int k = 0; k < 2; ++k) {
        assert_int_equal(list.source[k].num_terms, 0);
        assert_false(list.source[k].is_gaussian);
    }
    tess_source_list_free(&list);
}

/* Positions come back to half of the last digit: 1e-9 s and 1e-8 arcsec, and to what 16
 * digits hold; all else to 15 digits. */
static void test_written(void **state)
{
    enum { COUNT = 200 };
    static const double edges[][2] = {{0, 0},
                                      {TESS_TWO_PI, TESS_PI / 2},
                                      {TESS_TWO_PI * (1 - 1e-16), -TESS_PI / 2},
                                      {-1e-20, -1e-20},
                                      {-1.5, 1e-13},
                                      {TESS_TWO_PI * 59.9999999999 / 86400, -1e-9}};
    draw random = {5};
    tess_source_list list = {0}, back = {0};
    char *text = NULL;
    for (int k = 0; k < COUNT; ++k) {
        const bool edge = k < (int)(sizeof edges / sizeof *edges);
        double term[3];
        tess_listed_source source = {
            .ra_rad = edge ? edges[k][0] : draw_uniform(&random, 0, TESS_TWO_PI),
            .dec_rad = edge ? edges[k][1] : draw_uniform(&random, -1.57, 1.57),
            .flux_jy = {draw_uniform(&random, -1, 1) * pow(10, k % 20 - 10)},
            .is_gaussian = k % 3 == 1,
            .major_rad = 1e-4 * (1 + k % 3),
            .minor_rad = 1e-5,
            .pa_rad = k % 3 == 1 ? draw_uniform(&random, -3, 3) : 0,
            .is_log = k % 2,
            .num_terms = k % 4,
            .ref_hz = 1.4e9 + k,
            .scale = k % 3};
        for (int t = 0; t < 3; ++t)
            term[t] = draw_uniform(&random, -1, 1);
        assert_int_equal(tess_source_list_add(&list, &source, term), TESS_OK);
    }
    assert_int_equal(tess_source_list_text(&list, 1.4e9, &text), TESS_OK);
    assert_non_null(strstr(text, "\ns0c0,POINT,00:00:00.000000000,00.00.00.00000000,"));
    assert_non_null(
        strstr(text, "\ns1c0,GAUSSIAN,00:00:00.000000000,90.00.00.00000000,"));
    assert_non_null(
        strstr(text, "\ns2c0,POINT,00:00:00.000000000,-90.00.00.00000000,"));
    assert_int_equal(tess_source_list_parse("b.txt", text, &back, NULL, 0), TESS_OK);
    assert_int_equal(back.num_sources, COUNT);
    for (int k = 0; k < COUNT; ++k) {
        const tess_listed_source *a = &list.source[k], *b = &back.source[k];
        assert_true(fabs(remainder(a->ra_rad - b->ra_rad, TESS_TWO_PI)) <
                    0.5e-9 * TESS_TWO_PI / 86400 + 4e-15);
        assert_true(fabs(a->dec_rad - b->dec_rad) < 0.5e-8 * TESS_RAD_PER_ASEC + 1e-15);
        assert_true(fabs(a->flux_jy[0] - b->flux_jy[0]) <= 1e-14 * fabs(a->flux_jy[0]));
        assert_int_equal(a->is_gaussian, b->is_gaussian);
        if (a->is_gaussian) {
            assert_true(fabs(a->major_rad - b->major_rad) < 1e-14 * a->major_rad);
            assert_true(fabs(a->minor_rad - b->minor_rad) < 1e-14 * a->minor_rad);
            assert_true(fabs(a->pa_rad - b->pa_rad) < 1e-14 * 4);
        }
        assert_int_equal(a->num_terms, b->num_terms);
        assert_int_equal(a->is_log, b->is_log);
        assert_true(a->ref_hz == b->ref_hz);
        for (int t = 0; t < a->num_terms; ++t)
            assert_true(fabs(list.term[a->first_term + t] -
                             back.term[b->first_term + t]) < 1e-14);
    }
    tess_free(text);
    tess_source_list_free(&list);
    tess_source_list_free(&back);
}

/* A position that is projected and placed is itself. */
static void test_places(void **state)
{
    draw random = {9};
    for (int k = 0; k < 200; ++k) {
        const double ra0 = draw_uniform(&random, 0, 6.28);
        const double dec0 =
            k % 5 == 0 ? TESS_PI / 2 : draw_uniform(&random, -1.57, 1.57);
        const double l = draw_uniform(&random, -.7, .7),
                     m = draw_uniform(&random, -.7, .7);
        const double r2 = l * l + m * m;
        const double lmn1[] = {l, m, -r2 / (1 + sqrt(1 - r2))};
        double ra, dec, back[3];
        tess_sky_place(lmn1, ra0, dec0, &ra, &dec);
        assert_true(tess_sky_project(ra, dec, ra0, dec0, back));
        for (int c = 0; c < 3; ++c)
            assert_true(fabs(back[c] - lmn1[c]) < 4e-15);
    }
}

/* ---- as a sky ---- */

static tess_comm *comm;

static const char *file_of(const char *text)
{
    static const char path[] = "source_list_test.fits"; /* its name does not matter */
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return path;
}

static void test_told_by_first_line(void **state)
{
    static const struct {
        const char *text;
        bool is;
    } cases[] = {{"Format = Ra\n", true},
                 {"\n# x\nformat=Ra", true},
                 {"#(Ra,Dec)=format", true},
                 {"ra,dec,flux_jy\nFormat = Ra\n", false},
                 {"# (Ra, Dec)\n", false},
                 {"formation = 3\n", false},
                 {"SIMPLE  =                    T", false},
                 {"", false}};
    bool is;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        const char *path = file_of(cases[k].text);
        assert_int_equal(tess_source_list_is(comm, path, &is), TESS_OK);
        assert_int_equal(is, cases[k].is);
        unlink(path);
    }
    assert_int_equal(tess_source_list_is(comm, "no such file", &is), TESS_OK);
    assert_false(is);
    assert_int_equal(tess_source_list_is(comm, ".", &is), TESS_OK);
    assert_false(is);
}

static bool near(double value, double expected)
{
    return fabs(value - expected) <= 1e-13 * fabs(expected);
}

/* Fluxes by the definitions of DP3, Stokes parameters included. */
static void test_spectra(void **state)
{
    tess_sky sky = {0};
    double flux[4];
    const char *path =
        file_of("Format = Name, Type, Ra, Dec, I, Q, SpectralIndex, LogarithmicSI, "
                "ReferenceFrequency='1e8'\n"
                "a,POINT,1deg,2deg,2,.5,[-0.7,0.2],true\n"
                "b,POINT,1deg,2deg,2,.5,[-0.7,0.2],false\n"
                "c,POINT,1deg,2deg,0,.5,[-0.7,0.2],false\n"
                "d,POINT,1deg,2deg,2,.5,[],false\n"
                "e,POINT,1deg,2deg,2,.5,[-0.7],true,2e8\n");
    assert_int_equal(tess_sky_read(comm, path, 0, 0, 1.4e9, &sky), TESS_OK);
    assert_int_equal(sky.num_sources, 5);
    const double ratio = 1.3, x = ratio - 1, y = log10(ratio);
    tess_sky_flux(&sky, &sky.source[0], 1.3e8, flux);
    assert_true(near(flux[0], 2 * pow(ratio, -0.7 + 0.2 * y)));
    assert_true(near(flux[1], 0.5 * pow(ratio, -0.7 + 0.2 * y)));
    tess_sky_flux(&sky, &sky.source[1], 1.3e8, flux);
    assert_true(near(flux[0], 2 - 0.7 * x + 0.2 * x * x));
    assert_true(near(flux[1] / flux[0], 0.25));
    tess_sky_flux(&sky, &sky.source[2], 1.3e8, flux);
    assert_true(near(flux[0], -0.7 * x + 0.2 * x * x));
    assert_true(near(flux[1], 0.5));
    tess_sky_flux(&sky, &sky.source[3], 1.3e8, flux);
    assert_true(near(flux[0], 2) && near(flux[1], 0.5));
    tess_sky_flux(&sky, &sky.source[4], 1.3e8, flux);
    assert_true(near(flux[0], 2 * pow(0.65, -0.7)));
    tess_sky_free(&sky);
    unlink(path);
}

/* The power series of a spectrum adds up to it nearby, and the mean over a band is that
 * of its values. */
static void test_series(void **state)
{
    static const double fluxes[] = {2, .5, 0, 0}, term[] = {-0.7, 0.2, 0.3};
    enum { TERMS = 12, STEPS = 20000 };
    for (int is_log = 0; is_log < 2; ++is_log) {
        const tess_source_spectrum spectrum = {fluxes, term, 3, is_log == 1, 1e8};
        double series[TERMS], at[4], mean[4], sum[2] = {0};
        for (int s = 0; s < 2; ++s) {
            double value = 0;
            tess_source_taylor(&spectrum, 1.3e8, s, TERMS, series);
            for (int k = TERMS - 1; k >= 0; --k)
                value = series[k] + 0.05 * value;
            tess_source_flux(&spectrum, 1.05 * 1.3e8, at);
            assert_true(near(value, at[s]));
        }
        for (int k = 0; k < STEPS; ++k) {
            tess_source_flux(&spectrum, 1.3e8 + 4e7 * ((k + .5) / STEPS - .5), at);
            sum[0] += at[0] / STEPS;
            sum[1] += at[1] / STEPS;
        }
        tess_source_band_flux(&spectrum, 1.3e8, 4e7, mean);
        assert_true(fabs(mean[0] / sum[0] - 1) < 1e-8);
        assert_true(fabs(mean[1] / sum[1] - 1) < 1e-8);
    }
}

static void test_bad_skies(void **state)
{
    static const char *const bad[][2] = {
        {"Format = Ra, Dec, I\n", "without sources"},
        {"Format = Ra, Dec, I\n1deg,1deg,1\n181deg,0deg,1\n", "line 3"},
        {"Format = Ra, Dec, I\n1deg,1deg,x\n", "line 2"}};
    tess_sky sky = {0};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; ++k) {
        const char *path = file_of(bad[k][0]);
        assert_int_equal(tess_sky_read(comm, path, 0, 0, 1.4e9, &sky), TESS_ERR_INPUT);
        assert_non_null(strstr(tess_error_message(), bad[k][1]));
        tess_error_clear();
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_columns),
                                       cmocka_unit_test(test_headers),
                                       cmocka_unit_test(test_other_columns),
                                       cmocka_unit_test(test_bad_headers),
                                       cmocka_unit_test(test_bad_lines),
                                       cmocka_unit_test(test_what_does_not_count),
                                       cmocka_unit_test(test_written),
                                       cmocka_unit_test(test_places),
                                       cmocka_unit_test(test_told_by_first_line),
                                       cmocka_unit_test(test_spectra),
                                       cmocka_unit_test(test_series),
                                       cmocka_unit_test(test_bad_skies)};
    if (tess_comm_self(&comm) != TESS_OK) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tess_comm_free(comm);
    return failed;
}
