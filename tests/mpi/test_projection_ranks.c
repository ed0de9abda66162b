/* W-projection through the whole pipeline, on any number of ranks: every strategy that
 * the backend has against the CPU's serial one on one rank, and image and prediction as
 * adjoints. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core_backend.h"
#include "draw.h"
#include "pipeline.h"
#include "rank_tests.h"
#include "tess_study.h"

enum { NX = 64, NY = 60, ROWS = 60, CHANS = 3, PIXELS = NX * NY, POLS = 3 };

static tess_comm *world;
static tess_gcf_backend device; /* that is tested */

/* Sums of a few hundred values in two orders, half a unit in the last place of each;
 * tapers of w-projection raise it by less than 10. Factors may leave a tenth of what
 * offsets do, 0.74/Q padding (grid/projection/tess_projection.h). */
static double most_difference(bool is_double, tess_study_strategy strategy)
{
    const double rounding = is_double ? 1e-13 : 3e-6;
    return strategy == TESS_STUDY_FACTORED ? 0.1 * 0.74 / (8 * 2) : rounding;
}

typedef struct scene {
    double uvw_m[ROWS][3], freq_hz[CHANS], vis[ROWS * CHANS * POLS][2];
    double weight[ROWS * CHANS], model[POLS * PIXELS];
} scene;

/* What is made of it. */
typedef struct results {
    double dirty[POLS * PIXELS], psf[PIXELS], predicted[ROWS * CHANS * POLS][2];
} results;

static scene *make_scene(void)
{
    scene *s = calloc(1, sizeof *s);
    draw from = {.state = 5};
    assert_non_null(s);
    for (int c = 0; c < CHANS; ++c)
        s->freq_hz[c] = 1e8 * (1 + 0.02 * c);
    for (int k = 0; k < ROWS; ++k) {
        const double spread = k % 3 ? 60.0 : 480.0;
        s->uvw_m[k][0] = draw_uniform(&from, -spread, spread);
        s->uvw_m[k][1] = draw_uniform(&from, -spread, spread);
        s->uvw_m[k][2] = draw_uniform(&from, -1000, 1000);
    }
    for (int k = 0; k < ROWS * CHANS * POLS; ++k)
        for (int i = 0; i < 2; ++i)
            s->vis[k][i] = draw_normal(&from);
    for (int k = 0; k < ROWS * CHANS; ++k)
        s->weight[k] = k % 11 == 4 ? 0 : draw_uniform(&from, 0.5, 1.5);
    for (int k = 0; k < POLS * PIXELS; ++k)
        s->model[k] = draw_normal(&from);
    return s;
}

/* The share of a rank. */
static int64_t first_row(tess_comm *comm, int rank)
{
    return (int64_t)ROWS * rank / tess_comm_size(comm);
}

static pipeline part_of(const scene *s, tess_comm *comm, int num_pol, bool is_double,
                        tess_study_strategy strategy)
{
    const int rank = tess_comm_rank(comm);
    const int64_t first = first_row(comm, rank);
    pipeline out = {
        .comm = comm,
        .geom = {.nx = NX, .ny = NY, .scale_rad = 0.12 / NX},
        .gridding = {.accuracy = is_double ? 1e-7 : 1e-4, .w_mode = TESS_W_PROJECTION},
        .layout = {.threads = 1},
        .num_pol = num_pol,
        .num_rows = first_row(comm, rank + 1) - first,
        .num_chan = CHANS,
        .uvw_m = s->uvw_m[first],
        .freq_hz = s->freq_hz};
    tess_projection_opts_default(&out.gridding.projection);
    out.gridding.projection.strategy = tess_study_strategy_of(strategy);
    out.gridding.projection.oversampling = 8;
    out.gridding.projection.cached = false;
    return out;
}

static void make_images(const scene *s, const pipeline *with, results *out)
{
    const int64_t first = first_row(with->comm, tess_comm_rank(with->comm)) * CHANS;
    const int64_t count = with->num_rows * CHANS * with->num_pol;
    double(*vis)[2] = malloc(sizeof *vis * (size_t)(count + 1));
    assert_non_null(vis);
    for (int64_t k = 0; k < count; ++k) {
        const int64_t sample = first + k / with->num_pol, pol = k % with->num_pol;
        memcpy(vis[k], s->vis[sample * POLS + pol], sizeof *vis);
    }
    assert_int_equal(
        pipeline_image(with, &vis[0][0], s->weight + first, out->dirty, out->psf, NULL),
        TESS_OK);
    free(vis);
}

static double relative(const double *a, const double *b, int64_t n)
{
    double difference = 0, size = 0;
    for (int64_t k = 0; k < n; ++k) {
        difference += (a[k] - b[k]) * (a[k] - b[k]);
        size += b[k] * b[k];
    }
    return size > 0 ? sqrt(difference / size) : sqrt(difference);
}

static void on_cpu(bool is_cpu)
{
    assert_int_equal(setenv("TESS_TEST_BACKEND",
                            is_cpu || device == TESS_GCF_CPU ? "cpu" : "cuda", 1),
                     0);
}

static void compare(const char *what, tess_study_strategy strategy, bool is_double,
                    const double *found, const double *expected, int64_t count)
{
    const double off = relative(found, expected, count);
    const double most = most_difference(is_double, strategy);
    if (!(off <= most))
        print_message("%s, %s, double %d: %g, not %g\n", what,
                      tess_study_name(strategy), is_double, off, most);
    assert_true(off <= most);
}

/* What one rank makes of all rows on the CPU; the first one tells the others. */
static void make_expected(const scene *s, int num_pol, bool is_double, results *out)
{
    tess_comm *self;
    if (tess_comm_rank(world) == 0) {
        assert_int_equal(tess_comm_self(&self), TESS_OK);
        on_cpu(true);
        const pipeline one = part_of(s, self, num_pol, is_double, TESS_STUDY_SERIAL);
        make_images(s, &one, out);
        assert_int_equal(pipeline_predict(&one, s->model, &out->predicted[0][0]),
                         TESS_OK);
        tess_comm_free(self);
    }
    assert_int_equal(tess_comm_bcast(world, out, sizeof *out, 0), TESS_OK);
}

/* All ranks on the backend against one on the CPU. */
static void compare_strategies(const scene *s, int num_pol, bool is_double)
{
    static results expected, found;
    const int64_t first = first_row(world, tess_comm_rank(world)) * CHANS * num_pol;
    make_expected(s, num_pol, is_double, &expected);
    on_cpu(false);
    for (tess_study_strategy k = 0; k < TESS_STUDY_NUM_STRATEGIES; ++k) {
        if (tess_comm_size(world) > 1 && k != TESS_STUDY_TILED &&
            k != TESS_STUDY_FACTORED)
            continue;
        if (k == TESS_STUDY_COMPUTED) continue; /* w-kernels are no formula */
        const pipeline all = part_of(s, world, num_pol, is_double, k);
        if (tess_study_there(device, k, false)) {
            make_images(s, &all, &found);
            compare("dirty", k, is_double, found.dirty, expected.dirty,
                    num_pol * PIXELS);
            compare("psf", k, is_double, found.psf, expected.psf, PIXELS);
        }
        if (tess_study_there(device, k, true)) {
            assert_int_equal(pipeline_predict(&all, s->model, &found.predicted[0][0]),
                             TESS_OK);
            compare("predicted", k, is_double, &found.predicted[0][0],
                    expected.predicted[first], 2 * all.num_rows * CHANS * num_pol);
        }
    }
}

/* One image, and groups of several that are gridded together: 4 and 1 with a PSF. */
static void test_strategies(void **state)
{
    (void)state;
    scene *s = make_scene();
    for (int is_double = 0; is_double < 2; ++is_double) {
        compare_strategies(s, 1, is_double > 0);
        compare_strategies(s, POLS, is_double > 0);
    }
    free(s);
}

/* Some rows at a time make the same image. */
static void test_parts(void **state)
{
    (void)state;
    static results whole, parts;
    scene *s = make_scene();
    pipeline with = part_of(s, world, 1, true, TESS_STUDY_TILED);
    make_images(s, &with, &whole);
    assert_int_equal(pipeline_predict(&with, s->model, &whole.predicted[0][0]),
                     TESS_OK);
    with.layout.forced.chunk = 4 * CHANS;
    make_images(s, &with, &parts);
    assert_int_equal(pipeline_predict(&with, s->model, &parts.predicted[0][0]),
                     TESS_OK);
    compare("parts", TESS_STUDY_TILED, true, parts.dirty, whole.dirty, PIXELS);
    compare("parts, predicted", TESS_STUDY_TILED, true, &parts.predicted[0][0],
            &whole.predicted[0][0], 2 * with.num_rows * CHANS);
    free(s);
}

/* Re<V, P x> = <Pᴴ V, x> with one plan, to rounding. */
static void test_adjoint(void **state)
{
    (void)state;
    static results made;
    scene *s = make_scene();
    for (int k = 0; k < ROWS * CHANS; ++k)
        s->weight[k] = 1;
    pipeline with = part_of(s, world, 1, true, TESS_STUDY_TILED);
    const int64_t first = first_row(world, tess_comm_rank(world)) * CHANS;
    double sums[3] = {0}, right = 0, norm = 0; /* <V, P x>, |V|², |P x|² */
    with.adjoint = true;
    make_images(s, &with, &made);
    assert_int_equal(pipeline_predict(&with, s->model, &made.predicted[0][0]), TESS_OK);
    for (int64_t k = 0; k < with.num_rows * CHANS; ++k)
        for (int i = 0; i < 2; ++i) {
            const double v = s->vis[(first + k) * POLS][i], p = made.predicted[k][i];
            sums[0] += v * p;
            sums[1] += v * v;
            sums[2] += p * p;
        }
    assert_int_equal(tess_comm_allreduce_f64(world, sums, 3, TESS_SUM), TESS_OK);
    for (int k = 0; k < PIXELS; ++k)
        right += made.dirty[k] * s->model[k];
    norm = sqrt(sums[1] * sums[2]);
    assert_true(norm > 0);
    /* the dirty image is divided by the sum of weights */
    assert_true(fabs(sums[0] - right * ROWS * CHANS) <= 1e-12 * norm);
    free(s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_strategies),
                                       cmocka_unit_test(test_parts),
                                       cmocka_unit_test(test_adjoint)};
    device = strcmp(test_backend(), "cuda") == 0 ? TESS_GCF_DEVICE : TESS_GCF_CPU;
    if (tess_comm_start(&argc, &argv, &world) != TESS_OK) return 1;
    TEST_ON_RANKS(world, tests);
    tess_comm_finish(world);
    return 0;
}
