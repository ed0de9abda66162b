/* The loops of every instruction set give the same images and predictions to rounding,
 * for every support, in both precisions. Sets that this processor lacks fall back to a
 * lesser one and compare with themselves. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "draw.h"
#include "pipeline.h"
#include "screen.h"
#include "tess_log.h"
#include "tile.h"

enum { NX = 26, NY = 31, ROWS = 40, CHANS = 7, VIS = ROWS * CHANS, PIXELS = NX * NY };

typedef struct scene {
    pipeline with;
    pipeline_facts facts;
    double uvw_m[3 * ROWS], freq_hz[CHANS], vis[2 * VIS], model[PIXELS];
} scene;

static void make_scene(scene *s, double accuracy, bool do_w)
{
    draw random = {3};
    for (int k = 0; k < 3 * ROWS; ++k)
        s->uvw_m[k] = draw_uniform(&random, -1, 1) * (k % 3 == 2 ? 300.0 : 20.0);
    for (int c = 0; c < CHANS; ++c)
        s->freq_hz[c] = 2.9979e8 * (1 + 0.03 * c);
    for (int k = 0; k < 2 * VIS; ++k)
        s->vis[k] = draw_normal(&random);
    for (int k = 0; k < PIXELS; ++k)
        s->model[k] = draw_normal(&random);
    s->with =
        (pipeline){.geom = {.nx = NX, .ny = NY, .scale_rad = 0.01},
                   .gridding = {accuracy, do_w ? TESS_W_STACKING : TESS_W_NONE, "cpu"},
                   .layout = {.threads = 1},
                   .num_pol = 1,
                   .num_rows = ROWS,
                   .num_chan = CHANS,
                   .uvw_m = s->uvw_m,
                   .freq_hz = s->freq_hz,
                   .facts = &s->facts};
    assert_int_equal(tess_comm_self(&s->with.comm), TESS_OK);
}

/* ‖a − b‖ / ‖b‖ */
static double difference(const double *a, const double *b, int count)
{
    double sum = 0, size = 0;
    for (int k = 0; k < count; ++k) {
        sum += (a[k] - b[k]) * (a[k] - b[k]);
        size += b[k] * b[k];
    }
    return sqrt(sum / size);
}

/* The sums differ in order and contraction: each of a few roundings per value, at
 * random, is raised by the grid correction's gain on each axis (grid/tess_kernel.h). */
static double rounding(const pipeline_facts *facts)
{
    const double unit = facts->is_double ? 0x1p-53 : 0x1p-24;
    return 8 * unit * pow(facts->kernel.amplification, facts->do_w ? 3 : 2);
}

static void run(const scene *s, const char *isa, double *dirty, double *psf,
                double *vis)
{
    assert_int_equal(setenv("TESS_ISA", isa, 1), 0);
    assert_int_equal(pipeline_image(&s->with, s->vis, NULL, dirty, psf, NULL), TESS_OK);
    assert_int_equal(pipeline_predict(&s->with, s->model, vis), TESS_OK);
    unsetenv("TESS_ISA");
}

static void compare(double accuracy, bool do_w, int *seen)
{
    static const char *const wider[] = {"avx2", "knl", "avx512"};
    static double dirty[2][PIXELS], psf[2][PIXELS], vis[2][2 * VIS];
    static scene s;
    make_scene(&s, accuracy, do_w);
    run(&s, "portable", dirty[0], psf[0], vis[0]);
    seen[s.facts.kernel.support] = 1;
    for (int k = 0; k < 3; ++k) {
        run(&s, wider[k], dirty[1], psf[1], vis[1]);
        const double tolerance = rounding(&s.facts);
        assert_true(difference(dirty[1], dirty[0], PIXELS) <= tolerance);
        assert_true(difference(psf[1], psf[0], PIXELS) <= tolerance);
        assert_true(difference(vis[1], vis[0], 2 * VIS) <= tolerance);
    }
    tess_comm_free(s.with.comm);
}

static void test_every_support(void **state)
{
    int seen[TESS_MAX_SUPPORT + 1] = {0}, distinct = 0;
    for (double accuracy = 1e-2; accuracy > 0.9e-12; accuracy /= 4) {
        compare(accuracy, true, seen);
        compare(accuracy, false, seen);
    }
    for (int k = 0; k <= TESS_MAX_SUPPORT; ++k)
        distinct += seen[k];
    /* the planner skips few */
    assert_true(distinct >= 10);
}

/* The environment asks for a table and gets it where the processor has it. */
static void test_choice(void **state)
{
    setenv("TESS_ISA", "portable", 1);
    assert_ptr_equal(tile_table_best(), &tile_table_portable);
    assert_ptr_equal(screen_table_best(), &screen_table_portable);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        setenv("TESS_ISA", "avx2", 1);
        assert_ptr_equal(tile_table_best(), &tile_table_avx2);
        assert_ptr_equal(screen_table_best(), &screen_table_avx2);
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd")) {
        setenv("TESS_ISA", "knl", 1);
        assert_ptr_equal(tile_table_best(), &tile_table_knl);
        assert_ptr_equal(screen_table_best(), &screen_table_knl);
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        unsetenv("TESS_ISA");
        assert_ptr_equal(tile_table_best(), &tile_table_avx512);
    }
#endif
    unsetenv("TESS_ISA");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_every_support),
    };
    tess_log_start(0, TESS_LOG_QUIET);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
