/* Antennas and times that are chosen without casacore. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "vis_pick.h"

enum { NUM = 4 };

static tess_vis_antenna antennas[NUM] = {{"A1", {0}, 0}, {"B", {0}, 0}, {"7", {0}, 0}};
static const tess_vis_meta meta = {
    .path = "x.uvfits", .num_antennas = NUM, .antenna = antennas};
static const double noon = (60310 + 0.5) * 86400; /* of 2024-01-01 */

/* The baselines that an expression chooses, as "01 23 ": pairs of numbers. */
static void assert_antennas(const char *text, const char *expected)
{
    const tess_vis_expressions by = {.antenna = text};
    vis_pick *pick = NULL;
    char found[64] = "";
    snprintf(antennas[3].name, sizeof antennas[3].name, "D");
    assert_int_equal(vis_pick_create(&by, &meta, noon, &pick), TESS_OK);
    for (int a = 0; a < NUM; ++a)
        for (int b = a; b < NUM; ++b)
            if (vis_pick_has(pick, b, a, noon))
                snprintf(found + strlen(found), sizeof found - strlen(found), "%d%d ",
                         a, b);
    assert_string_equal(found, expected);
    assert_false(vis_pick_has(pick, -1, 0, noon) || vis_pick_has(pick, 0, 9, noon));
    vis_pick_destroy(pick);
}

static void assert_refused(const tess_vis_expressions *by, const char *words)
{
    vis_pick *pick = NULL;
    assert_int_equal(vis_pick_create(by, &meta, noon, &pick), TESS_ERR_USAGE);
    assert_non_null(strstr(tess_error_message(), words));
    assert_null(pick);
    tess_error_clear();
}

static void test_antennas(void **state)
{
    assert_antennas("A1", "01 02 03 ");
    assert_antennas("A1,B", "01 02 03 12 13 ");
    assert_antennas("A1, B&", "01 ");
    assert_antennas("A1&B,D", "01 03 ");
    assert_antennas("A1&B; 7&D", "01 23 ");
    assert_antennas("!A1", "12 13 23 ");
    assert_antennas("!A1;!D&B", "12 23 ");
    assert_antennas("*&", "01 02 03 12 13 23 ");
    assert_antennas("7", "02 12 23 "); /* a name, not a number */
    assert_antennas("0&3", "03 ");
    assert_refused(&(tess_vis_expressions){.antenna = "Z"}, "no 'Z'");
    assert_refused(&(tess_vis_expressions){.antenna = "4"}, "no '4'");
    assert_refused(&(tess_vis_expressions){.antenna = ""}, "no ''");
    assert_refused(&(tess_vis_expressions){.antenna = "A1&&B"}, "no '&B'");
}

static bool has_time(const char *text, double after_noon_s)
{
    const tess_vis_expressions by = {.time = text};
    vis_pick *pick = NULL;
    assert_int_equal(vis_pick_create(&by, &meta, noon, &pick), TESS_OK);
    const bool has = vis_pick_has(pick, 0, 1, noon + after_noon_s);
    vis_pick_destroy(pick);
    return has;
}

static void test_times(void **state)
{
    assert_true(has_time("11:59~12:01:30.5", 90.4));
    assert_false(has_time("11:59~12:01:30.5", 90.6));
    assert_true(has_time("2024/01/01/12:00:00~2024/01/02", 3600));
    assert_false(has_time("2024/01/02~2024/01/03", 3600));
    assert_true(has_time(" > 12:30 ", 1801) && !has_time("> 12:30", 1799));
    assert_true(has_time("<2024-01-01T12:30:00", 0));
    static const char *const wrong[] = {"12:00",          "x~y",      "12:99~13:00",
                                        "2024/13/01~",    "~",        ">",
                                        "12:00~13:00abc", "12:00~-5", ""};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; ++k)
        assert_refused(&(tess_vis_expressions){.time = wrong[k]}, "--timerange");
}

static void test_kinds(void **state)
{
    vis_pick *pick = (vis_pick *)antennas;
    assert_int_equal(vis_pick_create(&(tess_vis_expressions){0}, &meta, noon, &pick),
                     TESS_OK);
    assert_null(pick);
    assert_refused(&(tess_vis_expressions){.scan = "1"}, "--scan is for");
    assert_refused(&(tess_vis_expressions){.taql = "1", .antenna = "A1"},
                   "--select-taql is for");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_antennas),
                                       cmocka_unit_test(test_times),
                                       cmocka_unit_test(test_kinds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
