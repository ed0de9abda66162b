/* The fit of the restoring beam. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "tess_beam.h"
#include "tess_const.h"

/* A Gaussian of unit height; the angle runs from North (up) through East (left). */
static double *make_psf(int64_t nx, int64_t ny, const tess_beam *beam)
{
    double *psf = malloc((size_t)(nx * ny) * sizeof *psf);
    assert_non_null(psf);
    for (int64_t j = 0; j < ny; ++j)
        for (int64_t i = 0; i < nx; ++i) {
            const double east = -(double)(i - nx / 2), north = (double)(j - ny / 2);
            const double along = north * cos(beam->angle) + east * sin(beam->angle);
            const double across = north * sin(beam->angle) - east * cos(beam->angle);
            const double r2 = along * along / (beam->major * beam->major) +
                              across * across / (beam->minor * beam->minor);
            psf[j * nx + i] = exp(-4 * log(2.0) * r2);
        }
    return psf;
}

/* The fit stops when a step is below 1e-9 of the parameters, and converges
 * quadratically: the truth is no farther than the last step. */
static void test_ellipses(void **state)
{
    static const double ratio[] = {0.4, 0.8, 0.999};
    static const int64_t size[][2] = {{64, 64}, {61, 48}, {33, 33}};
    for (int s = 0; s < 3; ++s)
        for (int r = 0; r < 3; ++r)
            for (int degrees = 0; degrees < 180; degrees += 15) {
                const tess_beam truth = {7.3, 7.3 * ratio[r],
                                         degrees * TESS_RAD_PER_DEG};
                double *psf = make_psf(size[s][0], size[s][1], &truth);
                tess_beam beam;
                assert_true(tess_beam_fit(psf, size[s][0], size[s][1], 5.0, &beam));
                assert_true(fabs(beam.major / truth.major - 1) < 1e-7);
                assert_true(fabs(beam.minor / truth.minor - 1) < 1e-7);
                const double turn = remainder(beam.angle - truth.angle, TESS_PI);
                /* the angle of a nearly round beam is less certain */
                assert_true(fabs(turn) < 1e-7 / (1 - ratio[r]));
                assert_true(beam.angle >= 0 && beam.angle < TESS_PI);
                free(psf);
            }
}

static void test_round(void **state)
{
    const tess_beam truth = {4, 4, 0};
    double *psf = make_psf(40, 40, &truth);
    tess_beam beam;
    assert_true(tess_beam_fit(psf, 40, 40, 9.0, &beam));
    assert_true(fabs(beam.major - 4) < 1e-6 && fabs(beam.minor - 4) < 1e-6);
    free(psf);
}

/* Pixels beyond the horizon are left out. */
static void test_some_nan(void **state)
{
    const tess_beam truth = {5, 3, 0.7};
    double *psf = make_psf(40, 40, &truth);
    for (int k = 0; k < 1600; k += 7)
        psf[k] = (double)NAN;
    tess_beam beam;
    assert_true(tess_beam_fit(psf, 40, 40, 4.0, &beam));
    assert_true(fabs(beam.major - 5) < 1e-6 && fabs(beam.minor - 3) < 1e-6);
    free(psf);
}

static void test_failure(void **state)
{
    double psf[100];
    tess_beam beam;
    for (int k = 0; k < 100; ++k)
        psf[k] = (double)NAN;
    assert_false(tess_beam_fit(psf, 10, 10, 3.0, &beam));
}

static void test_box(void **state)
{
    assert_int_equal(tess_beam_box(3.21, 1000), 34);
    assert_int_equal(tess_beam_box(0.3, 1000), 10);
    assert_int_equal(tess_beam_box(1e9, 501), 501);
    assert_int_equal(tess_beam_box(4, 7), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ellipses), cmocka_unit_test(test_round),
        cmocka_unit_test(test_some_nan), cmocka_unit_test(test_failure),
        cmocka_unit_test(test_box),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
