/* Convolutions of frames with a PSF: every step against the sum of the definition, in
 * double precision, and against the literal step within the bound that the benchmark
 * states; what wraps around; and what the benchmark tells and refuses. */
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
#include "frame_step.h"
#include "tess_backend.h"
#include "tess_bench_convolve.h"
#include "tess_isa.h"
#include "tess_mem.h"

static bool on_device; /* is there a GPU, or an emulated one? */

/* Odd and even sizes; frames that are no multiple of a vector, of rows that are made
 * together, of a block or of a tile; PSFs as large as the frame, wider than high, and
 * of several parts on a GPU. */
static const frame_shape shapes[] = {
    {1, 1, 1, 1},   {7, 5, 3, 3},      {7, 5, 7, 5},    {8, 6, 8, 6},
    {5, 9, 4, 2},   {101, 37, 11, 11}, {37, 131, 1, 9}, {530, 67, 6, 3},
    {64, 3, 17, 3}, {29, 141, 26, 13}, {1, 70, 1, 11},  {1043, 2, 2, 2}};
enum { NUM_SHAPES = sizeof shapes / sizeof *shapes };

/* A frame and a PSF with values of both signs, what the definition gives in double
 * precision, and results of the literal and of another step. */
typedef struct scene {
    frame_shape shape;
    float *psf, *frame, *literal, *out;
    double *exact;
} scene;

static int64_t modulo(int64_t at, int64_t n)
{
    return (at % n + n) % n;
}

static void sum_exactly(scene *s)
{
    const frame_shape *shape = &s->shape;
    for (int64_t y = 0; y < shape->ny; ++y)
        for (int64_t x = 0; x < shape->nx; ++x) {
            double sum = 0;
            for (int64_t j = 0; j < shape->ky; ++j)
                for (int64_t i = 0; i < shape->kx; ++i)
                    sum += (double)s->psf[j * shape->kx + i] *
                           (double)s->frame[modulo(y + j - shape->ky / 2, shape->ny) *
                                                shape->nx +
                                            modulo(x + i - shape->kx / 2, shape->nx)];
            s->exact[y * shape->nx + x] = sum;
        }
}

static void make_scene(const frame_shape *shape, scene *s)
{
    const int64_t pixels = shape->nx * shape->ny, taps = shape->kx * shape->ky;
    draw random = {11};
    *s = (scene){.shape = *shape};
    s->psf = tess_alloc(taps, sizeof *s->psf);
    s->frame = tess_alloc(pixels, sizeof *s->frame);
    s->literal = tess_alloc(pixels, sizeof *s->literal);
    s->out = tess_alloc(pixels, sizeof *s->out);
    s->exact = tess_alloc(pixels, sizeof *s->exact);
    for (int64_t k = 0; k < taps; ++k)
        s->psf[k] = (float)draw_uniform(&random, -1, 2);
    for (int64_t k = 0; k < pixels; ++k)
        s->frame[k] = (float)draw_uniform(&random, -2, 1);
    sum_exactly(s);
}

static void free_scene(scene *s)
{
    tess_free(s->psf);
    tess_free(s->frame);
    tess_free(s->literal);
    tess_free(s->out);
    tess_free(s->exact);
}

/* Twice, so that what a plan keeps has to survive a frame. */
static void run_step(const frame_step *step, const scene *s, int threads, float *out)
{
    frame_plan *plan = NULL;
    assert_int_equal(step->create(&s->shape, s->psf, threads, &plan), TESS_OK);
    for (int k = 0; k < 2; ++k) {
        memset(out, 0xff, (size_t)(s->shape.nx * s->shape.ny) * sizeof *out);
        if (step->upload) assert_int_equal(step->upload(plan, s->frame), TESS_OK);
        assert_int_equal(step->execute(plan, s->frame, out), TESS_OK);
        if (step->download) assert_int_equal(step->download(plan, out), TESS_OK);
    }
    step->destroy(plan);
    step->destroy(NULL);
}

/* Every pixel within 2e-5 of Σ|psf| max|frame|: 325 products in single precision are
 * off by 325 · 6e-8 at most, and transforms of these sizes by less. */
static void check_exactly(const scene *s, const float *out)
{
    double sum = 0, largest = 0;
    for (int64_t k = 0; k < s->shape.kx * s->shape.ky; ++k)
        sum += fabs((double)s->psf[k]);
    for (int64_t k = 0; k < s->shape.nx * s->shape.ny; ++k)
        largest = fmax(largest, fabs((double)s->frame[k]));
    for (int64_t k = 0; k < s->shape.nx * s->shape.ny; ++k)
        assert_true(fabs((double)out[k] - s->exact[k]) <= 2e-5 * sum * largest);
}

static void check_step(const frame_step *step, int threads)
{
    for (int k = 0; k < NUM_SHAPES; ++k) {
        scene s;
        make_scene(&shapes[k], &s);
        run_step(&frame_step_literal, &s, 1, s.literal);
        run_step(step, &s, threads, s.out);
        check_exactly(&s, s.out);
        const frame_error error =
            frame_compare(step, &s.shape, s.psf, s.frame, s.literal, s.out);
        assert_true(error.difference <= error.bound);
        assert_true(error.bound > 0 && error.bound < 1e-4);
        free_scene(&s);
    }
}

static void test_steps(void **state)
{
    check_step(&frame_step_literal, 1);
    check_step(&frame_step_lines, 1);
    check_step(&frame_step_simd, 1);
    for (int threads = 1; threads <= 3; ++threads) {
        check_step(&frame_step_blocks, threads);
        check_step(&frame_step_fft, threads);
    }
}

/* Sets that this processor lacks fall back to a lesser one. */
static void test_instruction_sets(void **state)
{
    for (int isa = 0; isa < TESS_NUM_ISA; ++isa) {
        setenv("TESS_ISA", tess_isa_name((tess_isa)isa), 1);
        check_step(&frame_step_simd, 1);
        check_step(&frame_step_blocks, 2);
    }
    unsetenv("TESS_ISA");
}

static void test_device_steps(void **state)
{
    if (!on_device) skip();
    assert_non_null(frame_device_step(0));
    for (int k = 0; frame_device_step(k); ++k)
        check_step(frame_device_step(k), 1);
}

/* A PSF with one tap moves the frame, and what leaves it comes in on the other side. */
static void test_one_tap_moves(void **state)
{
    const frame_shape shape = {9, 7, 5, 3};
    const frame_step *steps[] = {&frame_step_literal, &frame_step_lines,
                                 &frame_step_simd, &frame_step_blocks};
    scene s;
    make_scene(&shape, &s);
    memset(s.psf, 0, 15 * sizeof *s.psf);
    s.psf[0] = 1; /* one row and two columns before the pixel */
    for (int k = 0; k < 4; ++k) {
        run_step(steps[k], &s, 1, s.out);
        assert_true(s.out[0] == s.frame[6 * 9 + 7]);
        assert_true(s.out[6 * 9 + 8] == s.frame[5 * 9 + 6]);
        assert_true(s.out[9 + 2] == s.frame[0]);
    }
    free_scene(&s);
}

/* A single pixel that is wrong, or not finite, is found. */
static void test_comparison(void **state)
{
    static const float wrong[] = {1e-3F, INFINITY, NAN};
    const frame_step *steps[] = {&frame_step_lines, &frame_step_fft};
    scene s;
    make_scene(&shapes[5], &s);
    run_step(&frame_step_literal, &s, 1, s.literal);
    for (int k = 0; k < 6; ++k) {
        double sum = 0;
        for (int t = 0; t < 121; ++t)
            sum += fabs((double)s.psf[t]);
        memcpy(s.out, s.literal, 101 * 37 * sizeof *s.out);
        /* the rms of 3737 pixels sees a 61st of it */
        s.out[100] += (k < 2 ? 10 : 1) * (float)sum * wrong[k / 2];
        const frame_error error =
            frame_compare(steps[k % 2], &s.shape, s.psf, s.frame, s.literal, s.out);
        assert_false(error.difference <= error.bound);
    }
    free_scene(&s);
}

/* What the benchmark told. */
typedef struct heard {
    int count, literal, lines, simd, blocks, fft, device, most_threads;
} heard;

static void hear(const tess_bench_convolve_row *row, void *context)
{
    heard *h = context;
    ++h->count;
    h->literal += strcmp(row->step, "literal") == 0;
    h->lines += strcmp(row->step, "lines") == 0;
    h->simd += strcmp(row->step, "simd") == 0;
    h->blocks += strcmp(row->step, "blocks") == 0;
    h->fft += strcmp(row->step, "fft") == 0;
    h->device += row->threads == 0;
    if (row->threads > h->most_threads) h->most_threads = row->threads;
    assert_true(row->frame_s > 0);
    assert_true(row->difference <= row->bound);
    assert_true(row->what[0] != '\0');
}

static void test_benchmark(void **state)
{
    const tess_bench_convolve_case what = {.nx = 97,
                                           .ny = 45,
                                           .kx = 5,
                                           .ky = 7,
                                           .threads = 3,
                                           .repeat = 2,
                                           .device = on_device};
    heard h = {0};
    int enough = 0;
    assert_int_equal(tess_bench_convolve_run(&what, hear, &h, &enough), TESS_OK);
    assert_true(enough >= 1 && enough <= 3);
    assert_int_equal(h.literal + h.lines + h.simd, 3);
    assert_int_equal(h.blocks, 3); /* by 1, 2 and 3 threads */
    assert_int_equal(h.fft, enough > 1 ? 2 : 1);
    assert_int_equal(h.device, on_device ? 2 : 0);
    assert_int_equal(h.count, 3 + h.blocks + h.fft + h.device);
    assert_int_equal(h.most_threads, 3);
}

static void test_refusals(void **state)
{
    tess_bench_convolve_case what = {
        .nx = 9, .ny = 7, .kx = 10, .ky = 3, .threads = 1, .repeat = 1};
    heard h = {0};
    int enough = -1;
    assert_int_equal(tess_bench_convolve_run(&what, hear, &h, &enough), TESS_ERR_USAGE);
    what.kx = 3;
    what.ky = 8;
    assert_int_equal(tess_bench_convolve_run(&what, hear, &h, &enough), TESS_ERR_USAGE);
    what.nx = INT64_MAX / 64;
    what.ky = 3;
    assert_int_equal(tess_bench_convolve_run(&what, hear, &h, &enough), TESS_ERR_ALLOC);
    assert_int_equal(h.count, 0);
    assert_int_equal(enough, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),        cmocka_unit_test(test_instruction_sets),
        cmocka_unit_test(test_device_steps), cmocka_unit_test(test_one_tap_moves),
        cmocka_unit_test(test_comparison),   cmocka_unit_test(test_benchmark),
        cmocka_unit_test(test_refusals)};
    const int anywhere = -1;
    const tess_backend *cuda = NULL;
    setenv("TESS_EMULATED", "1000000000000", 0);
    on_device = tess_backend_find("cuda", &cuda) == TESS_OK &&
                cuda->start(&anywhere, 0, 1) == TESS_OK;
    tess_error_clear();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
