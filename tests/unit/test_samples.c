/* Room for prepared visibilities. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tess_samples.h"

static void test_reserve(void **state)
{
    for (int is_double = 0; is_double < 2; ++is_double) {
        tess_samples samples = {.is_double = is_double, .num_pol = 3, .num_weight = 2};
        assert_int_equal(tess_samples_vis_bytes(&samples), is_double ? 64 : 32);
        for (int64_t rows = 1; rows < 500; rows += 7) {
            const int64_t row = samples.num_rows, vis = 5 * rows;
            assert_int_equal(tess_samples_reserve(&samples, rows, vis), TESS_OK);
            assert_true(samples.capacity_rows >= rows && samples.capacity_vis >= vis);
            samples.uvw_m[3 * row] = (double)row;
            samples.vis_first[row] = 5 * row;
            ((char *)samples.vis)[vis * (is_double ? 48 : 24) - 1] = 1;
            ((char *)samples.weight)[vis * (is_double ? 16 : 8) - 1] = 1;
            ++samples.num_rows;
        }
        for (int64_t row = 0; row < samples.num_rows; ++row) {
            assert_true(samples.uvw_m[3 * row] == (double)row);
            assert_int_equal(samples.vis_first[row], 5 * row);
        }
        tess_samples_free(&samples);
        assert_null(samples.vis);
        assert_int_equal(samples.capacity_rows, 0);
        tess_samples_free(&samples); /* twice is fine */
    }
}

static void test_too_many(void **state)
{
    tess_samples samples = {.is_double = true, .num_pol = 1, .num_weight = 1};
    assert_int_equal(tess_samples_reserve(&samples, 4, 4), TESS_OK);
    ((double *)samples.vis)[0] = 42;
    tess_error_clear();
    assert_int_equal(tess_samples_reserve(&samples, 4, INT64_MAX / 2), TESS_ERR_ALLOC);
    assert_true(tess_error_message()[0] != '\0');
    assert_true(((double *)samples.vis)[0] == 42);
    assert_int_equal(tess_samples_reserve(&samples, 8, 8), TESS_OK);
    tess_samples_free(&samples);
    tess_error_clear();
}

/* Runs number rows in 32 bits: one row more is refused before memory is asked for, and
 * what to do is said. */
static void test_too_many_rows(void **state)
{
    tess_samples samples = {.num_pol = 1, .num_weight = 1};
    assert_int_equal(tess_samples_check_rows(INT32_MAX), TESS_OK);
    for (int k = 0; k < 2; ++k) {
        tess_error_clear();
        assert_int_equal(
            tess_samples_reserve(&samples, k ? INT64_MAX : INT64_C(1) << 31, 4),
            TESS_ERR_RESOURCE);
        assert_int_equal(tess_status_exit(TESS_ERR_RESOURCE), 4);
        assert_non_null(strstr(tess_error_message(), "more ranks"));
        assert_non_null(strstr(tess_error_message(), "--memory"));
        assert_null(samples.uvw_m);
    }
    tess_samples_free(&samples);
    tess_error_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reserve),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_too_many_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
