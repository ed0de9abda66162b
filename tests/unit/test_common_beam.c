/* The smallest beam that contains several: it contains them, and a search over angles
 * and axis ratios finds none that is smaller. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "draw.h"
#include "tess_common_beam.h"
#include "tess_const.h"

enum { MOST = 40 };

/* Squared widths along two axes, and their product. */
typedef struct matrix {
    double xx, yy, xy;
} matrix;

static matrix matrix_of(double major, double minor, double angle)
{
    const double c = cos(angle), s = sin(angle);
    return (matrix){major * major * s * s + minor * minor * c * c,
                    major * major * c * c + minor * minor * s * s,
                    s * c * (minor * minor - major * major)};
}

/* The largest eigenvalue of c⁻¹ a, by its trace and determinant. */
static double beyond(const matrix *a, const matrix *c)
{
    const double det = c->xx * c->yy - c->xy * c->xy;
    const double trace = (c->yy * a->xx + c->xx * a->yy - 2 * c->xy * a->xy) / det;
    const double product = (a->xx * a->yy - a->xy * a->xy) / det;
    return 0.5 * (trace + sqrt(fmax(0, trace * trace - 4 * product)));
}

static double beyond_all(const tess_clean_beam *beam, int num, const matrix *c)
{
    double most = 0;
    for (int k = 0; k < num; ++k) {
        const matrix a =
            matrix_of(beam[k].major_px, beam[k].minor_px, beam[k].angle_rad);
        most = fmax(most, beyond(&a, c));
    }
    return most;
}

/* The least area of an ellipse with this angle and logarithm of the ratio of axes. */
static double area_at(const tess_clean_beam *beam, int num, double angle, double ratio)
{
    const matrix c = matrix_of(exp(0.5 * ratio), exp(-0.5 * ratio), angle);
    return beyond_all(beam, num, &c);
}

/* Searches a grid of angles and ratios, and finer ones around its least area. */
static double least_area(const tess_clean_beam *beam, int num)
{
    enum { SIDE = 10, ROUNDS = 70 };
    double angle = 0, ratio = 1.5, reach_angle = 0.5 * TESS_PI, reach_ratio = 1.5;
    double least = INFINITY;
    for (int round = 0; round < ROUNDS; ++round) {
        double best_angle = angle, best_ratio = ratio;
        for (int i = -SIDE; i <= SIDE; ++i)
            for (int j = -SIDE; j <= SIDE; ++j) {
                const double a = angle + reach_angle * i / SIDE;
                const double r = fabs(ratio + reach_ratio * j / SIDE);
                const double area = area_at(beam, num, a, r);
                if (area >= least) continue;
                least = area;
                best_angle = a;
                best_ratio = r;
            }
        angle = best_angle;
        ratio = best_ratio;
        reach_angle *= 0.75;
        reach_ratio *= 0.75;
    }
    return least;
}

static void draw_beams(draw *random, int num, tess_clean_beam *beam)
{
    const double spread = draw_uniform(random, 0.001, 1);
    for (int k = 0; k < num; ++k) {
        beam[k].minor_px = 3 + spread * draw_uniform(random, 0, 5);
        beam[k].major_px = beam[k].minor_px + spread * draw_uniform(random, 0, 6);
        beam[k].angle_rad = draw_uniform(random, -TESS_PI, TESS_PI);
    }
}

static void test_smallest(void **state)
{
    (void)state;
    enum { TRIES = 8 };
    draw random = {3};
    for (int try = 0; try < TRIES; ++try) {
        tess_clean_beam beam[MOST], common;
        const int num = 2 + try * 3;
        draw_beams(&random, num, beam);
        tess_common_beam(beam, num, &common);
        const matrix c = matrix_of(common.major_px, common.minor_px, common.angle_rad);
        assert_true(common.major_px >= common.minor_px);
        assert_true(beyond_all(beam, num, &c) <= 1 + 1e-11);
        const double area = common.major_px * common.minor_px;
        assert_true(area <= (1 + 1e-6) * least_area(beam, num));
    }
}

/* A beam that contains the others is returned as it is; beams without width do not
 * count. */
static void test_one_of_them(void **state)
{
    (void)state;
    const tess_clean_beam beam[] = {
        {0}, {5, 4, 0.3}, {8, 6, 0.5}, {8, 6, 0.5}, {6, 5.9, -1}};
    tess_clean_beam common;
    tess_common_beam(beam, 5, &common);
    assert_memory_equal(&common, &beam[2], sizeof common);
    tess_common_beam(beam, 1, &common);
    assert_true(common.major_px == 0 && common.minor_px == 0);
}

/* Two needles across one another lie in a circle. */
static void test_cross(void **state)
{
    (void)state;
    const tess_clean_beam beam[] = {{10, 1e-3, 0}, {10, 1e-3, 0.5 * TESS_PI}};
    tess_clean_beam common;
    tess_common_beam(beam, 2, &common);
    assert_true(fabs(common.major_px - 10) < 1e-5);
    assert_true(fabs(common.minor_px - common.major_px) < 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smallest),
        cmocka_unit_test(test_one_of_them),
        cmocka_unit_test(test_cross),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
