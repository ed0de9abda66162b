/* Tables of convolution functions: w-kernels against their defining integrals in double
 * precision, symmetry, supports, planes, and how much smaller they are than a cube. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "tess_const.h"
#include "tess_gcf.h"
#include "tess_geom.h"

enum { POINTS = 400 }; /* of the midpoint rule, along each axis */

static tess_gcf_opts options(void)
{
    tess_gcf_opts opts;
    tess_gcf_opts_default(&opts);
    opts.field_l = 0.17; /* 10° */
    opts.field_m = 0.14;
    opts.layout.num_planes = 9;
    opts.layout.w_max_lambda = 1000;
    opts.layout.is_double = true;
    opts.layout.threads = 2;
    return opts;
}

/* The header's integral by the midpoint rule, all of it: no symmetry is used. */
static void integrate(const tess_gcf_opts *opts, const double *taper, double w,
                      double x, double y, double value[2])
{
    value[0] = value[1] = 0;
    for (int i = 0; i < POINTS; ++i)
        for (int j = 0; j < POINTS; ++j) {
            const double p = 2 * (i + 0.5) / POINTS - 1, q = 2 * (j + 0.5) / POINTS - 1;
            const double l = p * opts->field_l, m = q * opts->field_m;
            const double weight = 4 * taper[i] * taper[j] / ((double)POINTS * POINTS);
            const double phase =
                TESS_TWO_PI * (x * p + y * q - w * tess_geom_nm1(l * l + m * m));
            value[0] += weight * cos(phase);
            value[1] += weight * sin(phase);
        }
}

static void taper_line(const tess_gcf_opts *opts, double *taper)
{
    double p[POINTS];
    for (int i = 0; i < POINTS; ++i)
        p[i] = 2 * (i + 0.5) / POINTS - 1;
    tess_gcf_taper(opts->taper_support, opts->padding, POINTS, p, taper);
}

/* What sums and integral differ by: the taper's stop band, whose aliases each rule
 * folds in differently. The kernel's step at its edge bounds it, exp(−β) of the peak, β
 * being near 2.3 times the support (Barnett et al. 2019), for both rules and both axes.
 */
static double rules_differ(const tess_gcf_opts *opts)
{
    return 4 * exp(-2.3 * opts->taper_support);
}

/* Kernels, and the taper that they are integrals over. */
static tess_gcf *kernels(const tess_gcf_opts *opts, double *taper)
{
    tess_gcf *gcf = NULL;
    taper_line(opts, taper);
    assert_int_equal(tess_gcf_create(opts, &gcf), TESS_OK);
    return gcf;
}

static void w_kernels_are_integrals(void **state)
{
    const tess_gcf_opts opts = options();
    double taper[POINTS];
    tess_gcf *gcf = kernels(&opts, taper);
    for (int p = 0; p < opts.layout.num_planes; p += 4) {
        const int reach = gcf->plane[p].support * opts.layout.oversampling / 2;
        const int at[][2] = {
            {0, 0}, {3, -5}, {-12, 12}, {reach / 2, 4}, {1, reach / 3}};
        double peak[2];
        tess_gcf_value(gcf, p, 0, 0, peak);
        for (size_t k = 0; k < sizeof at / sizeof *at; ++k) {
            double expected[2], found[2];
            integrate(&opts, taper, gcf->plane[p].w_lambda, at[k][0] / 8.0,
                      at[k][1] / 8.0, expected);
            tess_gcf_value(gcf, p, at[k][0], at[k][1], found);
            assert_true(hypot(found[0] - expected[0], found[1] - expected[1]) <
                        rules_differ(&opts) * hypot(peak[0], peak[1]));
        }
    }
    tess_gcf_destroy(gcf);
}

static void negative_w_is_the_conjugate(void **state)
{
    const tess_gcf_opts opts = options();
    double taper[POINTS], here[2], there[2];
    taper_line(&opts, taper);
    integrate(&opts, taper, 700, 4.25, -7.5, here);
    integrate(&opts, taper, -700, 4.25, -7.5, there);
    assert_true(fabs(here[0] - there[0]) < 1e-12 && fabs(here[1] + there[1]) < 1e-12);
    assert_true(fabs(here[1]) > 1e-6);
}

/* Kernels of given supports are those that a cut finds, more or less of them. */
static void supports_may_be_given(void **state)
{
    tess_gcf_opts opts = options();
    tess_gcf *found = NULL, *given = NULL;
    int support[64];
    assert_true(opts.layout.num_planes <= 64);
    assert_int_equal(tess_gcf_create(&opts, &found), TESS_OK);
    for (int p = 0; p < opts.layout.num_planes; ++p)
        support[p] = found->plane[p].support + (p % 2 ? 40 : p == 8 ? -8 : 0);
    opts.support = support;
    assert_int_equal(tess_gcf_create(&opts, &given), TESS_OK);
    for (int p = 0; p < opts.layout.num_planes; ++p) {
        double peak[2];
        tess_gcf_value(found, p, 0, 0, peak);
        assert_int_equal(given->plane[p].support, support[p]);
        for (int x = 0; x < 20; ++x) {
            double one[2], other[2];
            tess_gcf_value(found, p, x, 3 * x / 2, one);
            tess_gcf_value(given, p, x, 3 * x / 2, other);
            assert_true(hypot(one[0] - other[0], one[1] - other[1]) <
                        rules_differ(&opts) * hypot(peak[0], peak[1]));
        }
    }
    tess_gcf_destroy(given);
    support[1] = 20;
    assert_int_equal(tess_gcf_create(&opts, &given), TESS_ERR_USAGE);
    tess_gcf_destroy(found);
}

/* Outside of the support the integral is below the cut, and a support less is not. */
static void supports_end_at_the_cut(void **state)
{
    const tess_gcf_opts opts = options();
    double taper[POINTS];
    tess_gcf *gcf = kernels(&opts, taper);
    for (int p = 0; p < opts.layout.num_planes; p += 4) {
        const int support = gcf->plane[p].support;
        double peak[2], most = 0;
        tess_gcf_value(gcf, p, 0, 0, peak);
        for (int k = 0; k < 4; ++k) {
            double value[2];
            integrate(&opts, taper, gcf->plane[p].w_lambda, support / 2 + k, 3 * k,
                      value);
            most = fmax(most, hypot(value[0], value[1]));
        }
        assert_true(most < 1.05 * opts.cut * hypot(peak[0], peak[1]));
        most = 0;
        for (int x = (support / 2 - TESS_GCF_STEP) * 8; x < support * 4; x += 8)
            for (int y = 0; y < support * 4; y += 8) {
                double value[2];
                tess_gcf_value(gcf, p, x, y, value);
                most = fmax(most, hypot(value[0], value[1]));
                tess_gcf_value(gcf, p, y, x, value);
                most = fmax(most, hypot(value[0], value[1]));
            }
        assert_true(support == 8 || most > opts.cut * hypot(peak[0], peak[1]));
        assert_int_equal(support % TESS_GCF_STEP, 0);
        assert_true(p == 0 || support >= gcf->plane[p - 1].support);
        assert_false(gcf->plane[p].is_cut);
    }
    tess_gcf_destroy(gcf);
}

static void any_oversampling_and_threads(void **state)
{
    tess_gcf_opts opts = options();
    opts.layout.num_planes = 2;
    opts.layout.w_max_lambda = 300;
    tess_gcf *reference = NULL;
    opts.layout.oversampling = 60;
    assert_int_equal(tess_gcf_create(&opts, &reference), TESS_OK);
    const int some[] = {1, 2, 3, 4, 5, 15};
    for (size_t k = 0; k < sizeof some / sizeof *some; ++k) {
        tess_gcf *gcf = NULL;
        opts.layout.oversampling = some[k];
        opts.layout.threads = 1 + (int)k % 3;
        assert_int_equal(tess_gcf_create(&opts, &gcf), TESS_OK);
        const int reach = gcf->plane[1].support * some[k] / 2, fine = 60 / some[k];
        for (int x = -reach; x <= reach; ++x)
            for (int y = -reach; y <= reach; y += 7) {
                double a[2], b[2];
                tess_gcf_value(gcf, 1, x, y, a);
                tess_gcf_value(reference, 1, x * fine, y * fine, b);
                assert_true(fabs(a[0] - b[0]) + fabs(a[1] - b[1]) < 1e-13);
            }
        tess_gcf_destroy(gcf);
    }
    tess_gcf_destroy(reference);
}

static void planes_lie_where_asked(void **state)
{
    tess_gcf_opts opts = options();
    for (int linear = 0; linear < 2; ++linear) {
        tess_gcf *gcf = NULL;
        opts.layout.spacing = linear ? TESS_GCF_LINEAR : TESS_GCF_SQRT;
        assert_int_equal(tess_gcf_create(&opts, &gcf), TESS_OK);
        for (int p = 0; p < 9; ++p) {
            const double w = linear ? 125.0 * p : 1000.0 * p * p / 64;
            assert_true(fabs(gcf->plane[p].w_lambda - w) < 1e-9);
            assert_int_equal(tess_gcf_plane_of(gcf, w), p);
            assert_int_equal(tess_gcf_plane_of(gcf, -w), p);
        }
        /* halfway between planes 3 and 4, by root or by w */
        const double border = linear ? 437.5 : 1000 * 3.5 * 3.5 / 64;
        assert_int_equal(tess_gcf_plane_of(gcf, border * (1 - 1e-9)), 3);
        assert_int_equal(tess_gcf_plane_of(gcf, border * (1 + 1e-9)), 4);
        assert_int_equal(tess_gcf_plane_of(gcf, 5000), 8);
        tess_gcf_destroy(gcf);
    }
}

/* Tables are often kept as a cube of all planes, offsets and the largest support. */
static void tables_are_compact(void **state)
{
    tess_gcf_opts opts = options();
    tess_gcf *gcf = NULL;
    opts.layout.num_planes = 24;
    opts.layout.w_max_lambda = 3000;
    opts.layout.is_double = false;
    assert_int_equal(tess_gcf_create(&opts, &gcf), TESS_OK);
    const double line = (double)gcf->layout.oversampling * gcf->max_support;
    const double cube_bytes = 24 * line * line * 2 * sizeof(float);
    const double ratio = cube_bytes / (double)tess_gcf_bytes(gcf);
    print_message("%d planes up to %d cells: %.1f times smaller than a cube\n", 24,
                  gcf->max_support, ratio);
    assert_true(gcf->max_support >= 64);
    assert_true(ratio >= 4);
    tess_gcf_destroy(gcf);
}

static void limits_of_supports_hold(void **state)
{
    tess_gcf_opts opts = options();
    tess_gcf *gcf = NULL;
    opts.min_support = opts.max_support = 30; /* rounded up to 32 */
    assert_int_equal(tess_gcf_create(&opts, &gcf), TESS_OK);
    for (int p = 0; p < 9; ++p)
        assert_int_equal(gcf->plane[p].support, 32);
    assert_false(gcf->plane[0].is_cut);
    assert_true(gcf->plane[8].is_cut);
    tess_gcf_destroy(gcf);
}

static void wrong_options_are_refused(void **state)
{
    tess_gcf *gcf = NULL;
    for (int k = 0; k < 8; ++k) {
        tess_gcf_opts opts = options();
        if (k == 0) opts.layout.num_planes = 0;
        if (k == 1) opts.layout.oversampling = 65;
        if (k == 2) opts.layout.w_max_lambda = NAN;
        if (k == 3) opts.field_l = 0;
        if (k == 4) opts.cut = 0;
        if (k == 5) opts.max_support = 4;
        if (k == 6) opts.taper_support = 99;
        if (k == 7) opts.layout.threads = 0;
        assert_int_equal(tess_gcf_create(&opts, &gcf), TESS_ERR_USAGE);
        assert_null(gcf);
        tess_error_clear();
    }
    tess_gcf_destroy(NULL);
}

static void round_kernel(const void *context, int plane, double x, double y,
                         double value[2])
{
    value[0] = exp(-(x * x + y * y) / *(const double *)context);
    value[1] = plane + hypot(x, y);
}

static void any_kernel_can_be_tabulated(void **state)
{
    const tess_gcf_layout layout = {
        .num_planes = 2, .w_max_lambda = 10, .oversampling = 7, .threads = 1};
    const int support[] = {8, 16}, wrong[] = {8, 12};
    const double width = 5;
    tess_gcf *gcf = NULL;
    assert_int_equal(tess_gcf_create_from(&layout, wrong, round_kernel, &width, &gcf),
                     TESS_ERR_USAGE);
    tess_error_clear();
    assert_int_equal(tess_gcf_create_from(&layout, support, round_kernel, &width, &gcf),
                     TESS_OK);
    for (int x = -56; x <= 56; ++x)
        for (int y = -56; y <= 56; ++y) {
            double found[2], expected[2];
            tess_gcf_value(gcf, 1, x, y, found);
            round_kernel(&width, 1, x / 7.0, y / 7.0, expected);
            /* rounded to single precision, at most 13 */
            assert_true(fabs(found[0] - expected[0]) < 1e-7);
            assert_true(fabs(found[1] - expected[1]) < 1e-6);
        }
    tess_gcf_destroy(gcf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(w_kernels_are_integrals),
        cmocka_unit_test(negative_w_is_the_conjugate),
        cmocka_unit_test(supports_end_at_the_cut),
        cmocka_unit_test(supports_may_be_given),
        cmocka_unit_test(any_oversampling_and_threads),
        cmocka_unit_test(planes_lie_where_asked),
        cmocka_unit_test(tables_are_compact),
        cmocka_unit_test(limits_of_supports_hold),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(any_kernel_can_be_tabulated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
