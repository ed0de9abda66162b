/* The computing core on several ranks: communicator, imaging weights, and the whole
 * pipeline against one rank, in every way of sharing planes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "crowded_rows.h"
#include "pipeline.h"
#include "rank_tests.h"
#include "tess_mem.h"
#include "tess_samples.h"
#include "tess_weight.h"

enum { NX = 50, NY = 41, ROWS = 120, CHANS = 4, PIXELS = NX * NY };

static tess_comm *world;

/* ---- communicator ---- */

static void test_alltoallv(void **state)
{
    (void)state;
    const int size = tess_comm_size(world), rank = tess_comm_rank(world);
    int64_t send_bytes[16], recv_bytes[16];
    unsigned char send[4096];
    void *received = NULL;
    int64_t at = 0;
    /* rank r sends r + k bytes of value 16 r + k to rank k; some counts are zero */
    for (int k = 0; k < size; ++k) {
        send_bytes[k] = (rank + k) % 3 == 0 ? 0 : rank + k;
        memset(send + at, 16 * rank + k, (size_t)send_bytes[k]);
        at += send_bytes[k];
    }
    assert_int_equal(
        tess_comm_alltoallv(world, send, send_bytes, &received, recv_bytes), TESS_OK);
    const unsigned char *from = received;
    for (int k = 0; k < size; ++k) {
        assert_int_equal(recv_bytes[k], (rank + k) % 3 == 0 ? 0 : rank + k);
        for (int64_t b = 0; b < recv_bytes[k]; ++b)
            assert_int_equal(*from++, 16 * k + rank);
    }
    tess_free(received);
}

static void test_gather_and_scan(void **state)
{
    (void)state;
    const int size = tess_comm_size(world), rank = tess_comm_rank(world);
    int64_t counts[16], value = rank + 1, sum = rank + 1;
    void *all = NULL;
    assert_int_equal(tess_comm_exscan_i64(world, &value, 1), TESS_OK);
    assert_int_equal(value, rank * (rank + 1) / 2);
    assert_int_equal(tess_comm_allreduce_i64(world, &sum, 1, TESS_SUM), TESS_OK);
    assert_int_equal(sum, size * (size + 1) / 2);
    char text[16];
    memset(text, 'a' + rank, sizeof text);
    assert_int_equal(tess_comm_allgatherv(world, text, rank, &all, counts), TESS_OK);
    const char *at = all;
    for (int k = 0; k < size; ++k) {
        assert_int_equal(counts[k], k);
        for (int b = 0; b < k; ++b)
            assert_int_equal(*at++, 'a' + k);
    }
    tess_free(all);
}

/* One rank fails: it keeps its status, the others hear of it, and it is blamed. */
static void test_agree_and_blame(void **state)
{
    (void)state;
    const int culprit = tess_comm_size(world) - 1, rank = tess_comm_rank(world);
    const tess_status own = rank == culprit ? TESS_ERR_ALLOC : TESS_OK;
    const tess_status agreed = tess_comm_agree(world, own);
    int exit_status;
    assert_int_equal(agreed, rank == culprit ? TESS_ERR_ALLOC : TESS_ERR_PEER);
    assert_int_equal(tess_comm_blame(world, agreed, &exit_status), culprit);
    assert_int_equal(exit_status, tess_status_exit(TESS_ERR_ALLOC));
    assert_int_equal(tess_comm_agree(world, TESS_OK), TESS_OK);
    assert_int_equal(tess_comm_blame(world, TESS_OK, &exit_status), -1);
}

static void test_reduce_scatter(void **state)
{
    (void)state;
    enum { EACH = 3 };
    const int size = tess_comm_size(world), rank = tess_comm_rank(world);
    int64_t counts[16];
    double values[16 * EACH], out[EACH] = {0};
    for (int k = 0; k < size; ++k)
        counts[k] = k == 0 ? 0 : EACH; /* rank 0 gets none */
    for (int k = 0; k < size * EACH; ++k)
        values[k] = (rank + 1) * k;
    assert_int_equal(tess_comm_reduce_scatter(world, values, out, counts, true),
                     TESS_OK);
    for (int k = 0; rank > 0 && k < EACH; ++k)
        assert_true(out[k] == size * (size + 1) / 2 * ((rank - 1) * EACH + k));
}

/* ---- samples of a rank ---- */

typedef struct scene {
    double uvw_m[ROWS][3], freq_hz[CHANS], vis[ROWS * CHANS][2], image[PIXELS];
    double dirty[2][PIXELS], psf[2][PIXELS];
    double predicted[2][ROWS * CHANS][2];
} scene;

static scene *make_scene(void)
{
    scene *s = calloc(1, sizeof *s);
    draw from = {31};
    assert_non_null(s);
    draw_crowded_rows(&from, ROWS, 9000, s->uvw_m, CHANS, s->freq_hz);
    for (int k = 0; k < ROWS * CHANS; ++k)
        for (int i = 0; i < 2; ++i)
            s->vis[k][i] = draw_normal(&from);
    for (int k = 0; k < PIXELS; ++k)
        s->image[k] = draw_normal(&from);
    return s;
}

/* Rows [first, first + count) of the scene on this communicator. */
static pipeline part_of(const scene *s, tess_comm *comm, int64_t first, int64_t count,
                        const tess_layout *layout, double accuracy,
                        const tess_geom *geom)
{
    return (pipeline){.comm = comm,
                      .geom = *geom,
                      .gridding = {.accuracy = accuracy, .w_mode = TESS_W_AUTO},
                      .layout = *layout,
                      .num_pol = 1,
                      .num_rows = count,
                      .num_chan = CHANS,
                      .uvw_m = s->uvw_m[first],
                      .freq_hz = s->freq_hz};
}

/* Sums in another order differ by rounding, half a unit in the last place
 * of either, which the grid correction raises by its gain on each axis
 * (grid/kernel/tess_kernel.h). */
static double rounding(const pipeline_facts *facts)
{
    const double unit = facts->is_double ? 0x1p-53 : 0x1p-24;
    return 2 * unit * pow(facts->kernel.amplification, facts->do_w ? 3 : 2);
}

/* All ranks together against each rank alone. */
static void compare_with_one(const tess_layout *layout, double accuracy,
                             const tess_geom *geom)
{
    const int size = tess_comm_size(world), rank = tess_comm_rank(world);
    const int64_t first = ROWS * rank / size, count = ROWS * (rank + 1) / size - first;
    const tess_layout plain = {.threads = 1,
                               .forced.block_planes = layout->forced.block_planes,
                               .forced.chunk = layout->forced.chunk};
    scene *s = make_scene();
    tess_comm *self;
    assert_int_equal(tess_comm_self(&self), TESS_OK);
    pipeline_facts facts;
    pipeline one = part_of(s, self, 0, ROWS, &plain, accuracy, geom);
    one.facts = &facts;
    const pipeline all = part_of(s, world, first, count, layout, accuracy, geom);
    assert_int_equal(
        pipeline_image(&one, &s->vis[0][0], NULL, s->dirty[0], s->psf[0], NULL),
        TESS_OK);
    assert_int_equal(
        pipeline_image(&all, s->vis[first * CHANS], NULL, s->dirty[1], s->psf[1], NULL),
        TESS_OK);
    const double tolerance = fmax(1e-12, rounding(&facts));
    assert_true(relative(s->dirty[1], s->dirty[0], PIXELS) <= tolerance);
    assert_true(relative(s->psf[1], s->psf[0], PIXELS) <= tolerance);
    assert_int_equal(pipeline_predict(&one, s->image, &s->predicted[0][0][0]), TESS_OK);
    assert_int_equal(pipeline_predict(&all, s->image, &s->predicted[1][0][0]), TESS_OK);
    assert_true(relative(&s->predicted[1][0][0], s->predicted[0][first * CHANS],
                         (int)(2 * count * CHANS)) <= tolerance);
    tess_comm_free(self);
    free(s);
}

/* Every divisor of the ranks as FFT group and as number of w-groups, with whole and
 * split bricks, in both precisions, around the phase centre and beside it. */
static void test_layouts(void **state)
{
    (void)state;
    const tess_geom middle = {.nx = NX, .ny = NY, .scale_rad = 0.12 / NX};
    const tess_geom beside = {.nx = NX,
                              .ny = NY,
                              .scale_rad = 0.12 / NX,
                              .l0 = 0.03,
                              .m0 = -0.11,
                              .scale_m_rad = 0.1 / NY};
    const int size = tess_comm_size(world);
    for (int d = 1; d <= size; ++d) {
        if (size % d != 0) continue;
        const tess_layout slabs = {.threads = 1, .forced.fft_ranks = d};
        const tess_layout groups = {.threads = 1,
                                    .forced.pw = d,
                                    .forced.block_planes = 3,
                                    .forced.chunk = 8,
                                    .forced.split = 1};
        compare_with_one(&slabs, 1e-9, &middle);
        compare_with_one(&slabs, 1e-4, &middle);
        compare_with_one(&groups, 1e-9, &middle);
        compare_with_one(&groups, 1e-4, &middle);
        compare_with_one(&slabs, 1e-9, &beside);
        compare_with_one(&groups, 1e-4, &beside);
    }
}

/* ---- weights ---- */

static tess_samples weight_samples(const scene *s, const double *inv_lambda,
                                   int64_t first, int64_t count)
{
    tess_samples samples = {
        .is_double = true, .num_pol = 1, .num_weight = 1, .inv_lambda = inv_lambda};
    assert_int_equal(tess_samples_reserve(&samples, count, count * CHANS), TESS_OK);
    for (int64_t k = 0; k < count; ++k) {
        memcpy(samples.uvw_m + 3 * k, s->uvw_m[first + k], 3 * sizeof(double));
        samples.chan_base[k] = 0;
        samples.num_chan[k] = CHANS;
        samples.vis_first[k] = k * CHANS;
        for (int c = 0; c < CHANS; ++c)
            ((double *)samples.weight)[k * CHANS + c] =
                1 + 0.1 * (double)((first + k) % 7);
    }
    samples.num_rows = count;
    samples.num_vis = count * CHANS;
    return samples;
}

static void weigh_image(tess_comm *comm, const tess_geom *geom,
                        const tess_weight_opts *opts, tess_samples *samples)
{
    tess_density *density = NULL;
    assert_int_equal(tess_density_create(geom, opts, 1, &density), TESS_OK);
    assert_int_equal(tess_density_add(density, samples, 0, samples->num_rows, 1),
                     TESS_OK);
    assert_int_equal(tess_density_finish(density, comm, 1), TESS_OK);
    assert_int_equal(tess_density_apply(density, samples, 0, samples->num_rows, 1),
                     TESS_OK);
    tess_density_destroy(density);
}

static void weigh(tess_comm *comm, const tess_weight_opts *opts, tess_samples *samples)
{
    const tess_geom geom = {.nx = NX, .ny = NY, .scale_rad = 0.12 / NX};
    weigh_image(comm, &geom, opts, samples);
}

/* Sums of a cell's weights in another order differ in the last bits. */
static void test_weights(void **state)
{
    (void)state;
    static const tess_weight_opts kinds[] = {
        {.weighting = TESS_UNIFORM},
        {.weighting = TESS_BRIGGS},
        {.weighting = TESS_BRIGGS, .robust = -1, .rank_filter = 3},
        {.weighting = TESS_UNIFORM, .rank_filter = 1.2},
        {.weighting = TESS_UNIFORM, .rank_filter = 1.1, .rank_cells = 9},
        {.weighting = TESS_BRIGGS, .rank_filter = 1, .rank_cells = 170},
        {.weighting = TESS_BRIGGS, .box_cells = 3},
        {.weighting = TESS_UNIFORM, .box_cells = 70, .rank_filter = 1.2},
        {.weighting = TESS_BRIGGS,
         .taper = {.edge_lambda = 20, .edge_tukey_lambda = 2000}}};
    const int size = tess_comm_size(world), rank = tess_comm_rank(world);
    const int64_t first = ROWS * rank / size, count = ROWS * (rank + 1) / size - first;
    scene *s = make_scene();
    double inv_lambda[CHANS];
    tess_comm *self;
    assert_int_equal(tess_comm_self(&self), TESS_OK);
    for (int c = 0; c < CHANS; ++c)
        inv_lambda[c] = s->freq_hz[c] / 299792458.0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; ++k) {
        tess_samples one = weight_samples(s, inv_lambda, 0, ROWS);
        tess_samples part = weight_samples(s, inv_lambda, first, count);
        weigh(self, &kinds[k], &one);
        weigh(world, &kinds[k], &part);
        for (int64_t v = 0; v < count * CHANS; ++v) {
            const double expected = ((double *)one.weight)[first * CHANS + v];
            assert_true(expected > 0);
            assert_true(fabs(((double *)part.weight)[v] / expected - 1) < 1e-13);
        }
        tess_samples_free(&one);
        tess_samples_free(&part);
    }
    tess_comm_free(self);
    free(s);
}

/* Samples on either side of the borders between pages, and of each page on one rank
 * alone. A cell's mean then takes in cells that only other ranks have samples in. */
static void check_disjoint_cover(const tess_weight_opts *opts)
{
    enum { PAGE = 64, EACH = 60, PAGES = 4, ALL = EACH * PAGES };
    const tess_geom geom = {.nx = 200, .ny = 200, .scale_rad = 1e-3}; /* 240² cells */
    const int size = tess_comm_size(world), rank = tess_comm_rank(world);
    const double inv_lambda = 1, cell = 1 / (240 * geom.scale_rad);
    tess_samples all = {
        .is_double = true, .num_pol = 1, .num_weight = 1, .inv_lambda = &inv_lambda};
    tess_samples own = all;
    double expected[ALL];
    draw from = {7};
    tess_comm *self;
    assert_int_equal(tess_comm_self(&self), TESS_OK);
    assert_int_equal(tess_samples_reserve(&all, ALL, ALL), TESS_OK);
    assert_int_equal(tess_samples_reserve(&own, ALL, ALL), TESS_OK);
    for (int k = 0; k < ALL; ++k) {
        const int page = k / EACH, border = page == 0 ? 1 : page == 3 ? 0 : k % 2;
        const double x =
            PAGE * (page + border) + draw_uniform(&from, 0, 6) * (border == 1 ? -1 : 1);
        all.uvw_m[3 * k] = (x - 120) * cell;
        all.uvw_m[3 * k + 1] = draw_uniform(&from, 0, 6) * cell;
        all.uvw_m[3 * k + 2] = 0;
        all.chan_base[k] = 0;
        all.num_chan[k] = 1;
        all.vis_first[k] = k;
        /* 1/W_c differs from page to page by more than the filter allows */
        ((double *)all.weight)[k] = pow(4, page % 2) * (1 + 0.1 * (k % 7));
    }
    all.num_rows = all.num_vis = ALL;
    for (int k = 0; k < ALL; ++k) {
        if (k / EACH % size != rank) continue;
        const int64_t to = own.num_rows++;
        memcpy(own.uvw_m + 3 * to, all.uvw_m + 3 * k, 3 * sizeof(double));
        own.chan_base[to] = 0;
        own.num_chan[to] = 1;
        own.vis_first[to] = to;
        ((double *)own.weight)[to] = ((double *)all.weight)[k];
    }
    own.num_vis = own.num_rows;
    weigh_image(self, &geom, opts, &all);
    memcpy(expected, all.weight, sizeof expected);
    weigh_image(world, &geom, opts, &own);
    for (int k = 0, at = 0; k < ALL; ++k)
        if (k / EACH % size == rank) {
            assert_true(expected[k] > 0);
            assert_true(fabs(((double *)own.weight)[at++] / expected[k] - 1) < 1e-13);
        }
    tess_samples_free(&all);
    tess_samples_free(&own);
    tess_comm_free(self);
}

static void test_rank_filter_of_disjoint_cover(void **state)
{
    (void)state;
    check_disjoint_cover(
        &(tess_weight_opts){.weighting = TESS_UNIFORM, .rank_filter = 1.2});
}

/* Squares hold cells of other ranks, also beyond v = 0. */
static void test_squares_of_disjoint_cover(void **state)
{
    (void)state;
    check_disjoint_cover(
        &(tess_weight_opts){.weighting = TESS_UNIFORM, .box_cells = 20});
    check_disjoint_cover(
        &(tess_weight_opts){.weighting = TESS_BRIGGS, .box_cells = 20});
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alltoallv),
        cmocka_unit_test(test_gather_and_scan),
        cmocka_unit_test(test_agree_and_blame),
        cmocka_unit_test(test_reduce_scatter),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_rank_filter_of_disjoint_cover),
        cmocka_unit_test(test_squares_of_disjoint_cover),
    };
    if (tess_comm_start(&argc, &argv, &world) != TESS_OK) return 1;
    TEST_ON_RANKS(world, tests);
    tess_comm_finish(world);
    return 0;
}
