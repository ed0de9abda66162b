/* The data sets of bench gcf: their published numbers, the track they are from, and how
 * many cells they update. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tess_bench_gcf_sets.h"
#include "tess_const.h"
#include "tess_sim_layout.h"

/* Some times of all stations: the first and the last are among them. */
enum { SOME = 300000 };

static void sets_have_the_published_numbers(void **state)
{
    static const struct {
        const char *name;
        int64_t visibilities;
        int planes, half_support;
    } published[] = {{"synthetic", 2152800, 714, 36},
                     {"low-30", 31395840, 922, 95},
                     {"low-56", 31395840, 601, 72},
                     {"low-82", 31395840, 339, 44}};
    for (int k = 0; k < TESS_BENCH_GCF_NUM_SETS; ++k) {
        const tess_bench_gcf_set *set = &tess_bench_gcf_sets[k];
        const int64_t pairs = (int64_t)set->num_stations * (set->num_stations - 1) / 2;
        tess_bench_gcf_points points;
        assert_string_equal(set->name, published[k].name);
        assert_int_equal(pairs * set->num_times, published[k].visibilities);
        assert_int_equal(tess_bench_gcf_set_make(
                             set, 8 * pairs > SOME ? 8 * pairs : SOME, 1, 2, &points),
                         TESS_OK);
        assert_int_equal(points.count % pairs, 0);
        assert_int_equal(points.num_planes, published[k].planes);
        assert_int_equal(points.half_support, published[k].half_support);
        /* the widest kernel is the published one to a cell or two */
        assert_true(abs(points.support[points.num_planes - 1] -
                        (2 * published[k].half_support + 1)) <= 1);
        /* no fewer updates than the study's; one plane more at the most was widened */
        assert_true(points.updates >= points.study_updates);
        assert_true(points.updates < 1.01 * points.study_updates);
        tess_bench_gcf_points_free(&points);
    }
}

static void footprints_are_on_the_grid(void **state)
{
    for (int k = 0; k < TESS_BENCH_GCF_NUM_SETS; ++k) {
        tess_bench_gcf_points points;
        int64_t positive = 0;
        assert_int_equal(
            tess_bench_gcf_set_make(&tess_bench_gcf_sets[k], SOME, 1, 2, &points),
            TESS_OK);
        const double margin = points.half_support + 1;
        const double end = (double)points.size - margin;
        for (int64_t i = 0; i < points.count; ++i) {
            assert_true(points.u[i] >= margin && points.u[i] <= end);
            assert_true(points.v[i] >= margin && points.v[i] <= end);
            assert_true(fabs(points.w[i]) <= points.w_scale_lambda);
            positive += points.w[i] > 0;
        }
        /* stations are in no order along the track */
        assert_true(positive > points.count / 4 && positive < 3 * points.count / 4);
        tess_bench_gcf_points_free(&points);
    }
}

/* Solve the normal equations of a·x = b by Cramer's rule. */
static void solve(double a[3][3], const double *b, double *x)
{
    double of[4];
    for (int replaced = 0; replaced < 4; ++replaced) {
        double m[3][3];
        memcpy(m, a, sizeof m);
        for (int r = 0; r < 3 && replaced < 3; ++r)
            m[r][replaced] = b[r];
        of[replaced] = m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
                       m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
                       m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
    }
    for (int k = 0; k < 3; ++k)
        x[k] = of[k] / of[3];
}

/* The direction that the w of some time's baselines tell, as an elevation. */
static double elevation_of(const tess_bench_gcf_set *set, const double *w)
{
    const tess_layout_antenna *antenna = tess_layout_ska1_low.antenna;
    const int stations = set->num_stations;
    double a[3][3] = {{0}}, b[3] = {0}, s[3], up[3] = {0}, length = 0, sine = 0;
    for (int i = 0; i < stations; ++i) {
        for (int k = 0; k < 3; ++k)
            up[k] += antenna[i].xyz_m[k];
        for (int j = i + 1; j < stations; ++j, ++w)
            for (int r = 0; r < 3; ++r) {
                const double d = antenna[j].xyz_m[r] - antenna[i].xyz_m[r];
                b[r] += d * *w * set->wavelength_m;
                for (int c = 0; c < 3; ++c)
                    a[r][c] += d * (antenna[j].xyz_m[c] - antenna[i].xyz_m[c]);
            }
    }
    solve(a, b, s);
    for (int k = 0; k < 3; ++k) {
        length += s[k] * s[k];
        sine += s[k] * up[k];
    }
    assert_true(fabs(length - 1) < 1e-9);
    return asin(sine / sqrt(up[0] * up[0] + up[1] * up[1] + up[2] * up[2])) /
           TESS_RAD_PER_DEG;
}

static void tracks_begin_and_end_where_they_should(void **state)
{
    const tess_bench_gcf_set *set = tess_bench_gcf_sets;
    for (int k = 0; k < TESS_BENCH_GCF_NUM_SETS; ++k, ++set) {
        const int64_t pairs = (int64_t)set->num_stations * (set->num_stations - 1) / 2;
        tess_bench_gcf_points points;
        if (set->num_stations != tess_layout_ska1_low.num_antennas) continue;
        assert_int_equal(tess_bench_gcf_set_make(set, 8 * pairs, 1, 2, &points),
                         TESS_OK);
        const double *last = points.w + points.count - pairs;
        assert_true(fabs(elevation_of(set, points.w) - set->first_deg) < 1e-6);
        assert_true(fabs(elevation_of(set, last) - set->last_deg) < 1e-6);
        tess_bench_gcf_points_free(&points);
    }
}

/* A fraction of the visibilities, cells and planes, with kernels that fit them. */
static void sets_shrink(void **state)
{
    const tess_bench_gcf_set *set = &tess_bench_gcf_sets[1];
    tess_bench_gcf_points points;
    tess_gcf *gcf = NULL;
    assert_int_equal(tess_bench_gcf_set_make(set, 5000, 0.05, 2, &points), TESS_OK);
    assert_true(points.count > 4500 && points.count < 5500);
    assert_int_equal(points.size, 500);
    assert_int_equal(points.num_planes, 46);
    assert_true(points.half_support < 20 && points.half_support > 4);
    assert_int_equal(tess_bench_gcf_set_kernels(&points, false, 2, &gcf), TESS_OK);
    assert_int_equal(gcf->layout.oversampling, 4);
    for (int p = 0; p < gcf->layout.num_planes; ++p)
        assert_int_equal(gcf->plane[p].support, points.support[p]);
    tess_gcf_destroy(gcf);
    tess_bench_gcf_points_free(&points);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_have_the_published_numbers),
        cmocka_unit_test(footprints_are_on_the_grid),
        cmocka_unit_test(tracks_begin_and_end_where_they_should),
        cmocka_unit_test(sets_shrink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
