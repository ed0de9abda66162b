/* Sizes for the FFT, and the direction cosines of pixels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "tess_geom.h"

static int is_smooth(int64_t n)
{
    for (int64_t prime = 2; prime <= 7; ++prime)
        while (n % prime == 0)
            n /= prime;
    return n == 1;
}

static void test_smooth_size(void **state)
{
    for (int64_t n = 1; n <= 3000; ++n) {
        const int64_t size = tess_geom_smooth_size(n);
        assert_true(size >= n && size % 2 == 0 && is_smooth(size));
        for (int64_t k = n; k < size; ++k)
            assert_false(k % 2 == 0 && is_smooth(k));
    }
    assert_int_equal(tess_geom_smooth_size(1000001), 1000188); /* 2^2 3^6 7^3 */
}

/* Smooth as well, and a little more than asked for, or the next there is. */
static void test_fft_size(void **state)
{
    for (int64_t n = 1; n <= 3000; ++n) {
        const int64_t size = tess_geom_fft_size(n), next = tess_geom_smooth_size(n);
        assert_true(size >= next && size % 2 == 0 && is_smooth(size));
        assert_true(size == next || (double)size <= 1.08 * (double)n);
    }
    assert_int_equal(tess_geom_fft_size(4096), 4096);
    assert_int_equal(tess_geom_fft_size(1000001), 1024000); /* 2^13 5^3 */
}

/* More work is done in a longer line that has few factors of two: 10290 is 2 3 5 7^3,
 * 10368 is 2^7 3^4. */
static void test_fft_slowness(void **state)
{
    for (int64_t n = 64; n <= 1 << 20; n *= 2)
        assert_true(tess_geom_fft_slowness(n) == 1);
    assert_true(tess_geom_fft_slowness(10290) > 1.5 * tess_geom_fft_slowness(10368));
    assert_int_equal(tess_geom_fft_size(10290), 10368);
    assert_true(tess_geom_fft_slowness(11) > tess_geom_fft_slowness(10));
}

/* In long double, whose rounding is 2^-11 of a double's. */
static void test_nm1(void **state)
{
    for (double r2 = 1e-300; r2 < 0.99; r2 *= 1.7) {
        const long double r = (long double)r2;
        const double exact = (double)(-r / (1 + sqrtl(1 - r)));
        /* 1 − r², the root, the sum and the quotient each round once; the first is
         * raised by 1/2n² ≤ 50, n² = 1 − r² ≥ 0.01, halved by the root */
        const double tolerance = (3 + 0.5 / (1 - r2)) * 0x1p-53;
        assert_true(fabs(tess_geom_nm1(r2) - exact) <= tolerance * fabs(exact));
    }
    assert_true(tess_geom_nm1(0) == 0);
    assert_true(tess_geom_nm1(1) == -1);
    assert_true(tess_geom_nm1(2.5) == -1);
}

static void test_directions(void **state)
{
    const tess_geom even = {.nx = 8, .ny = 6, .scale_rad = 0.25},
                    odd = {.nx = 7, .ny = 5, .scale_rad = 0.25};
    assert_true(tess_geom_l(&even, 4) == 0 && tess_geom_m(&even, 3) == 0);
    assert_true(tess_geom_l(&odd, 3) == 0 && tess_geom_m(&odd, 2) == 0);
    /* East to the left, North up */
    assert_true(tess_geom_l(&even, 0) == 1.0 && tess_geom_l(&even, 7) == -0.75);
    assert_true(tess_geom_m(&even, 0) == -0.75 && tess_geom_m(&even, 5) == 0.5);
    assert_true(tess_geom_l(&odd, 0) == 0.75 && tess_geom_l(&odd, 6) == -0.75);
    assert_true(tess_geom_m(&odd, 0) == -0.5 && tess_geom_m(&odd, 4) == 0.5);
}

/* The phase that is gridded is that of the middle, less what visibilities were turned
 * by. */
static void test_phases(void **state)
{
    tess_geom geom = {.nx = 8, .ny = 8, .scale_rad = 0.01, .l0 = 0.3, .m0 = -0.2};
    tess_geom_phase phase = tess_geom_phase_of(&geom, -0.1, true);
    assert_true(phase.l == 0.3 && phase.m == -0.2 && phase.nm1 == -0.1);
    geom.turned_l = 0.3;
    geom.turned_m = -0.2;
    assert_false(tess_geom_is_plain(&geom));
    phase = tess_geom_phase_of(&geom, -0.1, true);
    assert_true(phase.l == 0 && phase.m == 0);
    assert_true(fabs(phase.nm1 - (-0.1 - (sqrt(1 - 0.13) - 1))) < 1e-15);
    assert_true(tess_geom_phase_of(&geom, -0.1, false).nm1 == 0);
}

/* An image whose rectangle leaves out the phase centre: extremes at the corner nearest
 * to it, or at the nearest edge, and at the farthest corner. */
static void test_beside_the_centre(void **state)
{
    tess_geom geom = {.nx = 8, .ny = 5, .scale_rad = 0.01};
    assert_true(tess_geom_is_plain(&geom) && tess_geom_scale_m(&geom) == 0.01);
    assert_true(tess_geom_nm1_max(&geom) == 0);
    geom.scale_m_rad = 0.02;
    assert_false(tess_geom_is_plain(&geom));
    geom.l0 = 0.3;
    geom.m0 = -0.2;
    assert_true(fabs(tess_geom_l(&geom, 0) - 0.34) < 1e-15);
    assert_true(fabs(tess_geom_l(&geom, 7) - 0.27) < 1e-15);
    assert_true(fabs(tess_geom_m(&geom, 4) + 0.16) < 1e-15);
    const double near = sqrt(1 - 0.27 * 0.27 - 0.16 * 0.16) - 1;
    const double far = sqrt(1 - 0.34 * 0.34 - 0.24 * 0.24) - 1;
    assert_true(fabs(tess_geom_nm1_max(&geom) - near) < 1e-15);
    assert_true(fabs(tess_geom_nm1_min(&geom) - far) < 1e-15);
    geom.m0 = 0.01;
    assert_true(fabs(tess_geom_nm1_max(&geom) - (sqrt(1 - 0.27 * 0.27) - 1)) < 1e-15);
}

static void test_nm1_min(void **state)
{
    static const int64_t size[] = {1, 2, 5, 8, 31};
    for (int a = 0; a < 5; ++a)
        for (int b = 0; b < 5; ++b) {
            const tess_geom geom = {.nx = size[a], .ny = size[b], .scale_rad = 0.06};
            double least = 0;
            for (int64_t j = 0; j < geom.ny; ++j)
                for (int64_t i = 0; i < geom.nx; ++i) {
                    const double l = tess_geom_l(&geom, i), m = tess_geom_m(&geom, j);
                    least = fmin(least, tess_geom_nm1(l * l + m * m));
                }
            assert_true(tess_geom_nm1_min(&geom) == least);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smooth_size),       cmocka_unit_test(test_fft_size),
        cmocka_unit_test(test_fft_slowness),      cmocka_unit_test(test_nm1),
        cmocka_unit_test(test_directions),        cmocka_unit_test(test_nm1_min),
        cmocka_unit_test(test_beside_the_centre), cmocka_unit_test(test_phases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
