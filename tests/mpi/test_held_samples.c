/* Visibility sets on a device: it holds the samples from image to image. Copies to it
 * and from it, and sorts, are counted; without room the samples are loaded for every
 * image, and the images are the same, bit by bit. Without a GPU its emulation is
 * tested. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counted_copies.h"
#include "crowded_rows.h"
#include "full_device.h"
#include "pipeline.h"
#include "rank_tests.h"
#include "tess_backend.h"
#include "tess_device.h"
#include "tess_planes.h"
#include "tess_tile_cuda.h"

enum {
    SKIPPED = 77,
    NX = 24,
    NY = 20,
    ROWS = 3000,
    CHANS = 4,
    VIS = ROWS * CHANS,
    PIXELS = NX * NY,
    POLS = 2,
    CYCLES = 4
};

static tess_comm *world;

/* ---- what is counted ---- */

static int64_t sorts;

tess_status __real_tile_cuda_sort(const tess_grid_plan *plan,
                                  const tess_device_samples *samples, bool skip_ignored,
                                  struct CUstream_st *stream, tile_cuda_list *list);
tess_status __wrap_tile_cuda_sort(const tess_grid_plan *plan,
                                  const tess_device_samples *samples, bool skip_ignored,
                                  struct CUstream_st *stream, tile_cuda_list *list);
tess_status __real_tess_device_copy_of(const void *host, int64_t bytes,
                                       const char *what, const void **out);
tess_status __wrap_tess_device_copy_of(const void *host, int64_t bytes,
                                       const char *what, const void **out);

tess_status __wrap_tile_cuda_sort(const tess_grid_plan *plan,
                                  const tess_device_samples *samples, bool skip_ignored,
                                  struct CUstream_st *stream, tile_cuda_list *list)
{
    ++sorts;
    return __real_tile_cuda_sort(plan, samples, skip_ignored, stream, list);
}

tess_status __wrap_tess_device_copy_of(const void *host, int64_t bytes,
                                       const char *what, const void **out)
{
    count_copy(bytes);
    return __real_tess_device_copy_of(host, bytes, what, out);
}

/* ---- a set ---- */

typedef struct scene {
    double uvw_m[ROWS][3], freq_hz[CHANS];
    double vis[VIS][POLS][2], weight[VIS];
    double model[CYCLES][POLS][PIXELS];
} scene;

static scene *make_scene(void)
{
    scene *s = calloc(1, sizeof *s);
    draw from = {71};
    assert_non_null(s);
    draw_crowded_rows(&from, ROWS, 300, s->uvw_m, CHANS, s->freq_hz);
    draw_samples(&from, VIS, 2 * POLS, &s->vis[0][0][0], s->weight);
    for (int m = 0; m < CYCLES; ++m)
        for (int p = 0; p < POLS; ++p)
            for (int k = 0; k < 6; ++k)
                s->model[m][p][draw_index(&from, PIXELS)] = draw_normal(&from);
    return s;
}

static void residuals(const scene *s, double accuracy, int first, int count,
                      double *residual)
{
    int64_t row;
    const pipeline all = {.comm = world,
                          .geom = {.nx = NX, .ny = NY, .scale_rad = 0.12 / NX},
                          .gridding = {.accuracy = accuracy, .w_mode = TESS_W_AUTO},
                          .layout = {.threads = 1, .reproducible = true},
                          .num_pol = POLS,
                          .num_rows = ROWS,
                          .num_chan = CHANS,
                          .uvw_m = &s->uvw_m[0][0],
                          .freq_hz = s->freq_hz};
    const pipeline with = pipeline_share(&all, &row);
    sorts = copied.bytes = 0;
    assert_int_equal(pipeline_residuals(&with, &s->vis[row * CHANS][0][0],
                                        s->weight + row * CHANS, count,
                                        &s->model[first][0][0], residual, NULL),
                     TESS_OK);
}

/* The largest number of sorts of any rank. A rank without bricks sorts nothing. */
static int64_t most_sorts(void)
{
    int64_t most = sorts;
    assert_int_equal(tess_comm_allreduce_i64(world, &most, 1, TESS_MAX), TESS_OK);
    return most;
}

/* ---- tests ---- */

/* The samples are sorted once for all images. On one rank, where nothing else passes
 * through the host's memory but images, models and lists of bricks, a further cycle
 * copies less than half of the samples' visibilities. */
static void test_loaded_once(void **state)
{
    (void)state;
    scene *s = make_scene();
    double(*residual)[POLS][PIXELS] = calloc(CYCLES, sizeof *residual);
    assert_non_null(residual);
    residuals(s, 1e-8, 0, 1, &residual[0][0][0]);
    assert_int_equal(most_sorts(), 1);
    const int64_t once = copied.bytes;
    residuals(s, 1e-8, 0, CYCLES, &residual[0][0][0]);
    assert_int_equal(most_sorts(), 1);
    if (tess_comm_size(world) == 1)
        assert_in_range((copied.bytes - once) / (CYCLES - 1), 1, sizeof s->vis / 2);
    free(residual);
    free(s);
}

/* Residuals that the device makes of samples that it holds are those that the processor
 * makes of what the device predicts. */
static void test_same_without_room(void **state)
{
    (void)state;
    static const double accuracy[] = {1e-4, 1e-8};
    enum { MODELS = 2 };
    scene *s = make_scene();
    double(*held)[POLS][PIXELS] = calloc(MODELS, sizeof *held);
    double(*loaded)[POLS][PIXELS] = calloc(MODELS, sizeof *loaded);
    assert_non_null(held);
    assert_non_null(loaded);
    for (int a = 0; a < 2; ++a) {
        residuals(s, accuracy[a], 0, MODELS, &held[0][0][0]);
        is_full = true;
        residuals(s, accuracy[a], 0, MODELS, &loaded[0][0][0]);
        is_full = false;
        assert_true(most_sorts() >= 2 * MODELS);
        assert_memory_equal(held, loaded, MODELS * sizeof *held);
    }
    free(held);
    free(loaded);
    free(s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loaded_once),
        cmocka_unit_test(test_same_without_room),
    };
    const tess_backend *backend;
    setenv("TESS_EMULATED", "1000000000000", 0);
    setenv("TESS_TEST_BACKEND", "cuda", 1);
    if (tess_backend_find("cuda", &backend) != TESS_OK) {
        fprintf(stderr, "skipped: %s\n", tess_error_message());
        return SKIPPED;
    }
    if (tess_comm_start(&argc, &argv, &world) != TESS_OK) return 1;
    TEST_ON_RANKS(world, tests);
    tess_comm_finish(world);
    return 0;
}
