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
#include <string.h>

#include "draw.h"
#include "pipeline.h"
#include "screen.h"
#include "tess_decode.h"
#include "tess_log.h"
#include "tess_vis.h"
#include "tile_tables.h"

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
 * random, is raised by the grid correction's gain on each axis (grid/kernel/tess_kernel.h). */
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
    for (double accuracy = 1e-2; accuracy > 0.9e-12; accuracy /= 2.5) {
        compare(accuracy, true, seen);
        compare(accuracy, false, seen);
    }
    for (int k = 0; k <= TESS_MAX_SUPPORT; ++k)
        distinct += seen[k];
    /* the planner skips few */
    assert_true(distinct >= 10);
}

/* ---- decoding of UVFITS ---- */

enum { TRIPLES = 70 };

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Bytes of big-endian singles, some of them zeros, infinite or none. */
static void make_bytes(unsigned char *bytes)
{
    static const uint32_t odd[] = {0,           0x80000000u, 0x7f800000u,
                                   0xff800000u, 0x7fc00001u, 0xffc00001u,
                                   0x7f800001u, 1,           0x80000001u};
    draw random = {11};
    for (int k = 0; k < 3 * TRIPLES; ++k) {
        const uint32_t any = (uint32_t)draw_index(&random, INT32_MAX) * 2u + (k & 1);
        const uint32_t word = k % 2 ? any : odd[k / 2 % 9];
        for (int j = 0; j < 4; ++j)
            bytes[4 * k + j] = (unsigned char)(word >> (24 - 8 * j));
    }
}

static void check_triples(const decode_table *table, const unsigned char *bytes,
                          int count)
{
    float vis[2 * TRIPLES + 1], weight[TRIPLES + 1];
    vis[2 * count] = weight[count] = 17;
    table->triples(bytes, count, vis, weight);
    assert_true(vis[2 * count] == 17 && weight[count] == 17);
    for (int k = 0; k < 3 * count; ++k) {
        const unsigned char *b = bytes + 4 * k;
        const uint32_t word =
            (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
        float value;
        memcpy(&value, &word, sizeof value);
        if (k % 3 < 2)
            assert_int_equal(bits_of(vis[k / 3 * 2 + k % 3]), word);
        else if (value <= 0)
            assert_true(weight[k / 3] == TESS_WEIGHT_FLAGGED);
        else
            assert_int_equal(bits_of(weight[k / 3]), word);
    }
}

/* Bit by bit what each byte says, whatever the length and the address. */
static void test_decoding(void **state)
{
    static const char *const name[] = {"portable", "avx2", "knl", "avx512"};
    unsigned char bytes[12 * TRIPLES + 4], moved[12 * TRIPLES + 4];
    make_bytes(bytes);
    for (int k = 0; k < 4; ++k) {
        setenv("TESS_ISA", name[k], 1);
        for (int shift = 0; shift < 4; ++shift) {
            memcpy(moved + shift, bytes, 12 * TRIPLES);
            for (int count = 0; count <= TRIPLES; ++count)
                check_triples(decode_table_best(), moved + shift, count);
        }
    }
    unsetenv("TESS_ISA");
}

/* The environment asks for a table and gets it where the processor has it. */
static void test_choice(void **state)
{
    setenv("TESS_ISA", "portable", 1);
    assert_ptr_equal(tile_table_best(), &tile_table_portable);
    assert_ptr_equal(screen_table_best(), &screen_table_portable);
    assert_ptr_equal(decode_table_best(), &decode_table_portable);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        setenv("TESS_ISA", "avx2", 1);
        assert_ptr_equal(tile_table_best(), &tile_table_avx2);
        assert_ptr_equal(screen_table_best(), &screen_table_avx2);
    }
#ifndef TESS_ISA_NO_AVX512
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd")) {
        setenv("TESS_ISA", "knl", 1);
        assert_ptr_equal(tile_table_best(), &tile_table_knl);
        assert_ptr_equal(screen_table_best(), &screen_table_knl);
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        unsetenv("TESS_ISA");
        assert_ptr_equal(tile_table_best(), &tile_table_avx512);
        assert_ptr_equal(decode_table_best(), &decode_table_avx512);
    }
#endif
#endif
    unsetenv("TESS_ISA");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_decoding),
        cmocka_unit_test(test_every_support),
    };
    tess_log_start(0, TESS_LOG_QUIET);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
