/* The inner loops over lists of candidates, against their definition, for each
 * instruction set of this processor. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cpu_vector.h"
#include "tess_isa.h"

/* An image of SIDE², whose PSFs reach less far than candidates are apart. */
enum { SIDE = 64, HALF_X = 20, HALF_Y = 13, WIDTH = 2 * HALF_X + 1, MOST = 5 };
enum { PSFS = MOST * (MOST + 1) / 2, RUNS = 90 };

typedef struct scene {
    double psf[2 * HALF_Y + 1][WIDTH][PSFS]; /* in single precision */
    float single[(2 * HALF_Y + 1) * WIDTH * PSFS];
    double both[(2 * HALF_Y + 1) * WIDTH * PSFS];
    const void *row[2][2 * HALF_Y + 1];
    cpu_run run[RUNS];
    int64_t count;
    double value[RUNS * SIDE * MOST], expected[RUNS * SIDE * MOST], factor[RUNS * SIDE];
} scene;

static double number(void)
{
    return (double)(rand() % 2001 - 1000) / 1000;
}

/* Runs of 1 to 40 pixels anywhere, and `psfs` values a pixel side by side. */
static void make_scene(scene *with, int layers, int psfs)
{
    with->count = 0;
    for (int y = 0; y < 2 * HALF_Y + 1; ++y) {
        for (int k = 0; k < WIDTH * psfs; ++k) {
            const int64_t at = (int64_t)y * WIDTH * psfs + k;
            with->single[at] = (float)number();
            with->both[at] = with->psf[y][k / psfs][k % psfs] =
                (double)with->single[at];
        }
        with->row[0][y] = with->single + y * WIDTH * psfs;
        with->row[1][y] = with->both + y * WIDTH * psfs;
    }
    for (int r = 0; r < RUNS; ++r) {
        const int count = 1 + rand() % (r % 3 == 0 ? 40 : 4);
        with->run[r] = (cpu_run){with->count, count, rand() % (SIDE - count + 1),
                                 rand() % SIDE, 0};
        with->count += count;
    }
    for (int64_t k = 0; k < with->count; ++k)
        with->factor[k] = fabs(number());
    for (int64_t k = 0; k < with->count * layers; ++k)
        with->value[k] = with->expected[k] = number();
}

static double psf_at(const scene *with, int64_t dx, int64_t dy, int psf)
{
    if (llabs(dx) > HALF_X || llabs(dy) > HALF_Y) return 0;
    return with->psf[dy + HALF_Y][dx + HALF_X][psf];
}

/* By the definition; the largest that is left. */
static double subtract_literally(scene *with, const cpu_component *of, bool has_factor,
                                 bool positive)
{
    double largest = 0;
    for (int r = 0; r < RUNS; ++r)
        for (int k = 0; k < with->run[r].count; ++k) {
            const int64_t at = with->run[r].first + k;
            double *value = with->expected + at * of->num_layers;
            for (int u = 0; u < of->num_layers; ++u)
                for (int t = 0; t < of->num_layers; ++t)
                    value[u] -= of->value[t] * psf_at(with, with->run[r].x + k - of->x,
                                                      with->run[r].y - of->y,
                                                      clean_layers_psf(t, u));
            const double metric = value[0] * (has_factor ? with->factor[at] : 1);
            largest = fmax(largest, positive ? metric : fabs(metric));
        }
    return largest;
}

/* Sums of MOST products of numbers up to 1 differ by roundings. */
static void check_values(const scene *with, int64_t values)
{
    for (int64_t k = 0; k < values; ++k)
        assert_true(fabs(with->value[k] - with->expected[k]) < 1e-14);
}

static void check_sums(const cpu_vector *vector, int layers, int precision)
{
    static scene with;
    const double flux[MOST] = {.7, -.4, .2, .9, -.1};
    for (int turn = 0; turn < 4; ++turn) {
        const bool has_factor = turn & 1, positive = turn & 2;
        const cpu_component of = {turn * 21, 63 - turn * 20, layers, flux, NULL};
        const cpu_psf psf = {with.row[precision], HALF_X, HALF_Y};
        make_scene(&with, layers, layers * (layers + 1) / 2);
        const double expected = subtract_literally(&with, &of, has_factor, positive);
        const double largest = vector->subtract_sums[precision](
            with.run, RUNS, &psf, &of, has_factor ? with.factor : NULL, positive,
            with.value);
        check_values(&with, with.count * layers);
        assert_true(fabs(largest - expected) < 1e-14);
    }
}

static void check_image(const cpu_vector *vector, int precision)
{
    static scene with;
    const double flux = -.6;
    const cpu_component of = {30, 40, 1, &flux, NULL};
    const cpu_psf psf = {with.row[precision], HALF_X, HALF_Y};
    make_scene(&with, 1, 1);
    const double largest = subtract_literally(&with, &of, false, false);
    vector->subtract[precision](with.run, RUNS, &psf, &of, 0, with.value);
    check_values(&with, with.count);
    assert_true(fabs(vector->largest_value(with.value, with.count, false) - largest) <
                1e-14);
}

static void test_subtract(void **state)
{
    const cpu_vector *const table[TESS_NUM_ISA] = TESS_ISA_TABLES(cpu_vector);
    for (int isa = 0; isa <= (int)tess_isa_best(); ++isa)
        for (int precision = 0; precision < 2; ++precision) {
            check_image(table[isa], precision);
            for (int layers = 1; layers <= MOST; ++layers)
                check_sums(table[isa], layers, precision);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_subtract)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
