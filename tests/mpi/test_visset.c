/* Visibility sets: residual images of one set for several models, against direct sums,
 * against fresh sets, and on several ranks against one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core_backend.h"
#include "crowded_rows.h"
#include "direct_sum.h"
#include "pipeline.h"
#include "rank_tests.h"

enum {
    NX = 50,
    NY = 41,
    ROWS = 120,
    CHANS = 4,
    VIS = ROWS * CHANS,
    PIXELS = NX * NY,
    POLS = 2,
    POINTS = 6
};

static tess_comm *world;

/* Rows, values of two polarisations, weights, and a sequence of models. */
enum { CYCLES = 20, FEW_CYCLES = 6 }; /* with tests/run.sh --full; without */

typedef struct scene {
    double uvw_m[ROWS][3], freq_hz[CHANS];
    double vis[VIS][POLS][2], weight[VIS];
    double model[CYCLES][POLS][PIXELS];
    double residual[CYCLES][POLS][PIXELS], fresh[POLS][PIXELS];
    double psf[2][PIXELS];
} scene;

static const tess_geom geom = {.nx = NX, .ny = NY, .scale_rad = 0.12 / NX};

static scene *make_scene(void)
{
    scene *s = calloc(1, sizeof *s);
    draw from = {53};
    assert_non_null(s);
    /* some 20 planes, several windows and blocks of them, each of which ranks exchange
     */
    draw_crowded_rows(&from, ROWS, 1000, s->uvw_m, CHANS, s->freq_hz);
    draw_samples(&from, VIS, 2 * POLS, &s->vis[0][0][0], s->weight);
    for (int m = 0; m < CYCLES; ++m)
        for (int p = 0; p < POLS; ++p)
            for (int k = 0; k < POINTS; ++k) {
                const int at = (int)draw_uniform(&from, 0, PIXELS);
                s->model[m][p][at] = draw_normal(&from);
            }
    return s;
}

/* This rank's rows of the scene. */
static pipeline part_of(const scene *s, tess_comm *comm, const tess_layout *layout,
                        double accuracy, int64_t *first)
{
    const pipeline all = {.comm = comm,
                          .geom = geom,
                          .gridding = {.accuracy = accuracy, .w_mode = TESS_W_AUTO},
                          .layout = *layout,
                          .num_pol = POLS,
                          .num_rows = ROWS,
                          .num_chan = CHANS,
                          .uvw_m = &s->uvw_m[0][0],
                          .freq_hz = s->freq_hz};
    return pipeline_share(&all, first);
}

/* Residuals of a set for the models [first, first + count). */
static void residuals(const scene *s, tess_comm *comm, const tess_layout *layout,
                      double accuracy, int first, int count, double *residual,
                      double *psf)
{
    int64_t row;
    const pipeline with = part_of(s, comm, layout, accuracy, &row);
    assert_int_equal(pipeline_residuals(&with, &s->vis[row * CHANS][0][0],
                                        s->weight + row * CHANS, count,
                                        &s->model[first][0][0], residual, psf),
                     TESS_OK);
}

/* ---- direct sums (DESIGN, "Conventions") ---- */

static tess_direct direct_of(const scene *s)
{
    return (tess_direct){.num_rows = ROWS,
                         .uvw_m = s->uvw_m[0],
                         .num_chan = CHANS,
                         .freq_hz = s->freq_hz,
                         .nx = NX,
                         .ny = NY,
                         .scale_rad = geom.scale_rad};
}

/* Visibilities of one polarisation less those of a model. */
static void subtract_directly(const scene *s, int model, int pol, double (*out)[2])
{
    const tess_direct direct = direct_of(s);
    assert_int_equal(tess_direct_predict(&direct, s->model[model][pol], out[0]), 0);
    for (int v = 0; v < VIS; ++v)
        for (int i = 0; i < 2; ++i)
            out[v][i] = s->vis[v][pol][i] - out[v][i];
}

static void image_directly(const scene *s, double (*vis)[2], double *image)
{
    const tess_direct direct = direct_of(s);
    tess_direct_dirty(&direct, vis[0], s->weight, image);
}

/* Prediction and imaging keep the accuracy each. At most all of the error of prediction
 * goes into the image, so that both errors add up. */
static void test_against_direct_sums(void **state)
{
    (void)state;
    enum { MODELS = 2 };
    static const double accuracy[] = {1e-4, 1e-8};
    scene *s = make_scene();
    double(*vis)[2] = calloc(VIS, sizeof *vis);
    double *image = calloc(PIXELS, sizeof *image);
    assert_non_null(vis);
    assert_non_null(image);
    for (int a = 0; a < 2; ++a) {
        const tess_layout layout = {.threads = 1};
        residuals(s, world, &layout, accuracy[a], 0, MODELS, &s->residual[0][0][0],
                  s->psf[0]);
        for (int m = 0; m < MODELS; ++m)
            for (int p = 0; p < POLS; ++p) {
                subtract_directly(s, m, p, vis);
                image_directly(s, vis, image);
                assert_true(relative(s->residual[m][p], image, PIXELS) <=
                            2 * accuracy[a]);
            }
        for (int v = 0; v < VIS; ++v) {
            vis[v][0] = 1;
            vis[v][1] = 0;
        }
        image_directly(s, vis, image);
        assert_true(relative(s->psf[0], image, PIXELS) <= accuracy[a]);
    }
    free(vis);
    free(image);
    free(s);
}

/* ---- cycles ---- */

/* After some cycles the residual is, bit by bit, the first one of a fresh set with the
 * last model, and that of one rank, whatever windows, passes and chunks there are. */
static void cycles(const tess_layout *layout, double accuracy, int count)
{
    scene *s = make_scene();
    /* windows of planes, which processors have, round the sums of predictions in
     * another order */
    const bool in_windows = strcmp(test_backend(), "cpu") == 0;
    const tess_layout plain = {.threads = 1,
                               .reproducible = true,
                               .forced.plane_window =
                                   in_windows ? layout->forced.plane_window : 0,
                               .forced.chunk = layout->forced.chunk,
                               .forced.block_planes = layout->forced.block_planes,
                               .forced.batch_vis = -1};
    tess_comm *self;
    assert_int_equal(tess_comm_self(&self), TESS_OK);
    residuals(s, world, layout, accuracy, 0, count, &s->residual[0][0][0], s->psf[0]);
    residuals(s, world, layout, accuracy, count - 1, 1, &s->fresh[0][0], s->psf[1]);
    assert_memory_equal(s->residual[count - 1], s->fresh, sizeof s->fresh);
    assert_memory_equal(s->psf[0], s->psf[1], sizeof s->psf[0]);
    residuals(s, self, &plain, accuracy, count - 1, 1, &s->fresh[0][0], s->psf[1]);
    assert_memory_equal(s->residual[count - 1], s->fresh, sizeof s->fresh);
    assert_memory_equal(s->psf[0], s->psf[1], sizeof s->psf[0]);
    tess_comm_free(self);
    free(s);
}

static void test_cycles(void **state)
{
    (void)state;
    static const tess_layout layouts[] = {
        {.threads = 1, .reproducible = true},
        {.threads = 2, .reproducible = true},
        {.threads = 1, .reproducible = true, .forced.batch_vis = 40},
        {.threads = 2,
         .reproducible = true,
         .forced.batch_vis = 1,
         .forced.chunk = 2,
         .forced.block_planes = 3},
        {.threads = 1, .reproducible = true, .forced.plane_window = 3},
        {.threads = 1, .reproducible = true, .forced.passes = 3},
        {.threads = 1,
         .reproducible = true,
         .forced.passes = 2,
         .forced.plane_window = 4},
    };
    const int most = getenv("TESS_TEST_MATRIX") ? CYCLES : FEW_CYCLES;
    for (size_t k = 0; k < sizeof layouts / sizeof *layouts; ++k) {
        cycles(&layouts[k], 1e-4, k == 0 ? most : 2);
        cycles(&layouts[k], 1e-8, 2);
    }
}

/* Each divisor of the number of ranks is tried as the size of an FFT group and as the
 * number of w-groups. Images differ from those of one rank by rounding, which is less
 * than a tenth of the accuracy. */
static void test_layouts(void **state)
{
    (void)state;
    enum { MODELS = 3 };
    const int size = tess_comm_size(world);
    const tess_layout plain = {.threads = 1, .forced.block_planes = 3};
    scene *s = make_scene();
    double(*one)[POLS][PIXELS] = calloc(MODELS, sizeof *one);
    tess_comm *self;
    assert_non_null(one);
    assert_int_equal(tess_comm_self(&self), TESS_OK);
    for (int d = 1; d <= size; ++d) {
        if (size % d != 0) continue;
        const tess_layout slabs = {
            .threads = 1, .forced.fft_ranks = d, .forced.block_planes = 3};
        const tess_layout groups = {
            .threads = 1, .forced.pw = d, .forced.block_planes = 3, .forced.split = 1};
        tess_layout layouts[] = {slabs, groups, slabs, groups};
        layouts[2].forced.batch_vis = 50; /* bricks are cut at their runs */
        layouts[3].forced.batch_vis = 7;
        residuals(s, self, &plain, 1e-8, 0, MODELS, &one[0][0][0], s->psf[0]);
        for (int k = 0; k < 4; ++k) {
            residuals(s, world, &layouts[k], 1e-8, 0, MODELS, &s->residual[0][0][0],
                      s->psf[1]);
            for (int m = 0; m < MODELS; ++m)
                assert_true(relative(&s->residual[m][0][0], &one[m][0][0],
                                     POLS * PIXELS) < 1e-9);
            assert_true(relative(s->psf[1], s->psf[0], PIXELS) < 1e-9);
        }
    }
    tess_comm_free(self);
    free(one);
    free(s);
}

/* ---- passes on scratch ---- */

/* Files that were made for sets have no name. */
static int files_on_scratch(void)
{
    int count = 0;
    DIR *folder = opendir(".");
    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder));)
        count += strstr(entry->d_name, "tessera-scratch") != NULL;
    closedir(folder);
    return count;
}

/* Compares two cycles of a set whose passes are on scratch with one rank that has all
 * samples in memory, and checks that the set had several passes. */
static void compare_spooled(const scene *all, tess_comm *self,
                            const tess_layout *layout, double accuracy)
{
    enum { MODELS = 3 };
    scene *s = make_scene();
    const tess_layout plain = {.threads = 1,
                               .reproducible = true,
                               .forced.chunk = layout->forced.chunk,
                               .forced.block_planes = layout->forced.block_planes,
                               .forced.batch_vis = -1};
    pipeline_facts facts;
    int64_t row;
    pipeline with = part_of(all, world, layout, accuracy, &row);
    with.facts = &facts;
    with.scratch = ".";
    assert_int_equal(pipeline_residuals(&with, &all->vis[row * CHANS][0][0],
                                        all->weight + row * CHANS, MODELS,
                                        &all->model[0][0][0], &s->residual[0][0][0],
                                        s->psf[0]),
                     TESS_OK);
    residuals(all, self, &plain, accuracy, 0, MODELS, &s->residual[MODELS][0][0],
              s->psf[1]);
    assert_memory_equal(s->residual[0], s->residual[MODELS],
                        MODELS * sizeof s->residual[0]);
    assert_memory_equal(s->psf[0], s->psf[1], sizeof s->psf[0]);
    if (strcmp(test_backend(), "cpu") == 0)
        assert_true(facts.spooled_passes >= layout->forced.passes);
    else
        assert_int_equal(facts.spooled_passes, 0); /* the backend sorts samples */
    assert_int_equal(files_on_scratch(), 0);
    free(s);
}

/* More passes than steps, fewer, and windows of planes. */
static void test_spooled(void **state)
{
    (void)state;
    static const tess_layout layouts[] = {
        {.threads = 1, .reproducible = true, .forced.passes = 2},
        {.threads = 2, .reproducible = true, .forced.passes = 7},
        {.threads = 1,
         .reproducible = true,
         .forced.passes = 3,
         .forced.chunk = 2,
         .forced.block_planes = 1},
        {.threads = 1, .reproducible = true, .forced.passes = 40, .forced.split = 1},
    };
    scene *s = make_scene();
    tess_comm *self;
    assert_int_equal(tess_comm_self(&self), TESS_OK);
    for (size_t k = 0; k < sizeof layouts / sizeof *layouts; ++k) {
        compare_spooled(s, self, &layouts[k], 1e-4);
        compare_spooled(s, self, &layouts[k], 1e-8);
    }
    tess_comm_free(self);
    free(s);
}

/* The same images of windows of planes from scratch as from memory. */
static void test_spooled_windows(void **state)
{
    (void)state;
    enum { MODELS = 2 };
    const tess_layout layout = {.threads = 1,
                                .reproducible = true,
                                .forced.passes = 2,
                                .forced.plane_window = 3};
    scene *s = make_scene();
    pipeline_facts facts;
    int64_t row;
    pipeline with = part_of(s, world, &layout, 1e-8, &row);
    with.facts = &facts;
    for (int k = 0; k < 2; ++k) {
        with.scratch = k == 0 ? "." : NULL;
        assert_int_equal(pipeline_residuals(&with, &s->vis[row * CHANS][0][0],
                                            s->weight + row * CHANS, MODELS,
                                            &s->model[0][0][0],
                                            &s->residual[k * MODELS][0][0], s->psf[k]),
                         TESS_OK);
        if (strcmp(test_backend(), "cpu") == 0 && k == 0)
            assert_true(facts.spooled_passes > 2);
    }
    assert_memory_equal(s->residual[0], s->residual[MODELS],
                        MODELS * sizeof s->residual[0]);
    assert_memory_equal(s->psf[0], s->psf[1], sizeof s->psf[0]);
    free(s);
}

/* One rank cannot make its file, or has no space for it: all of them are told. */
static void test_disk_of_one_rank(void **state)
{
    (void)state;
    static const tess_layout layout = {.threads = 1, .forced.passes = 3};
    const bool last = tess_comm_rank(world) == tess_comm_size(world) - 1;
    struct rlimit before;
    if (strcmp(test_backend(), "cpu") != 0) skip(); /* nothing goes to scratch */
    scene *s = make_scene();
    int64_t row;
    pipeline with = part_of(s, world, &layout, 1e-4, &row);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    for (int full = 0; full < 2; ++full) {
        const struct rlimit small = {full && last ? 3000 : before.rlim_cur,
                                     before.rlim_max};
        with.scratch = !full && last ? "no/folder" : ".";
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        const tess_status status = pipeline_residuals(
            &with, &s->vis[row * CHANS][0][0], s->weight + row * CHANS, 1,
            &s->model[0][0][0], &s->residual[0][0][0], NULL);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(status, last ? TESS_ERR_IO : TESS_ERR_PEER);
        assert_int_equal(files_on_scratch(), 0);
    }
    free(s);
}

/* ---- batches ---- */

enum { STOKES = 4, IMAGES = 2 };

/* Residuals of four polarisations and two model images, as of XX, XY, YX and YY with
 * models of I and U: of all samples at once, and of some at a time. */
static void polarised(const scene *s, const tess_layout *layout, double *residual,
                      double *psf, pipeline_facts *facts)
{
    static const double mix[STOKES][IMAGES][2] = {
        {{1, 0}, {0, 0}}, {{0, 0}, {1, 0}}, {{0, 0.5}, {1, 0}}, {{1, 0}, {-0.25, 0}}};
    int64_t row;
    pipeline with = part_of(s, world, layout, 1e-4, &row);
    double(*vis)[STOKES][2] = calloc(VIS, sizeof *vis);
    assert_non_null(vis);
    for (int k = 0; k < VIS; ++k)
        for (int p = 0; p < STOKES; ++p)
            memcpy(vis[k][p], s->vis[(k + p) % VIS][p % POLS], sizeof vis[k][p]);
    with.num_pol = STOKES;
    with.num_model = IMAGES;
    with.mix = &mix[0][0][0];
    with.facts = facts;
    assert_int_equal(pipeline_residuals(&with, &vis[row * CHANS][0][0],
                                        s->weight + row * CHANS, 1, &s->model[0][0][0],
                                        residual, psf),
                     TESS_OK);
    free(vis);
}

/* Where a backend leaves batches to the steps, no more residuals are held than those of
 * the samples of a batch. */
static void test_batches(void **state)
{
    (void)state;
    enum { BATCH = 30 };
    scene *s = make_scene();
    double *all = calloc(STOKES * PIXELS, sizeof *all);
    double *some = calloc(STOKES * PIXELS, sizeof *some);
    assert_non_null(all);
    assert_non_null(some);
    for (int k = 0; k < 4; ++k) {
        const bool exactly = k % 2 == 0;
        /* parts of bricks, which are not cut further, are smaller than a batch */
        tess_layout layout = {
            .threads = 1 + k / 2, .reproducible = exactly, .forced.chunk = 1};
        pipeline_facts facts[2];
        layout.forced.batch_vis = -1;
        polarised(s, &layout, all, s->psf[0], &facts[0]);
        layout.forced.batch_vis = BATCH;
        polarised(s, &layout, some, s->psf[1], &facts[1]);
        assert_int_equal(facts[0].batch_vis, 0);
        if (strcmp(test_backend(), "cpu") == 0)
            assert_in_range(facts[1].batch_vis, 1, BATCH);
        if (exactly) {
            assert_memory_equal(all, some, STOKES * PIXELS * sizeof *all);
            assert_memory_equal(s->psf[0], s->psf[1], sizeof s->psf[0]);
        }
        /* rounding of single precision */
        assert_true(relative(some, all, STOKES * PIXELS) < 1e-5);
        assert_true(relative(s->psf[1], s->psf[0], PIXELS) < 1e-5);
    }
    free(all);
    free(some);
    free(s);
}

/* ---- the choice of batches ---- */

enum { MANY_ROWS = 32768, MANY_CHANS = 16, MANY_VIS = MANY_ROWS * MANY_CHANS };

/* Rows of a rank, one polarisation, and an image. */
typedef struct crowd {
    double uvw_m[MANY_ROWS][3], freq_hz[MANY_CHANS];
    double vis[MANY_VIS][2], weight[MANY_VIS];
    double model[PIXELS], residual[PIXELS], psf[PIXELS];
} crowd;

static crowd *make_crowd(void)
{
    crowd *c = calloc(1, sizeof *c);
    draw from = {71 + (uint64_t)tess_comm_rank(world)};
    draw of_model = {5};
    assert_non_null(c);
    draw_crowded_rows(&from, MANY_ROWS, 100, c->uvw_m, MANY_CHANS, c->freq_hz);
    for (int k = 0; k < MANY_VIS; ++k) {
        c->weight[k] = draw_uniform(&from, 0.1, 2);
        c->vis[k][0] = draw_normal(&from);
        c->vis[k][1] = draw_normal(&from);
    }
    for (int k = 0; k < POINTS; ++k)
        c->model[(int)draw_uniform(&of_model, 0, PIXELS)] = draw_normal(&of_model);
    return c;
}

/* Makes the image of the residuals of the first `num_rows` rows. Returns how many
 * residuals were held at a time; 0: all. `memory_bytes` is the memory of a rank; 0:
 * that of the machine. */
static int64_t crowd_residual(crowd *c, int num_rows, int64_t memory_bytes)
{
    pipeline_facts facts;
    const pipeline with = {
        .comm = world,
        .geom = geom,
        .gridding = {.accuracy = 1e-2, .w_mode = TESS_W_AUTO},
        .layout = {.threads = 1,
                   .reproducible = true,
                   .memory_bytes = memory_bytes * tess_comm_size(world)},
        .num_pol = 1,
        .num_rows = num_rows,
        .num_chan = MANY_CHANS,
        .uvw_m = c->uvw_m[0],
        .freq_hz = c->freq_hz,
        .facts = &facts};
    assert_int_equal(pipeline_residuals(&with, c->vis[0], c->weight, 1, c->model,
                                        c->residual, c->psf),
                     TESS_OK);
    return facts.batch_vis;
}

/* The memory of a rank decides whether residuals are made in batches, and how large
 * these are: there are none if all residuals fit into one batch, or if the sums of all
 * planes do not fit. Less memory makes smaller batches. The images are the same. */
static void test_choice_by_memory(void **state)
{
    (void)state;
    enum { MIB = 1 << 20, SAMPLE_BYTES = 8 + 4 + 8, FEW_ROWS = 50 };
    static const int64_t memory[] = {120 * MIB, 100 * MIB};
    if (strcmp(test_backend(), "cpu") != 0) return; /* no batches */
    crowd *c = make_crowd();
    double *all = calloc(2 * PIXELS, sizeof *all);
    int64_t batch[2];
    assert_non_null(all);
    assert_int_equal(crowd_residual(c, FEW_ROWS, memory[1]), 0);
    assert_int_equal(crowd_residual(c, MANY_ROWS, 0), 0);
    memcpy(all, c->residual, sizeof c->residual);
    memcpy(all + PIXELS, c->psf, sizeof c->psf);
    for (int k = 0; k < 2; ++k) {
        batch[k] = crowd_residual(c, MANY_ROWS, memory[k]);
        assert_memory_equal(c->residual, all, sizeof c->residual);
        assert_memory_equal(c->psf, all + PIXELS, sizeof c->psf);
        assert_in_range(batch[k], 1, memory[k] / 32 / SAMPLE_BYTES + 1);
    }
    assert_true(batch[1] < batch[0]);
    assert_int_equal(crowd_residual(c, MANY_ROWS, 20 * MIB), 0);
    free(all);
    free(c);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_direct_sums),
        cmocka_unit_test(test_cycles),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_spooled),
        cmocka_unit_test(test_spooled_windows),
        cmocka_unit_test(test_disk_of_one_rank),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_choice_by_memory),
    };
    if (tess_comm_start(&argc, &argv, &world) != TESS_OK) return 1;
    TEST_ON_RANKS(world, tests);
    tess_comm_finish(world);
    return 0;
}
