/* Sums that do not depend on their order, of numbers of all magnitudes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include "draw.h"
#include "tess_exact.h"

enum { NUMBERS = 20000, PARTS = 7 };

static void test_any_order(void **state)
{
    static tess_exact up, down, parts[PARTS];
    static double number[NUMBERS];
    draw random = {5};
    for (int k = 0; k < NUMBERS; ++k)
        number[k] =
            ldexp(draw_uniform(&random, -1, 1), (int)draw_index(&random, 120) - 60);
    for (int k = 0; k < NUMBERS; ++k) {
        tess_exact_add(&up, number[k]);
        tess_exact_add(&down, number[NUMBERS - 1 - k]);
        tess_exact_add(&parts[k % PARTS], number[k]);
    }
    for (int p = 1; p < PARTS; ++p)
        for (int w = 0; w < TESS_EXACT_WORDS; ++w)
            parts[0].word[w] += parts[p].word[w];
    assert_memory_equal(&up, &down, sizeof up);
    assert_memory_equal(&up, &parts[0], sizeof up);
    assert_true(tess_exact_value(&up) == tess_exact_value(&parts[0]));
}

/* Large numbers that cancel leave the small ones. */
static void test_nothing_lost(void **state)
{
    static tess_exact sum;
    for (int k = 0; k < 1000; ++k) {
        tess_exact_add(&sum, 1e300);
        tess_exact_add(&sum, 1e-5);
        tess_exact_add(&sum, -1e300);
    }
    assert_true(fabs(tess_exact_value(&sum) - 1e-2) < 1e-17);
}

static void test_limits(void **state)
{
    static tess_exact sum;
    assert_true(tess_exact_value(&sum) == 0);
    tess_exact_add(&sum, DBL_TRUE_MIN);
    tess_exact_add(&sum, DBL_TRUE_MIN);
    assert_true(tess_exact_value(&sum) == 2 * DBL_TRUE_MIN);
    tess_exact_add(&sum, -2 * DBL_TRUE_MIN);
    tess_exact_add(&sum, DBL_MAX);
    assert_true(tess_exact_value(&sum) == DBL_MAX);
    tess_exact_add(&sum, (double)INFINITY);
    assert_false(isfinite(tess_exact_value(&sum)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_nothing_lost),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
