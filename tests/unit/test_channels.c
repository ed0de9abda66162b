/* Lists of channels: what they name, and what is not a list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tess_channels.h"

/* Whether channel `number` of a window is in the list; its centre is 1420 MHz and a MHz
 * for each number, and it is a MHz wide. */
static bool has(const char *text, int64_t window, int64_t number)
{
    tess_channel_list list;
    const tess_channel channel = {window, number, 1.42e9 + 1e6 * (double)number, 1e6};
    assert_int_equal(tess_parse_channels(text, &list), TESS_OK);
    return tess_channels_have(&list, &channel, NULL);
}

static void expect(const char *text, int64_t window, const char *numbers)
{
    char found[11] = "";
    for (int64_t k = 0; k < 10; ++k)
        found[k] = has(text, window, k) ? '1' : '0';
    assert_string_equal(found, numbers);
}

static void test_channels(void **state)
{
    (void)state;
    expect("none", 0, "0000000000");
    expect("2~4;7", 5, "0011100100");
    expect("2-4,7", 5, "0011100100");
    expect("0:2~4;7,1:9", 0, "0011100100");
    expect("0:2~4;7,1:9", 1, "0000000001");
    expect("0:2~4;7,1:9", 2, "0000000000");
    expect("1~3:0", 3, "1000000000");
    expect("1~3:0", 4, "0000000000");
    expect("*:8", 63, "0000000010");
    /* channels reach half a MHz to both sides, and their ends alone do not count */
    expect("1421.6~1423.4MHz", 0, "0011000000");
    expect("1.4216GHz~1423.6MHz", 0, "0011100000");
    expect("1421.5~1422.5 MHz", 0, "0010000000");
    expect("2:1425.1MHz", 2, "0000010000");
    expect("2:1425.1MHz;0", 2, "1000010000");
}

static void test_no_lists(void **state)
{
    (void)state;
    static const char *const text[] = {"",          ",",
                                       "5~",        "~5",
                                       "8~5",       "0:",
                                       "0:1,2",     "2,0:1",
                                       "1;",        "a",
                                       "1.5",       "-1",
                                       "0:1:2",     "1.4~1.5",
                                       "2~1MHz",    "1421MHz~2",
                                       "1~2~3",     "x:1",
                                       "1e3",       "99999999999",
                                       "0:1,",      "none,1",
                                       "1420~MHz~", "0;;1",
                                       "*",         "1420.1~1420.9furlongs"};
    tess_channel_list list;
    for (size_t k = 0; k < sizeof text / sizeof *text; ++k) {
        assert_int_equal(tess_parse_channels(text[k], &list), TESS_ERR_USAGE);
        assert_non_null(strstr(tess_error_message(), "not a list of channels"));
        tess_error_clear();
    }
}

/* As many spans as there is room for, and one more. */
static void test_many(void **state)
{
    (void)state;
    char text[8 * (TESS_MAX_CHANNEL_SPANS + 1)] = "";
    tess_channel_list list;
    for (int k = 0; k <= TESS_MAX_CHANNEL_SPANS; ++k) {
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", k ? "," : "",
                 k);
        if (k + 2 < TESS_MAX_CHANNEL_SPANS) continue;
        assert_int_equal(tess_parse_channels(text, &list),
                         k < TESS_MAX_CHANNEL_SPANS ? TESS_OK : TESS_ERR_USAGE);
        tess_error_clear();
    }
}

static void test_words(void **state)
{
    (void)state;
    tess_channel_list list;
    char word[128];
    static const char *const wanted[] = {"channels 2~4 in spectral window 1",
                                         "channel 7 in spectral window 1"};
    assert_int_equal(tess_parse_channels("1:2~4;7", &list), TESS_OK);
    for (int k = 0; k < 2; ++k) {
        tess_channel_span_text(&list.span[k], word, sizeof word);
        assert_string_equal(word, wanted[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_channels),
        cmocka_unit_test(test_no_lists),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
