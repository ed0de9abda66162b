/* Values in order, each once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tess_select.h"

static void check(const double *value, int64_t count, double apart,
                  const double *expected, int64_t left)
{
    double own[8];
    for (int64_t k = 0; k < count; ++k)
        own[k] = value[k];
    assert_int_equal(tess_select_distinct(own, count, apart), left);
    for (int64_t k = 0; k < left; ++k)
        assert_true(own[k] == expected[k]);
}

static void test_distinct(void **state)
{
    const double mixed[] = {3, -1, 3, 2, -1, 2.5};
    check(mixed, 6, 0, (const double[]){-1, 2, 2.5, 3}, 4);
    /* each is compared with the last that was kept: 3 is 1 above 2, not .5 above 2.5 */
    check(mixed, 6, .75, (const double[]){-1, 2, 3}, 3);
    check(mixed, 6, 1, (const double[]){-1, 2}, 2); /* as far apart is not further */
    check(mixed, 1, 0, (const double[]){3}, 1);
    check(mixed, 0, 0, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_distinct)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
