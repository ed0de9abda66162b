/* The gridding kernel: its taps, its correction, and the error it says it has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "draw.h"
#include "kernel_optimise.h"
#include "kernel_quality.h"
#include "kernel_start.h"
#include "locate.h"
#include "tess_kernel.h"

static const double TWO_PI = 6.283185307179586;

static const struct {
    int support;
    double padding;
} KERNEL[] = {{4, 1.3}, {5, 2.0}, {7, 1.25}, {8, 1.5}, {11, 1.4}, {14, 1.3}, {16, 1.6}};
enum { NUM_KERNELS = sizeof KERNEL / sizeof *KERNEL };

/* A footprint starts at the first grid point at or above g − W/2, wrapped around. */
static void test_footprint(void **state)
{
    enum { CELLS = 32 };
    draw random = {5};
    for (int support = TESS_MIN_SUPPORT; support <= TESS_MAX_SUPPORT; ++support)
        for (int k = 0; k < 200; ++k) {
            /* quarters, so that borders are met exactly */
            const double g = 0.25 * (double)(draw_index(&random, 400) - 200);
            const int64_t start = tess_footprint_start(g, support, CELLS);
            assert_in_range(start, 0, CELLS - 1);
            const double above = (double)start - (g - 0.5 * support);
            const double fraction = above - CELLS * floor(above / CELLS);
            assert_true(fraction >= 0 && fraction < 1);
        }
}

/* What a unit visibility at grid coordinate g gives at image coordinate x, over what it
 * should give, minus 1. */
static double error2_at(const tess_kernel *kernel, double g, double x)
{
    double fraction, tap[TESS_MAX_SUPPORT], re = 0, im = 0;
    const double first = (double)kernel_start(kernel, g, &fraction);
    tess_kernel_taps(kernel, fraction, tap);
    for (int j = 0; j < kernel->support; ++j) {
        const double turns = x * (first + j - g);
        re += tap[j] * cos(TWO_PI * turns);
        im -= tap[j] * sin(TWO_PI * turns);
    }
    const double h = tess_kernel_correction(kernel, x, NULL);
    return (h * re - 1) * (h * re - 1) + h * h * im * im;
}

/* e(x) against the mean over random positions. The square of the error, like that of
 * any bounded quantity, averages out as 1/√count; its spread is less than its mean.
 * Rounding adds 2^-53 per tap, raised by the correction. */
static void test_error(void **state)
{
    enum { COUNT = 20000 };
    draw random = {6};
    for (int k = 0; k < NUM_KERNELS; ++k) {
        tess_kernel kernel;
        tess_kernel_create(KERNEL[k].support, KERNEL[k].padding, &kernel);
        for (int p = 0; p <= 4; ++p) {
            const double x = 0.5 * p / (4 * kernel.padding);
            double sum = 0, error;
            for (int n = 0; n < COUNT; ++n)
                sum += error2_at(&kernel, draw_uniform(&random, -9, 9), x) / COUNT;
            const double gain = tess_kernel_correction(&kernel, x, &error) /
                                tess_kernel_correction(&kernel, 0, NULL);
            const double floor = 8 * 0x1p-53 * gain;
            assert_true(fabs(sqrt(sum) - error) <= 5 / sqrt(COUNT) * error + floor);
        }
    }
}

/* The stated rms over the field against the mean over random places and positions. The
 * edge's narrow ripples hold most of it: the squares spread by some 5 times their mean.
 */
static void test_field_error(void **state)
{
    enum { COUNT = 100000 };
    draw random = {7};
    for (int k = 0; k < NUM_KERNELS; ++k) {
        tess_kernel kernel;
        double sum = 0;
        tess_kernel_create(KERNEL[k].support, KERNEL[k].padding, &kernel);
        for (int n = 0; n < COUNT / 10; ++n) {
            const double x = draw_uniform(&random, 0, 0.5 / kernel.padding);
            sum += error2_at(&kernel, draw_uniform(&random, -9, 9), x) / (COUNT / 10);
        }
        const double tolerance = 3 * 5 / (2 * sqrt(COUNT / 10));
        assert_true(fabs(sqrt(sum) / kernel.error - 1) <= tolerance);
    }
}

static void test_error_falls(void **state)
{
    tess_kernel narrow, wide, padded;
    for (int support = TESS_MIN_SUPPORT; support < 14; ++support) {
        tess_kernel_create(support, 1.5, &narrow);
        tess_kernel_create(support + 1, 1.5, &wide);
        tess_kernel_create(support, 1.8, &padded);
        assert_true(wide.error < narrow.error);
        assert_true(padded.error < narrow.error);
        assert_true(padded.amplification < narrow.amplification);
        assert_true(padded.amplification >= 1);
        for (int d = 0; d <= narrow.degree; ++d)
            for (int j = support; j < TESS_MAX_SUPPORT; ++j)
                assert_true(narrow.coefficient[d][j] == 0);
    }
}

/* The table is what the optimiser finds anew, at places that it has, between them and
 * at its ends: the error is flat there, so that it is what is compared. With errors
 * near rounding, supports above 14 would compare noise. */
static void test_table(void **state)
{
    static const struct {
        int support;
        double padding;
    } at[] = {{4, 1.15}, {4, 2.6},  {5, 1.4},    {6, 1.27}, {7, 1.975},
              {9, 1.6},  {11, 1.2}, {12, 1.325}, {14, 1.5}};
    for (size_t k = 0; k < sizeof at / sizeof *at; ++k) {
        const int support = at[k].support;
        const double edge = 0.5 / at[k].padding;
        double beta_per_cell, exponent;
        tess_kernel kernel;
        tess_kernel_create(support, at[k].padding, &kernel);
        kernel_optimise(support, at[k].padding, &beta_per_cell, &exponent);
        const double least =
            kernel_exact_error(support, beta_per_cell * support, exponent, edge);
        const double own =
            kernel_exact_error(support, kernel.beta, kernel.exponent, edge);
        assert_true(own >= 0.99 * least && own <= 1.02 * least);
        /* polynomials may add a twentieth */
        assert_true(kernel.error <= 1.08 * least);
        assert_true(fabs(kernel.exponent - exponent) < 2e-3);
    }
}

/* Symmetric taps: the kernel at δ is that at 1 − δ mirrored. They are interpolated
 * polynomials of a symmetric function, equal up to rounding of terms of a few units. */
static void test_symmetry(void **state)
{
    for (int k = 0; k < NUM_KERNELS; ++k) {
        tess_kernel kernel;
        double left[TESS_MAX_SUPPORT], right[TESS_MAX_SUPPORT];
        tess_kernel_create(KERNEL[k].support, KERNEL[k].padding, &kernel);
        for (double fraction = 0; fraction < 1; fraction += 0.0625) {
            tess_kernel_taps(&kernel, fraction, left);
            tess_kernel_taps(&kernel, 1 - fraction, right);
            for (int j = 0; j < kernel.support; ++j)
                assert_true(fabs(left[j] - right[kernel.support - 1 - j]) < 1e-13);
        }
    }
}

/* Chebyshev series of the correction along w: far below the kernel's own error, but for
 * the rounding of its 32 terms, the largest of which are as large as h at the edge. */
static void test_correction_fit(void **state)
{
    for (int k = 0; k < NUM_KERNELS; ++k) {
        tess_kernel kernel;
        double c[TESS_CORRECTION_TERMS];
        tess_kernel_create(KERNEL[k].support, KERNEL[k].padding, &kernel);
        const double edge = 0.5 / kernel.padding;
        const double largest = tess_kernel_correction(&kernel, edge, NULL);
        tess_kernel_correction_fit(&kernel, edge, c);
        for (double t = 0; t <= 1; t += 0.03125) {
            const double y = 2 * t * t - 1, angle = acos(y);
            double sum = 0;
            for (int n = 0; n < TESS_CORRECTION_TERMS; ++n)
                sum += c[n] * cos(n * angle);
            const double h = tess_kernel_correction(&kernel, edge * t, NULL);
            assert_true(fabs(sum - h) <
                        0.01 * kernel.error * h + 32 * 0x1p-53 * largest);
        }
    }
}

/* Planes between which all of a range of w lies: taps are 1 on their own plane and 0 on
 * others, w anywhere in the range and pixels up to the farthest err as much as is said,
 * and no more than the bound of Chebyshev's nodes would allow, 2 (θ/4)^K / K! with θ
 * turned at the edge, times what equal distances cost. Sums of powers cancel, to 2e-12.
 */
static void test_between_planes(void **state)
{
    draw random = {9};
    double factorial = 1;
    for (int count = 1; count <= 10; ++count) {
        const double turns = 0.05;
        tess_kernel taps;
        const double length = tess_kernel_between_planes(count, turns, &taps);
        factorial *= count;
        for (int j = 0; j < count; ++j) {
            double tap[TESS_MAX_SUPPORT];
            tess_kernel_taps(&taps, 0.5 - (j - 0.5 * (count - 1)), tap);
            for (int k = 0; k < count; ++k)
                assert_true(fabs(tap[k] - (j == k)) < 1e-11);
        }
        double worst = 0;
        for (int n = 0; n < 400; ++n) {
            const double place = draw_uniform(&random, -0.5, 0.5) * length;
            const double x = draw_uniform(&random, -turns, turns) / length;
            double tap[TESS_MAX_SUPPORT], re = 0, im = 0;
            tess_kernel_taps(&taps, 0.5 - place, tap);
            for (int k = 0; k < count; ++k) {
                const double phase = TWO_PI * x * (k - 0.5 * (count - 1) - place);
                re += tap[k] * cos(phase);
                im += tap[k] * sin(phase);
            }
            worst = fmax(worst, hypot(re - 1, im));
        }
        const double bound = 2 * pow(TWO_PI * turns / 4, count) / factorial;
        assert_true(worst <= 1.01 * taps.largest_error + 2e-12);
        assert_true(taps.largest_error <= (count < 4 ? 1.1 : 4) * bound + 2e-12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_between_planes), cmocka_unit_test(test_footprint),
        cmocka_unit_test(test_error),          cmocka_unit_test(test_field_error),
        cmocka_unit_test(test_error_falls),    cmocka_unit_test(test_symmetry),
        cmocka_unit_test(test_correction_fit), cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
