/* The error record, exit statuses and the cleanup pattern. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tess_mem.h"
#include "tess_status.h"

static int clear(void **state)
{
    tess_error_clear();
    return 0;
}

/* README's table */
static void exit_statuses(void **state)
{
    assert_int_equal(tess_status_exit(TESS_OK), 0);
    assert_int_equal(tess_status_exit(TESS_ERR_INTERNAL), 1);
    assert_int_equal(tess_status_exit(TESS_ERR_USAGE), 2);
    assert_int_equal(tess_status_exit(TESS_ERR_INPUT), 3);
    assert_int_equal(tess_status_exit(TESS_ERR_IO), 3);
    assert_int_equal(tess_status_exit(TESS_ERR_ALLOC), 4);
    assert_int_equal(tess_status_exit(TESS_ERR_RESOURCE), 4);
    assert_int_equal(tess_status_exit(TESS_ERR_DIFFERENT), 5);
    assert_int_equal(tess_status_exit((tess_status)1000), 1);
}

static void every_status_has_a_text(void **state)
{
#define HAS_TEXT(name, exit_status, text)                                              \
    assert_string_equal(tess_status_text(name), text);
    TESS_STATUS_LIST(HAS_TEXT)
#undef HAS_TEXT
    assert_non_null(tess_status_text((tess_status)1000));
}

static tess_status fail_deep(int *cleaned)
{
    tess_status status = TESS_OK;
    TESS_FAIL(TESS_ERR_INPUT, "%s: %d rows", "a.uvfits", 0);
cleanup:
    ++*cleaned;
    return status;
}

static tess_status pass_up(int *cleaned)
{
    tess_status status = TESS_OK;
    TESS_TRY(fail_deep(cleaned));
    *cleaned = -100; /* not reached */
cleanup:
    ++*cleaned;
    return status;
}

static void failure_cleans_up_and_keeps_its_message(void **state)
{
    int cleaned = 0;
    assert_int_equal(pass_up(&cleaned), TESS_ERR_INPUT);
    assert_int_equal(cleaned, 2);
    assert_string_equal(tess_error_message(), "a.uvfits: 0 rows");
    assert_non_null(strstr(tess_error_origin(), "test_status.c"));
    assert_non_null(strstr(tess_error_origin(), "fail_deep"));
}

static void first_message_wins(void **state)
{
    tess_error_record(TESS_ERR_IO, "f.c", 1, "f", "cause");
    tess_error_record(TESS_ERR_INTERNAL, "g.c", 2, "g", "consequence");
    assert_string_equal(tess_error_message(), "cause");
    tess_error_clear();
    assert_string_equal(tess_error_message(), "");
    assert_string_equal(tess_error_origin(), "");
}

static void message_is_one_line_of_bounded_length(void **state)
{
    char *text = malloc(5000);
    assert_non_null(text);
    memset(text, 'x', 4999);
    text[4999] = '\0';
    text[10] = '\n';
    text[20] = '\r';
    tess_error_record(TESS_ERR_IO, "f.c", 1, "f", "%s", text);
    assert_null(strpbrk(tess_error_message(), "\r\n"));
    assert_in_range(strlen(tess_error_message()), 500, 4999);
    free(text);
}

static void allocation_refuses_overflow(void **state)
{
    assert_null(tess_alloc(INT64_MAX, 16));
    assert_null(tess_alloc_zero(-1, 8));
    void *empty = tess_alloc(0, 8);
    assert_non_null(empty);
    tess_free(empty);
    tess_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(exit_statuses, clear),
        cmocka_unit_test_setup(every_status_has_a_text, clear),
        cmocka_unit_test_setup(failure_cleans_up_and_keeps_its_message, clear),
        cmocka_unit_test_setup(first_message_wins, clear),
        cmocka_unit_test_setup(message_is_one_line_of_bounded_length, clear),
        cmocka_unit_test_setup(allocation_refuses_overflow, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
