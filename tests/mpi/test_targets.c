/* Several images of one visibility set, which is read, sent and sorted once: two
 * centres, and an image of another size, whose grid correction is another part of the
 * field's. They may take views of correlations that have been kept apart. Against
 * direct sums, against sets of their own, and on several ranks against one. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core_backend.h"
#include "crowded_rows.h"
#include "direct_sum.h"
#include "imager_job.h"
#include "imager_targets.h"
#include "pipeline.h"
#include "rank_tests.h"
#include "tess_samples.h"

enum {
    ROWS = 60,
    CHANS = 4,
    VIS = ROWS * CHANS,
    POLS = 2,
    CORRS = 4,
    TARGETS = 3,
    NX = 50,
    NY = 41,
    PIXELS = NX * NY,
    POINTS = 5
};

#define SCALE (0.12 / NX)

/* Some 20 planes, several windows and blocks of them, each of which ranks exchange. */
#define W_MOST_M 1000.0

/* The third image is smaller, oblong, and lies across the edge of the second one. */
static const tess_geom geom[TARGETS] = {
    {.nx = NX, .ny = NY, .scale_rad = SCALE},
    {.nx = NX, .ny = NY, .scale_rad = SCALE, .l0 = 0.15, .m0 = -0.08},
    {.nx = 31, .ny = 24, .scale_rad = SCALE, .l0 = -0.11, .m0 = 0.2}};

static tess_comm *world;

typedef struct scene {
    double uvw_m[ROWS][3], freq_hz[CHANS];
    double vis[VIS][POLS][2], corr[VIS][CORRS][2], weight[VIS];
    double model[TARGETS][POLS * PIXELS];
} scene;

typedef struct images {
    double image[TARGETS][POLS * PIXELS], psf[TARGETS][PIXELS];
    double source[TARGETS][POLS * PIXELS];
} images;

static int pixels_of(int target)
{
    return (int)(geom[target].nx * geom[target].ny);
}

static scene *make_scene(void)
{
    scene *s = calloc(1, sizeof *s);
    draw from = {71};
    assert_non_null(s);
    draw_crowded_rows(&from, ROWS, W_MOST_M, s->uvw_m, CHANS, s->freq_hz);
    draw_samples(&from, VIS, 2 * POLS, &s->vis[0][0][0], s->weight);
    for (int t = 0; t < TARGETS; ++t)
        for (int p = 0; p < POLS; ++p)
            for (int k = 0; k < POINTS; ++k)
                s->model[t][p * pixels_of(t) + draw_index(&from, pixels_of(t))] =
                    draw_normal(&from);
    for (int k = 0; k < VIS * CORRS * 2; ++k)
        (&s->corr[0][0][0])[k] = draw_normal(&from);
    return s;
}

static images *new_images(void)
{
    images *all = calloc(1, sizeof *all);
    assert_non_null(all);
    return all;
}

/* This rank's rows of the scene, to an image. */
static pipeline part_of(const scene *s, tess_comm *comm, const tess_layout *layout,
                        double accuracy, int target, int64_t *first)
{
    const pipeline all = {.comm = comm,
                          .geom = geom[target],
                          .gridding = {.accuracy = accuracy, .w_mode = TESS_W_AUTO},
                          .layout = *layout,
                          .num_pol = POLS,
                          .num_rows = ROWS,
                          .num_chan = CHANS,
                          .uvw_m = &s->uvw_m[0][0],
                          .freq_hz = s->freq_hz};
    return pipeline_share(&all, first);
}

/* The images of a set made of this rank's rows. */
static void make_images(const scene *s, tess_comm *comm, const tess_layout *layout,
                        double accuracy, bool less_models, int only, int times,
                        const char *scratch, images *out)
{
    int64_t first;
    pipeline_target target[TARGETS];
    pipeline with = part_of(s, comm, layout, accuracy, 0, &first);
    with.scratch = scratch;
    for (int t = 0; t < TARGETS; ++t)
        target[t] = (pipeline_target){.geom = geom[t],
                                      .model = less_models ? s->model[t] : NULL,
                                      .image = out->image[t],
                                      .psf = out->psf[t]};
    assert_int_equal(pipeline_targets(&with, &s->vis[first * CHANS][0][0],
                                      s->weight + first * CHANS, target, TARGETS, only,
                                      times),
                     TESS_OK);
}

/* ---- direct sums (DESIGN, "Conventions") ---- */

static tess_direct direct_of(const scene *s, int target)
{
    const tess_geom *of = &geom[target];
    return (tess_direct){.num_rows = ROWS,
                         .uvw_m = s->uvw_m[0],
                         .num_chan = CHANS,
                         .freq_hz = s->freq_hz,
                         .nx = of->nx,
                         .ny = of->ny,
                         .scale_rad = of->scale_rad,
                         .l0 = of->l0,
                         .m0 = of->m0};
}

/* Visibilities of a polarisation, less those of the models of all targets. */
static void values_of(const scene *s, int pol, bool less_models, double (*out)[2])
{
    double model[VIS][2];
    for (int v = 0; v < VIS; ++v)
        memcpy(out[v], s->vis[v][pol], sizeof out[v]);
    for (int t = 0; t < TARGETS && less_models; ++t) {
        const tess_direct direct = direct_of(s, t);
        assert_int_equal(
            tess_direct_predict(&direct, s->model[t] + pol * pixels_of(t), model[0]),
            0);
        for (int v = 0; v < VIS; ++v)
            for (int i = 0; i < 2; ++i)
                out[v][i] -= model[v][i];
    }
}

/* Every image keeps the accuracy. The error of prediction adds to that of imaging. */
static void test_against_direct_sums(void **state)
{
    (void)state;
    static const double accuracy[] = {1e-4, 1e-8};
    const tess_layout layout = {.threads = 1};
    scene *s = make_scene();
    images *out = new_images();
    double(*vis)[2] = calloc(VIS, sizeof *vis);
    double *image = calloc(PIXELS, sizeof *image);
    assert_non_null(vis);
    assert_non_null(image);
    for (int a = 0; a < 4; ++a) {
        const bool less_models = a % 2;
        make_images(s, world, &layout, accuracy[a / 2], less_models, -1, 2, NULL, out);
        for (int p = 0; p < POLS; ++p) {
            values_of(s, p, less_models, vis);
            for (int t = 0; t < TARGETS; ++t) {
                const tess_direct direct = direct_of(s, t);
                tess_direct_dirty(&direct, vis[0], s->weight, image);
                assert_true(
                    relative(out->image[t] + p * pixels_of(t), image, pixels_of(t)) <=
                    (less_models ? 2 : 1) * accuracy[a / 2]);
            }
        }
    }
    free(image);
    free(vis);
    free(out);
    free(s);
}

/* ---- views of correlations ---- */

/* A gain of its own for each target, row, channel and pair of polarisation and
 * correlation. */
static double complex gain_at(int target, int row, int chan, int pol, int corr)
{
    const double size = 1 + 0.1 * ((row + 2 * pol + corr + target) % 5);
    return size * cexp(I * (0.3 * target + 0.7 * row + 0.2 * chan + pol - 0.5 * corr));
}

/* Rows of some intervals have no gains in the first target. */
static bool is_counted(int target, int row)
{
    return target > 0 || row % 5 > 0;
}

/* Rows are told by their origins, wherever they are. */
static void take_gains(const void *context, int target, const tess_samples *samples,
                       int64_t row, double complex *factor)
{
    const tess_origin from = tess_origin_of(samples->origins, samples->origin[row]);
    assert_ptr_equal(context, geom);
    for (int32_t c = 0; c < samples->num_chan[row]; ++c)
        for (int p = 0; p < POLS; ++p)
            for (int q = 0; q < CORRS; ++q)
                *factor++ = is_counted(target, from.interval)
                                ? gain_at(target, from.interval,
                                          samples->chan_base[row] + c, p, q)
                                : 0;
}

/* The same gains make correlations of the images of models. */
static void make_gains(const void *context, int target, const tess_samples *samples,
                       int64_t row, double complex *factor)
{
    const tess_origin from = tess_origin_of(samples->origins, samples->origin[row]);
    for (int32_t c = 0; c < samples->num_chan[row]; ++c)
        for (int q = 0; q < CORRS; ++q)
            for (int p = 0; p < POLS; ++p)
                *factor++ =
                    gain_at(target, from.interval, samples->chan_base[row] + c, q, p);
}

/* What is left of a source after both. */
static void take_powers(const void *context, int target, const tess_samples *samples,
                        int64_t row, double *power)
{
    const tess_origin from = tess_origin_of(samples->origins, samples->origin[row]);
    (void)context;
    for (int32_t c = 0; c < samples->num_chan[row]; ++c)
        for (int p = 0; p < POLS; ++p, ++power) {
            const int chan = samples->chan_base[row] + c;
            *power = is_counted(target, from.interval) ? 0 : (double)NAN;
            for (int q = 0; q < CORRS; ++q)
                *power += creal(gain_at(target, from.interval, chan, p, q) *
                                gain_at(target, from.interval, chan, q, p));
        }
}

typedef enum subtracted { LESS_NOTHING, LESS_MIXED, LESS_GAINED } subtracted;

/* How the models' images make up the correlations. */
static const double models_of_corr[CORRS][POLS][2] = {{{1, 0}, {0.5, 0}},
                                                      {{0, 0.3}, {1, -1}},
                                                      {{0.2, -0.1}, {1, 1}},
                                                      {{1, 0}, {-0.5, 0}}};

/* Correlations, less the sum of the models of all targets. */
static void correlations_of(const scene *s, subtracted less, double complex *corr)
{
    double model[VIS][2];
    for (int k = 0; k < VIS * CORRS; ++k)
        corr[k] =
            CMPLX(s->corr[k / CORRS][k % CORRS][0], s->corr[k / CORRS][k % CORRS][1]);
    for (int t = 0; t < TARGETS && less != LESS_NOTHING; ++t)
        for (int p = 0; p < POLS; ++p) {
            const tess_direct direct = direct_of(s, t);
            assert_int_equal(
                tess_direct_predict(&direct, s->model[t] + p * pixels_of(t), model[0]),
                0);
            for (int k = 0; k < VIS * CORRS; ++k) {
                const double *mix = models_of_corr[k % CORRS][p];
                const int v = k / CORRS;
                corr[k] -= (less == LESS_GAINED
                                ? gain_at(t, v / CHANS, v % CHANS, k % CORRS, p)
                                : CMPLX(mix[0], mix[1])) *
                           CMPLX(model[k / CORRS][0], model[k / CORRS][1]);
            }
        }
}

/* The visibilities that a target takes of these correlations. */
static void taken_of(const double complex *corr, int target, int pol, double (*out)[2])
{
    for (int v = 0; v < VIS; ++v) {
        double complex sum = 0;
        for (int q = 0; q < CORRS; ++q)
            sum += is_counted(target, v / CHANS) *
                   gain_at(target, v / CHANS, v % CHANS, pol, q) * corr[v * CORRS + q];
        out[v][0] = creal(sum);
        out[v][1] = cimag(sum);
    }
}

/* The response of a target: Σ W Re(taken · made) over Σ W of the samples that count. */
static double response_of(const scene *s, int target, int pol, double *counted)
{
    double power = 0, sum = 0, all = 0;
    for (int v = 0; v < VIS; ++v) {
        const int row = v / CHANS, chan = v % CHANS;
        all += s->weight[v];
        if (!is_counted(target, row)) continue;
        sum += s->weight[v];
        for (int q = 0; q < CORRS; ++q)
            power += s->weight[v] * creal(gain_at(target, row, chan, pol, q) *
                                          gain_at(target, row, chan, q, pol));
    }
    *counted = sum / all;
    return power / sum;
}

/* A target's own source: its PSF, wherever it lies, without gains. */
static void check_source(const scene *s, int target, const double *source,
                         double accuracy)
{
    const tess_direct direct = direct_of(s, target);
    const tess_geom *of = &geom[target];
    double *image = calloc(PIXELS, sizeof *image);
    double(*vis)[2] = calloc(VIS, sizeof *vis);
    assert_true(image && vis);
    image[of->ny / 2 * of->nx + of->nx / 2] = 1;
    assert_int_equal(tess_direct_predict(&direct, image, vis[0]), 0);
    tess_direct_dirty(&direct, vis[0], s->weight, image);
    for (int p = 0; p < POLS; ++p)
        assert_true(relative(source + p * pixels_of(target), image,
                             pixels_of(target)) <= accuracy);
    free(image);
    free(vis);
}

static void check_views(const tess_layout *layout, double accuracy, subtracted less,
                        const char *scratch)
{
    const imager_view view = {.num_pol = POLS,
                              .to_target = take_gains,
                              .from_model = less == LESS_GAINED ? make_gains : NULL,
                              .response = take_powers,
                              .context = geom};
    const bool less_models = less != LESS_NOTHING;
    const tess_origins origins = {1, ROWS, 1, 1, .interval_s = 1, .num_stretches = 1};
    scene *s = make_scene();
    images *out = new_images();
    double(*vis)[2] = calloc(VIS, sizeof *vis);
    double complex *corr = calloc(VIS * CORRS, sizeof *corr);
    double *image = calloc(PIXELS, sizeof *image);
    pipeline_target target[TARGETS];
    int64_t first;
    pipeline with = part_of(s, world, layout, accuracy, 0, &first);
    assert_true(vis && corr && image);
    with.scratch = scratch;
    with.view = &view;
    with.num_corr = CORRS;
    with.mix = models_of_corr[0][0];
    with.origins = &origins;
    with.first_origin = (int32_t)first;
    for (int t = 0; t < TARGETS; ++t)
        target[t] = (pipeline_target){.geom = geom[t],
                                      .model = less_models ? s->model[t] : NULL,
                                      .image = out->image[t],
                                      .psf = out->psf[t],
                                      .source = out->source[t]};
    assert_int_equal(pipeline_targets(&with, &s->corr[first * CHANS][0][0],
                                      s->weight + first * CHANS, target, TARGETS, -1,
                                      2),
                     TESS_OK);
    correlations_of(s, less, corr);
    for (int t = 0; t < TARGETS; ++t)
        for (int p = 0; p < POLS; ++p) {
            const tess_direct direct = direct_of(s, t);
            taken_of(corr, t, p, vis);
            tess_direct_dirty(&direct, vis[0], s->weight, image);
            assert_true(relative(out->image[t] + p * pixels_of(t), image,
                                 pixels_of(t)) <= (less_models ? 2 : 1) * accuracy);
            double counted;
            const double response = response_of(s, t, p, &counted);
            assert_true(fabs(target[t].response[p] - response) < 1e-6);
            assert_true(fabs(target[t].counted[p] - counted) < 1e-6);
        }
    for (int t = 0; t < TARGETS; ++t)
        check_source(s, t, out->source[t], accuracy);
    free(image);
    free(corr);
    free(vis);
    free(out);
    free(s);
}

/* Targets that take views of correlations, with gains of their own, from samples that
 * have been sent and sorted once: in memory, in passes, and from scratch. */
static void test_views(void **state)
{
    (void)state;
    static const tess_layout plain = {.threads = 2},
                             passes = {.threads = 1, .forced.passes = 3},
                             window = {.threads = 1, .forced.plane_window = 3};
    char folder[] = "views-XXXXXX";
    check_views(&plain, 1e-8, LESS_GAINED, NULL);
    if (strcmp(test_backend(), "cpu") != 0) return;
    check_views(&window, 1e-4, LESS_MIXED, NULL);
    check_views(&passes, 1e-4, LESS_NOTHING, NULL);
    assert_non_null(mkdtemp(folder));
    check_views(&passes, 1e-4, LESS_GAINED, folder);
    assert_int_equal(rmdir(folder), 0);
}

enum { PAIR = 2 };

/* The sum and the difference of two correlations. */
static void sum_and_difference(const void *context, int target,
                               const tess_samples *samples, int64_t row,
                               double complex *factor)
{
    (void)context;
    (void)target;
    for (int32_t c = 0; c < samples->num_chan[row]; ++c, factor += PAIR * PAIR) {
        factor[0] = factor[1] = factor[2] = 1;
        factor[3] = -1;
    }
}

/* A view may write its values over those that it is made of. */
static void test_view_in_place(void **state)
{
    (void)state;
    double vis[PAIR][2] = {{3, 1}, {5, -2}};
    int32_t num_chan = 1;
    int64_t vis_first = 0;
    const tess_layout layout = {.threads = 1};
    const imager_job job = {.layout = &layout};
    tess_samples samples = {.is_double = true,
                            .num_pol = PAIR,
                            .num_rows = 1,
                            .num_vis = 1,
                            .num_chan = &num_chan,
                            .vis_first = &vis_first,
                            .vis = vis};
    assert_int_equal(
        imager_view_apply(&job, sum_and_difference, &samples, NULL, 1, &samples),
        TESS_OK);
    assert_true(vis[0][0] == 8 && vis[0][1] == -1);
    assert_true(vis[1][0] == -2 && vis[1][1] == 3);
}

/* ---- one reading, or one for each ---- */

/* The images of one set for all targets are, bit by bit, those of a set for each target
 * on the same frame, and those of one rank. The same holds for residuals. */
static void same_as_their_own(const tess_layout *layout, double accuracy, int times,
                              const char *scratch)
{
    scene *s = make_scene();
    images *all = new_images(), *own = new_images(), *alone = new_images();
    const tess_layout plain = {.threads = 1,
                               .reproducible = true,
                               .forced.chunk = layout->forced.chunk,
                               .forced.block_planes = layout->forced.block_planes};
    tess_comm *self;
    assert_int_equal(tess_comm_self(&self), TESS_OK);
    make_images(s, world, layout, accuracy, false, -1, times, scratch, all);
    for (int t = 0; t < TARGETS; ++t)
        make_images(s, world, layout, accuracy, false, t, times, scratch, own);
    assert_memory_equal(all, own, sizeof *all);
    make_images(s, self, &plain, accuracy, false, -1, 1, NULL, alone);
    assert_memory_equal(all, alone, sizeof *all);
    make_images(s, world, layout, accuracy, true, -1, times, scratch, all);
    make_images(s, self, &plain, accuracy, true, -1, 1, NULL, alone);
    /* windows of planes round the sums of predictions in another order */
    if (layout->forced.plane_window > 0 && strcmp(test_backend(), "cpu") == 0)
        for (int t = 0; t < TARGETS; ++t)
            assert_true(relative(all->image[t], alone->image[t], POLS * pixels_of(t)) <=
                        accuracy);
    else
        assert_memory_equal(all, alone, sizeof *all);
    tess_comm_free(self);
    free(alone);
    free(own);
    free(all);
    free(s);
}

static void test_one_reading(void **state)
{
    (void)state;
    static const tess_layout layouts[] = {
        {.threads = 1, .reproducible = true},
        {.threads = 2,
         .reproducible = true,
         .forced.chunk = 2,
         .forced.block_planes = 3},
        {.threads = 1, .reproducible = true, .forced.passes = 3},
        {.threads = 1, .reproducible = true, .forced.plane_window = 3}};
    /* devices have no windows of planes, and emulated ones are slow */
    const int count = strcmp(test_backend(), "cpu") == 0 ? 4 : 1;
    for (int k = 0; k < count; ++k)
        same_as_their_own(&layouts[k], k % 2 ? 1e-8 : 1e-4, 1 + k / 2 % 2, NULL);
}

/* Passes that are kept on scratch. */
static void test_spooled(void **state)
{
    (void)state;
    static const tess_layout layout = {
        .threads = 1, .reproducible = true, .forced.passes = 2};
    char folder[] = "targets-XXXXXX";
    if (strcmp(test_backend(), "cpu") != 0) return; /* devices spool nothing */
    assert_non_null(mkdtemp(folder));
    same_as_their_own(&layout, 1e-4, 2, folder);
    assert_int_equal(rmdir(folder), 0);
}

/* The largest w-range of all targets decides about their frame. A set for each target
 * has another frame, and its image is the same within the accuracy. */
static void test_without_a_frame(void **state)
{
    (void)state;
    const double accuracy = 1e-5;
    const tess_layout layout = {.threads = 2};
    scene *s = make_scene();
    images *all = new_images();
    double *image = calloc(POLS * PIXELS, sizeof *image);
    double *psf = calloc(PIXELS, sizeof *psf);
    assert_non_null(image);
    assert_non_null(psf);
    make_images(s, world, &layout, accuracy, false, -1, 1, NULL, all);
    for (int t = 0; t < TARGETS; ++t) {
        int64_t first;
        const pipeline with = part_of(s, world, &layout, accuracy, t, &first);
        assert_int_equal(pipeline_image(&with, &s->vis[first * CHANS][0][0],
                                        s->weight + first * CHANS, image, psf, NULL),
                         TESS_OK);
        assert_true(relative(all->image[t], image, POLS * pixels_of(t)) <=
                    2 * accuracy);
        assert_true(relative(all->psf[t], psf, pixels_of(t)) <= 2 * accuracy);
    }
    free(psf);
    free(image);
    free(all);
    free(s);
}

/* The image around the phase centre could be made without w, but not the others. */
static void test_w_of_one_target(void **state)
{
    (void)state;
    const tess_layout layout = {.threads = 1};
    scene *s = make_scene();
    images *out = new_images();
    pipeline_facts facts[2];
    pipeline_target target[TARGETS];
    for (int k = 0; k < ROWS; ++k)
        s->uvw_m[k][2] *= 0.28 / W_MOST_M;
    for (int t = 0; t < TARGETS; ++t)
        target[t] = (pipeline_target){
            .geom = geom[t], .image = out->image[t], .psf = out->psf[t]};
    for (int num = 1; num <= TARGETS; num += TARGETS - 1) {
        int64_t first;
        pipeline with = part_of(s, world, &layout, 1e-2, 0, &first);
        with.facts = &facts[num > 1];
        assert_int_equal(pipeline_targets(&with, &s->vis[first * CHANS][0][0],
                                          s->weight + first * CHANS, target, num, -1,
                                          1),
                         TESS_OK);
    }
    assert_false(facts[0].do_w);
    assert_true(facts[1].do_w);
    free(out);
    free(s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_direct_sums), cmocka_unit_test(test_views),
        cmocka_unit_test(test_view_in_place),       cmocka_unit_test(test_one_reading),
        cmocka_unit_test(test_w_of_one_target),     cmocka_unit_test(test_spooled),
        cmocka_unit_test(test_without_a_frame)};
    if (tess_comm_start(&argc, &argv, &world) != TESS_OK) return 1;
    TEST_ON_RANKS(world, tests);
    tess_comm_finish(world);
    return 0;
}
