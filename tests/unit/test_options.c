/* Values of options: every valid form, and what is refused. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "option_rules.h"
#include "options.h"
#include "tess_const.h"

/* Relative difference of a few roundings. */
static const double ROUNDING = 32 * DBL_EPSILON;

static int clear(void **state)
{
    tess_error_clear();
    return 0;
}

static void assert_close(double value, double expected)
{
    if (!(fabs(value - expected) <= ROUNDING * fabs(expected)))
        fail_msg("%.17g is not %.17g", value, expected);
}

/* The status is TESS_ERR_USAGE and the message quotes the text. */
static void assert_refused(tess_status status, const char *text)
{
    if (status != TESS_ERR_USAGE) fail_msg("'%s' was accepted", text);
    if (!strstr(tess_error_message(), text)) fail_msg("'%s' is not quoted", text);
    tess_error_clear();
}

typedef tess_status (*parser)(const char *text, double *value);

typedef struct example {
    const char *text;
    double value;
} example;

static void check(parser parse, const example *examples, const char *const *refused)
{
    for (; examples->text; ++examples) {
        double value = -99;
        if (parse(examples->text, &value) != TESS_OK)
            fail_msg("'%s': %s", examples->text, tess_error_message());
        assert_close(value, examples->value);
    }
    for (; *refused; ++refused) {
        double value = -99;
        assert_refused(parse(*refused, &value), *refused);
        assert_true(value == -99); /* untouched */
    }
}

static void angles(void **state)
{
    const example good[] = {{"1.5asec", 1.5 * TESS_RAD_PER_ASEC},
                            {"1.5arcsec", 1.5 * TESS_RAD_PER_ASEC},
                            {"2amin", 120 * TESS_RAD_PER_ASEC},
                            {"2arcmin", 120 * TESS_RAD_PER_ASEC},
                            {"1mas", 1e-3 * TESS_RAD_PER_ASEC},
                            {"1uas", 1e-6 * TESS_RAD_PER_ASEC},
                            {"0.000001asec", 1e-6 * TESS_RAD_PER_ASEC},
                            {"1e-6asec", 1e-6 * TESS_RAD_PER_ASEC},
                            {"-90deg", -TESS_PI / 2},
                            {".5rad", 0.5},
                            {"0deg", 0},
                            {"0.33\"", 0.33 * TESS_RAD_PER_ASEC},
                            {"2'", 120 * TESS_RAD_PER_ASEC},
                            {"0.33 arcsec", 0.33 * TESS_RAD_PER_ASEC},
                            {"0.33\u2033", 0.33 * TESS_RAD_PER_ASEC},
                            {"0.33\u2032", 0.33 * 60 * TESS_RAD_PER_ASEC},
                            {NULL, 0}};
    const char *const bad[] = {"",         "1.5",    "asec",     "1.5 ",
                               "1.5asecs", "nandeg", "infrad",   "0x10deg",
                               " 1deg",    "1deg ",  "1e999rad", NULL};
    check(tess_parse_angle, good, bad);
    const example scales[] = {{"1deg", TESS_RAD_PER_DEG}, {NULL, 0}};
    const char *const no_scale[] = {"0asec", "-1asec", "-0deg", "1", "x", NULL};
    check(tess_parse_scale, scales, no_scale);
}

static void frequencies_and_durations(void **state)
{
    const example hz[] = {{"1.4GHz", 1.4e9}, {"150MHz", 150e6}, {"10kHz", 1e4},
                          {"5Hz", 5},        {"1e9", 1e9},      {NULL, 0}};
    const char *const no_hz[] = {"0", "-1GHz", "GHz", "1ghz", "1.4 ", "", NULL};
    check(tess_parse_frequency, hz, no_hz);
    const example s[] = {{"30", 30},         {"30s", 30},     {"10min", 600},
                         {"8h", 28800},      {"1h30m", 5400}, {"0.5d", 43200},
                         {"1h0.5s", 3600.5}, {"2m", 120},     {NULL, 0}};
    const char *const no_s[] = {"0",      "-8h", "h",  "1h30", "8 h",
                                "8hours", "",    "1x", NULL};
    check(tess_parse_duration, s, no_s);
}

static void right_ascensions(void **state)
{
    const double h = 15 * TESS_RAD_PER_DEG;
    const example good[] = {{"12:30:00", 12.5 * h},
                            {"12h30m00s", 12.5 * h},
                            {"12:30", 12.5 * h},
                            {"12h", 12 * h},
                            {"187.5deg", 12.5 * h},
                            {"187.5", 12.5 * h},
                            {"0", 0},
                            {"-15", 23 * h},
                            {"-1:30:00", 22.5 * h},
                            {"0.5rad", 0.5},
                            {"375", h},
                            {NULL, 0}};
    const char *const bad[] = {"",          "12:60:00",   "12:30:61", "12:30:00:00",
                               "x",         "12:",        "12h30d",   "1.5:30",
                               "12:-30:00", "12h30m00s5", NULL};
    check(tess_parse_ra, good, bad);
}

static void declinations(void **state)
{
    const double d = TESS_RAD_PER_DEG;
    const example good[] = {
        {"-30:30:00", -30.5 * d}, {"+12d15m00s", 12.25 * d}, {"-0:30:00", -0.5 * d},
        {"-00d30m", -0.5 * d},    {"-30.5deg", -30.5 * d},   {"-30.5", -30.5 * d},
        {"90deg", 90 * d},        {"-90:00:00", -90 * d},    {NULL, 0}};
    const char *const bad[] = {"", "91deg", "-90:00:01", "12h30m", "x", "+-5", NULL};
    check(tess_parse_dec, good, bad);
    double ra = 0, dec = 0;
    assert_int_equal(tess_parse_radec("12:30:00,-30:30:00", &ra, &dec), TESS_OK);
    assert_close(ra, 187.5 * d);
    assert_close(dec, -30.5 * d);
    assert_refused(tess_parse_radec("12:30:00", &ra, &dec), "12:30:00");
    assert_refused(tess_parse_radec("12:30:00,", &ra, &dec), "''");
    assert_refused(tess_parse_radec("", &ra, &dec), "''");
}

static void sizes(void **state)
{
    int64_t nx = 0, ny = 0;
    assert_int_equal(tess_parse_size("2048", &nx, &ny), TESS_OK);
    assert_true(nx == 2048 && ny == 2048);
    assert_int_equal(tess_parse_size("6 9", &nx, &ny), TESS_OK);
    assert_true(nx == 6 && ny == 9);
    assert_int_equal(tess_parse_size("5, 7", &nx, &ny), TESS_OK);
    assert_true(nx == 5 && ny == 7);
    assert_int_equal(tess_parse_size("5,7", &nx, &ny), TESS_OK);
    assert_true(nx == 5 && ny == 7);
    static const char *const bad[] = {
        "0",          "0,5", "5,0", "-1", "5,", ",5",
        "5,6,7",      "1e3", "5.5", "",   "x",  "99999999999999999999",
        "3000000000", NULL};
    for (int k = 0; bad[k]; ++k)
        assert_refused(tess_parse_size(bad[k], &nx, &ny), bad[k]);
    assert_true(nx == 5 && ny == 7);
}

static void memory(void **state)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {{"8GB", 8000000000}, {"8G", 8000000000},    {"8GiB", 8LL << 30},
                {"500M", 500000000}, {"1.5TiB", 3LL << 39}, {"64kB", 64000},
                {"3MiB", 3LL << 20}, {"3Mi", 3LL << 20},    {"16KiB", 16384},
                {"100B", 100}};
    for (size_t k = 0; k < sizeof good / sizeof *good; ++k) {
        int64_t bytes = 0;
        assert_int_equal(tess_parse_memory(good[k].text, &bytes), TESS_OK);
        assert_true(bytes == good[k].bytes);
    }
    static const char *const bad[] = {"8",   "0GB", "-1GB",   "GB", "8 G B",
                                      "8gb", "",    "1e30TB", NULL};
    int64_t bytes = 1;
    for (int k = 0; bad[k]; ++k)
        assert_refused(tess_parse_memory(bad[k], &bytes), bad[k]);
    assert_true(bytes == 1);
}

static void integers_and_numbers(void **state)
{
    int64_t n = 0;
    double x = 0;
    assert_int_equal(tess_parse_integer("12", 0, 12, &n), TESS_OK);
    assert_true(n == 12);
    assert_refused(tess_parse_integer("13", 0, 12, &n), "13");
    assert_refused(tess_parse_integer("-1", 0, 12, &n), "-1");
    assert_refused(tess_parse_integer("1.0", 0, 12, &n), "1.0");
    assert_refused(tess_parse_integer("", 0, 12, &n), "''");
    assert_int_equal(tess_parse_number("1e-4", 1e-12, 1e-2, &x), TESS_OK);
    assert_close(x, 1e-4);
    assert_refused(tess_parse_number("0.1", 1e-12, 1e-2, &x), "0.1");
    assert_refused(tess_parse_number("1e-13", 1e-12, 1e-2, &x), "1e-13");
    assert_refused(tess_parse_number("0", DBL_MIN, 1, &x), "more than 0");
    assert_refused(tess_parse_number("nan", -DBL_MAX, DBL_MAX, &x), "nan");
    assert_refused(tess_parse_number("1e999", -DBL_MAX, DBL_MAX, &x), "1e999");
    assert_int_equal(tess_parse_flux("1.5mJy/beam", &x), TESS_OK);
    assert_close(x, 1.5e-3);
    assert_int_equal(tess_parse_flux("0.2", &x), TESS_OK);
    assert_close(x, 0.2);
    assert_refused(tess_parse_flux("1 Jy/pixel", &x), "1 Jy/pixel");
}

static void weights(void **state)
{
    tess_weighting w = TESS_NATURAL;
    double robust = -99;
    assert_int_equal(tess_parse_weight("uniform", &w, &robust), TESS_OK);
    assert_int_equal(w, TESS_UNIFORM);
    assert_int_equal(tess_parse_weight("briggs:-0.5", &w, &robust), TESS_OK);
    assert_int_equal(w, TESS_BRIGGS);
    assert_close(robust, -0.5);
    assert_int_equal(tess_parse_weight("briggs", &w, &robust), TESS_OK);
    assert_true(robust == 0);
    assert_int_equal(tess_parse_weight("natural", &w, &robust), TESS_OK);
    assert_int_equal(w, TESS_NATURAL);
    static const char *const same[] = {"briggs 0.5", "robust:0.5", "Briggs=0.5",
                                       "robust  0.5", NULL};
    for (int k = 0; same[k]; ++k) {
        robust = -99;
        assert_int_equal(tess_parse_weight(same[k], &w, &robust), TESS_OK);
        assert_int_equal(w, TESS_BRIGGS);
        assert_close(robust, 0.5);
    }
    assert_int_equal(tess_parse_weight("Uniform", &w, &robust), TESS_OK);
    assert_int_equal(w, TESS_UNIFORM);
    assert_refused(tess_parse_weight("0.5", &w, &robust), "did you mean briggs:0.5?");
    assert_refused(tess_parse_weight("briggs:x", &w, &robust), "x");
    assert_refused(tess_parse_weight("briggs:", &w, &robust), "briggs:");
    assert_refused(tess_parse_weight("robustly", &w, &robust), "robustly");
    assert_refused(tess_parse_weight("briggsy", &w, &robust), "briggsy");
}

static void density(void **state)
{
    bool first = false;
    assert_int_equal(tess_parse_density("first", &first), TESS_OK);
    assert_true(first);
    assert_int_equal(tess_parse_density("own", &first), TESS_OK);
    assert_false(first);
    assert_refused(tess_parse_density("firstly", &first), "firstly");
}

static void stokes(void **state)
{
    tess_corr pol[TESS_MAX_POL];
    int count = 0;
    assert_int_equal(tess_parse_stokes("I", pol, &count), TESS_OK);
    assert_true(count == 1 && pol[0] == 1);
    assert_int_equal(tess_parse_stokes("IQUV", pol, &count), TESS_OK);
    assert_true(count == 4 && pol[3] == 4);
    assert_int_equal(tess_parse_stokes("XX,YY", pol, &count), TESS_OK);
    assert_true(count == 2 && pol[0] == -5 && pol[1] == -6);
    assert_int_equal(tess_parse_stokes("I,V,RL", pol, &count), TESS_OK);
    assert_true(count == 3 && pol[1] == 4 && pol[2] == -3);
    assert_int_equal(tess_parse_stokes("iquv", pol, &count), TESS_OK);
    assert_true(count == 4 && pol[3] == 4);
    assert_int_equal(tess_parse_stokes("i,V,rl", pol, &count), TESS_OK);
    assert_true(count == 3 && pol[1] == 4 && pol[2] == -3);
    assert_int_equal(tess_parse_stokes("xx, yy", pol, &count), TESS_OK);
    assert_true(count == 2 && pol[0] == -5 && pol[1] == -6);
    assert_int_equal(tess_parse_stokes("I,V,RL", pol, &count), TESS_OK);
    static const char *const bad[] = {
        "",  "X", "II", "I,I", "I,", ",I", "XXYY", "IQX", "I,,Q", "XX,YYYYYYYYYYYYYYYY",
        NULL};
    for (int k = 0; bad[k]; ++k)
        assert_refused(tess_parse_stokes(bad[k], pol, &count), bad[k]);
    assert_int_equal(count, 3);
}

static void ranges(void **state)
{
    int64_t first = -1, end = -1;
    assert_int_equal(tess_parse_range("2:5", &first, &end), TESS_OK);
    assert_true(first == 2 && end == 5);
    assert_int_equal(tess_parse_range("2:", &first, &end), TESS_OK);
    assert_true(first == 2 && end == 0);
    assert_int_equal(tess_parse_range(":5", &first, &end), TESS_OK);
    assert_true(first == 0 && end == 5);
    static const char *const bad[] = {"",     ":",     "5",   "5:5", "5:2",
                                      "-1:5", "1:2:3", "a:b", "0:0", NULL};
    for (int k = 0; bad[k]; ++k)
        assert_refused(tess_parse_range(bad[k], &first, &end), bad[k]);
    double min = -1, max = -1;
    assert_int_equal(tess_parse_uvrange("0.5k:2M", &min, &max), TESS_OK);
    assert_close(min, 500);
    assert_close(max, 2e6);
    assert_int_equal(tess_parse_uvrange("100:", &min, &max), TESS_OK);
    assert_true(min == 100 && max == 0);
    assert_refused(tess_parse_uvrange("200:100", &min, &max), "200:100");
    assert_refused(tess_parse_uvrange("-1:100", &min, &max), "-1:100");
    assert_refused(tess_parse_uvrange("1G:2G", &min, &max), "1G:2G");
}

static void lists(void **state)
{
    int values[4] = {-1, -1, -1, -1}, count = 0;
    assert_int_equal(tess_parse_list("0,2-4", 4, values, &count), TESS_OK);
    assert_true(count == 4 && values[0] == 0 && values[1] == 2 && values[3] == 4);
    static const char *const bad[] = {"",          "1,",  ",1",          "a",
                                      "1,1",       "3-1", "-1",          "0-4",
                                      "0,1,2,3,4", "1-",  "99999999999", NULL};
    for (int k = 0; bad[k]; ++k)
        assert_refused(tess_parse_list(bad[k], 4, values, &count), bad[k]);
    assert_int_equal(count, 4);
}

/* A table of rules finds an option by its key, sets its value and notes that it was
 * given; a value that is not valid leaves the input as it was. */
static void rules(void **state)
{
    typedef struct target {
        int number, word;
        bool flag, given;
        const char *text;
    } target;
    target input = {.number = 7};
    enum { NUMBER = 1, WORD, FLAG, TEXT, OTHER };
    static const char *const words[] = {"none", "first", "second", NULL};
    const tess_option_rule table[] = {
        {NUMBER, tess_take_int, .offset = 0, .min = 2, .max = 9,
         .given = offsetof(target, given)},
        {WORD, tess_take_word, .offset = offsetof(target, word), .min = 1,
         .words = words},
        {FLAG, tess_take_flag, .offset = offsetof(target, flag)},
        {TEXT, tess_take_text, .offset = offsetof(target, text)},
        {0},
    };
    tess_status status = TESS_OK;
    assert_false(tess_option_take(table, OTHER, "1", &input, &status));
    assert_false(tess_option_take(table, 0, "1", &input, &status));
    assert_true(tess_option_take(table, NUMBER, "10", &input, &status));
    assert_refused(status, "10");
    assert_int_equal(input.number, 7);
    assert_false(input.given);
    assert_true(tess_option_take(table, NUMBER, "9", &input, &status));
    assert_int_equal(status, TESS_OK);
    assert_int_equal(input.number, 9);
    assert_true(input.given && !input.flag);
    assert_true(tess_option_take(table, WORD, "second", &input, &status));
    assert_int_equal(status, TESS_OK);
    assert_int_equal(input.word, 2);
    assert_true(tess_option_take(table, WORD, "none", &input, &status));
    assert_non_null(strstr(tess_error_message(), "write first or second"));
    assert_refused(status, "none");
    assert_int_equal(input.word, 2);
    assert_true(tess_option_take(table, FLAG, NULL, &input, &status));
    assert_true(input.flag);
    assert_true(tess_option_take(table, TEXT, "name", &input, &status));
    assert_string_equal(input.text, "name");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(angles, clear),
        cmocka_unit_test_setup(frequencies_and_durations, clear),
        cmocka_unit_test_setup(right_ascensions, clear),
        cmocka_unit_test_setup(declinations, clear),
        cmocka_unit_test_setup(sizes, clear),
        cmocka_unit_test_setup(memory, clear),
        cmocka_unit_test_setup(integers_and_numbers, clear),
        cmocka_unit_test_setup(weights, clear),
        cmocka_unit_test_setup(density, clear),
        cmocka_unit_test_setup(stokes, clear),
        cmocka_unit_test_setup(ranges, clear),
        cmocka_unit_test_setup(lists, clear),
        cmocka_unit_test_setup(rules, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
