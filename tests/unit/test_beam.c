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

typedef struct pattern {
    double pedestal;
    double wave; /* of a cosine along the major axis [rad per pixel] */
} pattern;

/* A Gaussian of unit height, more or less; the angle runs from North (up) through East
 * (left). */
static double *make_pattern(int64_t nx, int64_t ny, const tess_beam *beam,
                            const pattern *pattern)
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
            const double gaussian =
                exp(-4 * log(2.0) * r2) * cos(pattern->wave * along);
            psf[j * nx + i] = pattern->pedestal + (1 - pattern->pedestal) * gaussian;
        }
    return psf;
}

static double *make_psf(int64_t nx, int64_t ny, const tess_beam *beam)
{
    return make_pattern(nx, ny, beam, &(pattern){0});
}

static tess_beam fit(const double *psf, int64_t nx, int64_t ny, double start)
{
    tess_beam beam = {-1, -1, -1};
    tess_beam_failure failure = TESS_BEAM_COLLAPSED;
    assert_int_equal(tess_beam_fit(psf, nx, ny, start, &beam, &failure), TESS_OK);
    assert_int_equal(failure == TESS_BEAM_FOUND, beam.major > 0);
    return beam;
}

/* Why there is no beam. */
static tess_beam_failure why_none(const double *psf, int64_t nx, int64_t ny,
                                  double start)
{
    tess_beam beam = {-1, -1, -1};
    tess_beam_failure failure = TESS_BEAM_FOUND;
    assert_int_equal(tess_beam_fit(psf, nx, ny, start, &beam, &failure), TESS_OK);
    assert_true(!(fabs(beam.major) + fabs(beam.minor) + fabs(beam.angle) > 0));
    return failure;
}

/* The fit stops when a step is below 1e-7 of the box, which is up to 22 minor axes
 * wide. With derivatives that are not quite right, steps shrink only by a factor, here
 * 0.82 at worst: what is left is below 5 steps. */
static void test_ellipses(void **state)
{
    const double LIMIT = 5 * 1e-7 * 22;
    static const double ratio[] = {0.4, 0.8, 0.999};
    static const int64_t size[][2] = {{64, 64}, {61, 48}, {33, 33}};
    for (int s = 0; s < 3; ++s)
        for (int r = 0; r < 3; ++r)
            for (int degrees = 0; degrees < 180; degrees += 15) {
                const tess_beam truth = {7.3, 7.3 * ratio[r],
                                         degrees * TESS_RAD_PER_DEG};
                double *psf = make_psf(size[s][0], size[s][1], &truth);
                const tess_beam beam = fit(psf, size[s][0], size[s][1], 5.0);
                assert_true(fabs(beam.major / truth.major - 1) < LIMIT);
                assert_true(fabs(beam.minor / truth.minor - 1) < LIMIT);
                const double turn = remainder(beam.angle - truth.angle, TESS_PI);
                /* the angle of a nearly round beam is less certain */
                assert_true(fabs(turn) < LIMIT / (1 - ratio[r]));
                assert_true(beam.angle >= 0 && beam.angle < TESS_PI);
                free(psf);
            }
}

static void test_round(void **state)
{
    const tess_beam truth = {4, 4, 0};
    double *psf = make_psf(40, 40, &truth);
    const tess_beam beam = fit(psf, 40, 40, 9.0);
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
    const tess_beam beam = fit(psf, 40, 40, 4.0);
    assert_true(fabs(beam.major - 5) < 1e-5 && fabs(beam.minor - 3) < 1e-5);
    free(psf);
}

static void test_failure(void **state)
{
    double psf[100];
    for (int k = 0; k < 100; ++k)
        psf[k] = (double)NAN;
    assert_int_equal(why_none(psf, 10, 10, 3.0), TESS_BEAM_FEW_PIXELS);
    /* no beam is narrower than a pixel */
    for (int k = 0; k < 100; ++k)
        psf[k] = k == 55;
    assert_int_equal(why_none(psf, 10, 10, 1.0), TESS_BEAM_NARROW);
    /* a quadrant of one pixel cannot be fitted */
    assert_int_equal(why_none(psf, 2, 2, 1.0), TESS_BEAM_FEW_PIXELS);
    /* stripes: the lobe has no end along them */
    for (int k = 0; k < 100; ++k)
        psf[k] = cos(0.7 * (k % 10 - 5));
    assert_int_equal(why_none(psf, 10, 10, 4.0), TESS_BEAM_ENDLESS);
}

/* What `wsclean -reuse-psf` 3.1.0 writes for these PSFs, stored in single precision:
 * fits that end away from the least squares, one of them after 500 steps, unconverged.
 */
static void test_wsclean(void **state)
{
    static const struct {
        int64_t nx, ny;
        tess_beam gaussian;
        pattern pattern;
        tess_beam fitted;
    } kase[] = {
        {10, 10, {4, 1.2, 150}, {0.2, 0}, {5.652109817, 1.883331524, 147.4749092}},
        {10, 6, {4, 1.2, 150}, {0.1, 0}, {4.351014817, 1.402875468, 148.9249846}},
        {10, 10, {9, 1.35, 155}, {0.1, 0}, {9.483639430, 1.587006799, 154.7069926}},
        {10, 10, {9, 1.35, 155}, {0.1, 0.2}, {7.571157450, 1.601076717, 154.6334630}},
        {6, 10, {9, 1.35, 160}, {0.05, 0.2}, {7.292251235, 1.450652234, 159.9624753}},
    };
    for (size_t k = 0; k < sizeof kase / sizeof *kase; ++k) {
        tess_beam gaussian = kase[k].gaussian;
        gaussian.angle *= TESS_RAD_PER_DEG;
        double *psf = make_pattern(kase[k].nx, kase[k].ny, &gaussian, &kase[k].pattern);
        for (int64_t i = 0; i < kase[k].nx * kase[k].ny; ++i)
            psf[i] = (float)psf[i];
        const tess_beam beam = fit(psf, kase[k].nx, kase[k].ny, 1.0);
        assert_true(fabs(beam.major / kase[k].fitted.major - 1) < 1e-6);
        assert_true(fabs(beam.minor / kase[k].fitted.minor - 1) < 1e-6);
        assert_true(fabs(beam.angle / TESS_RAD_PER_DEG - kase[k].fitted.angle) < 1e-5);
        free(psf);
    }
}

/* A wave along the major axis leaves a lobe of 2.1 x 6.5 pixels. From this start the
 * first fit ends with an axis of 0.03 pixels, from half of it in the lobe. */
static void test_collapse(void **state)
{
    const tess_beam gaussian = {7.2, 6.48, 5 * TESS_RAD_PER_DEG};
    double *psf = make_pattern(24, 24, &gaussian, &(pattern){0, 0.8});
    const tess_beam beam = fit(psf, 24, 24, 11.3);
    assert_true(fabs(beam.minor - 2.1) < 0.1 && fabs(beam.major - 6.5) < 0.3);
    free(psf);
}

/* A round beam is found as it is, from either side; of an ellipse along an axis, the
 * circle is between its axes, and no circle near it has a smaller sum of squares.
 * Rounding leaves the step of a converged fit below 1e-7 of the width. */
static void test_circle(void **state)
{
    static const double starts[] = {3, 6, 11};
    const tess_beam round = {6.2, 6.2, 0}, ellipse = {9, 5, 0};
    double *psf = make_psf(61, 64, &round), *oval = make_psf(61, 64, &ellipse);
    tess_beam beam, other;
    tess_beam_failure failure;
    for (int k = 0; k < 3; ++k) {
        tess_beam_fit_circle(psf, 61, 64, starts[k], &beam, &failure);
        assert_int_equal(failure, TESS_BEAM_FOUND);
        assert_true(fabs(beam.major / 6.2 - 1) < 1e-6 &&
                    fabs(beam.minor / 6.2 - 1) < 1e-6);
    }
    tess_beam_fit_circle(oval, 61, 64, 6, &beam, &failure);
    double cost[3] = {0, 0, 0};
    for (int64_t j = 32; j < 64; ++j)
        for (int64_t i = 30; i < 61; ++i)
            for (int k = 0; k < 3; ++k) {
                const double width = beam.major * (1 + 1e-3 * (k - 1));
                const double rho2 = (double)((i - 30) * (i - 30) + (j - 32) * (j - 32));
                cost[k] += pow(
                    exp(-4 * log(2.0) * rho2 / (width * width)) - oval[j * 61 + i], 2);
            }
    assert_true(beam.major > 5 && beam.major < 9);
    assert_true(cost[1] < cost[0] && cost[1] < cost[2]);
    for (int64_t k = 0; k < 61 * 64; ++k)
        psf[k] = 0;
    tess_beam_fit_circle(psf, 61, 64, 6, &other, &failure);
    assert_int_equal(failure, TESS_BEAM_FEW_PIXELS);
    assert_true(!(fabs(other.major) > 0));
    free(psf);
    free(oval);
}

static void test_box(void **state)
{
    assert_int_equal(tess_beam_box(3.21, 10, 1000), 34);
    assert_int_equal(tess_beam_box(0.3, 10, 1000), 10);
    assert_int_equal(tess_beam_box(1e9, 10, 501), 501);
    assert_int_equal(tess_beam_box(4, 10, 7), 7);
    assert_int_equal(tess_beam_box(10, 1.25, 1000), 14);
    assert_int_equal(tess_beam_box(1, 1.25, 1000), 2);
    /* a box of ten beams is large enough for one that is a quarter larger */
    assert_false(tess_beam_box_is_small(4.99, 10, 40));
    assert_true(tess_beam_box_is_small(5.01, 10, 40));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ellipses), cmocka_unit_test(test_round),
        cmocka_unit_test(test_some_nan), cmocka_unit_test(test_failure),
        cmocka_unit_test(test_wsclean),  cmocka_unit_test(test_collapse),
        cmocka_unit_test(test_box),      cmocka_unit_test(test_circle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
