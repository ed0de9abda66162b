/* Nodes of tracks: pixels of a small image are those of the samples, whatever the
 * visibilities are; smooth tracks have few nodes; and what is no smooth track stays as
 * it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "tess_const.h"
#include "tess_samples.h"
#include "tess_tracks.h"

enum {
    ANTENNAS = 5,
    TIMES = 120,
    CHANS = 22,
    BASELINES = 10,
    ROWS = TIMES * BASELINES
};

static const double HALF[3] = {3e-3, 2e-3, 1e-4};
static const double PHASE[3] = {0.02, -0.03, -6e-4};

typedef struct scene {
    tess_samples samples;
    tess_brick_list bricks;
    tess_origins origins;
    double inv_lambda[CHANS];
} scene;

/* Rows of the second half of the time come first, as other ranks send them; the list of
 * runs is in the order of time. */
static int32_t row_in_time(int32_t k)
{
    return (k + ROWS / 2) % ROWS;
}

/* Antennas within ±`spread_m` that the Earth turns by 2e-3 rad from time to time. */
static void place_rows(scene *s, double spread_m, double roughness_m, draw *random)
{
    double antenna[ANTENNAS][3];
    for (int k = 0; k < ANTENNAS; ++k)
        for (int j = 0; j < 3; ++j)
            antenna[k][j] = draw_uniform(random, -spread_m, spread_m);
    for (int t = 0, k = 0; t < TIMES; ++t)
        for (int a = 0; a < ANTENNAS; ++a)
            for (int b = a + 1; b < ANTENNAS; ++b, ++k) {
                const int32_t row = row_in_time(k);
                const double c = cos(2e-3 * t), d = sin(2e-3 * t);
                const double x = antenna[b][0] - antenna[a][0];
                const double y = antenna[b][1] - antenna[a][1];
                double *uvw_m = s->samples.uvw_m + 3 * row;
                const int32_t stretch = tess_origins_stretch_of(&s->origins, t);
                const int32_t first = s->origins.stretch[stretch].antenna;
                const tess_origin origin = {first + a, first + b, t, 0};
                uvw_m[0] = c * x - d * y;
                uvw_m[1] = 0.6 * (d * x + c * y);
                uvw_m[2] = 0.8 * (d * x + c * y) + antenna[b][2] - antenna[a][2];
                for (int j = 0; j < 3; ++j)
                    uvw_m[j] += roughness_m * draw_normal(random);
                s->samples.origin[row] = tess_origin_number(&s->origins, &origin);
            }
}

static void set(tess_samples *samples, void *array, int64_t k, double value)
{
    tess_real_set(array, samples->is_double, k, value);
}

/* Noise, and some samples without weight whose values are not finite. */
static void fill_samples(scene *s, draw *random)
{
    tess_samples *samples = &s->samples;
    for (int64_t row = 0; row < ROWS; ++row) {
        samples->chan_base[row] = 0;
        samples->num_chan[row] = CHANS;
        samples->vis_first[row] = row * CHANS;
    }
    for (int64_t k = 0; k < samples->num_vis; ++k) {
        const bool ignored = draw_index(random, 9) == 0;
        set(samples, samples->weight, k, ignored ? 0 : draw_uniform(random, .5, 2));
        for (int j = 0; j < 4; ++j)
            set(samples, samples->vis, 4 * k + j,
                ignored ? (double)NAN : draw_normal(random));
    }
}

/* All runs in two bricks: channels below and above CHANS − 3. */
static void list_bricks(scene *s)
{
    tess_brick_list *list = &s->bricks;
    assert_int_equal(tess_brick_list_make_counts(2, false, list), TESS_OK);
    list->run = malloc(2 * ROWS * sizeof *list->run);
    for (int b = 0; b < 2; ++b) {
        const int32_t first = b ? CHANS - 3 : 0, end = b ? CHANS : CHANS - 3;
        list->key[b] = 7 + b;
        list->first_run[b] = list->num_runs;
        list->num_vis[b] = (int64_t)ROWS * (end - first);
        for (int32_t k = 0; k < ROWS; ++k)
            list->run[list->num_runs++] =
                (tess_run){.brick = 7 + b,
                           .first = (int64_t)row_in_time(k) * CHANS + first,
                           .row = row_in_time(k),
                           .chan = first,
                           .count = end - first};
    }
    list->first_run[2] = list->num_runs;
    list->num_bricks = 2;
}

/* Half of the times are a night of its own. Each night has the last antennas of many,
 * whose pairs would be more than can be numbered, or the first ones. */
static void part_nights(tess_origins *origins)
{
    origins->num_antennas = 60000;
    origins->num_stretches = 2;
    origins->stretch[0].antenna = origins->num_antennas - ANTENNAS;
    origins->stretch[1].interval = TIMES / 2;
}

static scene *make_nights(bool is_double, double spread_m, double roughness_m,
                          bool parted)
{
    draw random = {12};
    scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    for (int c = 0; c < CHANS; ++c)
        s->inv_lambda[c] = 5 + 0.05 * c;
    s->origins = (tess_origins){ANTENNAS, TIMES,           1,
                                ANTENNAS, .interval_s = 1, .num_stretches = 1};
    if (parted) part_nights(&s->origins);
    s->samples = (tess_samples){.is_double = is_double,
                                .num_pol = 2,
                                .num_weight = 1,
                                .inv_lambda = s->inv_lambda,
                                .origins = &s->origins};
    assert_int_equal(tess_samples_reserve(&s->samples, ROWS, ROWS * CHANS), TESS_OK);
    s->samples.num_rows = ROWS;
    s->samples.num_vis = ROWS * CHANS;
    place_rows(s, spread_m, roughness_m, &random);
    fill_samples(s, &random);
    list_bricks(s);
    return s;
}

static scene *make_scene(bool is_double, double spread_m, double roughness_m)
{
    return make_nights(is_double, spread_m, roughness_m, false);
}

static void free_scene(scene *s)
{
    tess_samples_free(&s->samples);
    free(s->bricks.run);
    s->bricks.run = NULL;
    tess_brick_list_free(&s->bricks);
    free(s);
}

/* ---- factors ---- */

/* Factors change with the time in steps of 9 intervals, the antenna and the channel. */
static double complex factor_of(const tess_origins *origins, int32_t origin, int corr,
                                int32_t chan)
{
    const tess_origin of = tess_origin_of(origins, origin);
    const int32_t first = of.antenna1 % 100, second = of.antenna2 % 100;
    const double turns = 0.1 * first - 0.23 * second + 0.07 * (of.interval / 9) +
                         0.01 * chan + 0.3 * corr;
    return (1 + 0.1 * first) *
           CMPLX(cos(TESS_TWO_PI * turns), sin(TESS_TWO_PI * turns));
}

static void factors(const void *context, int image, const tess_samples *row,
                    double complex *to)
{
    const scene *s = context;
    assert_int_equal(row->vis_first[0] % CHANS, row->chan_base[0]);
    for (int32_t c = 0; c < row->num_chan[0]; ++c)
        for (int q = 0; q < 2; ++q)
            *to++ = (1 + image) *
                    factor_of(&s->origins, row->origin[0], q, row->chan_base[0] + c);
}

static bool same(const void *context, int32_t origin, int32_t other)
{
    const scene *s = context;
    const tess_origin a = tess_origin_of(&s->origins, origin);
    const tess_origin b = tess_origin_of(&s->origins, other);
    return a.antenna1 == b.antenna1 && a.antenna2 == b.antenna2 &&
           a.interval / 9 == b.interval / 9;
}

/* ---- pixels ---- */

static double complex phase_factor(const double uvw_m[3], const double at[3],
                                   double inv_lambda)
{
    double path = 0;
    for (int k = 0; k < 3; ++k)
        path += uvw_m[k] * at[k] * inv_lambda;
    return CMPLX(cos(TESS_TWO_PI * path), -sin(TESS_TWO_PI * path));
}

static double complex value_at(const tess_samples *samples, int64_t k)
{
    return CMPLX(tess_real_at(samples->vis, samples->is_double, 2 * k),
                 tess_real_at(samples->vis, samples->is_double, 2 * k + 1));
}

/* Σ W f V exp(−2πi …) of the samples of a brick. */
static double complex pixel_of_samples(const scene *s, int brick, const double at[3],
                                       double *size)
{
    const tess_samples *samples = &s->samples;
    double complex sum = 0;
    *size = 0;
    for (int64_t k = 0; k < samples->num_vis; ++k) {
        const int64_t row = k / CHANS;
        const int32_t chan = (int32_t)(k % CHANS);
        const double weight = tess_samples_weight(samples, k);
        double complex value = 0;
        if (weight == 0 || (chan >= CHANS - 3) != brick) continue;
        for (int q = 0; q < 2; ++q)
            value += factor_of(&s->origins, samples->origin[row], q, chan) *
                     value_at(samples, 2 * k + q);
        sum += weight * value *
               phase_factor(samples->uvw_m + 3 * row, at, s->inv_lambda[chan]);
        *size += weight * cabs(value);
    }
    return sum;
}

static double complex pixel_of_nodes(const tess_tracks *tracks, int brick,
                                     const double at[3])
{
    const tess_samples *nodes = tess_tracks_nodes(tracks);
    const tess_brick_list *list = tess_tracks_bricks(tracks);
    double complex sum = 0;
    for (int64_t r = list->first_run[brick]; r < list->first_run[brick + 1]; ++r) {
        const tess_run *run = &list->run[r];
        assert_int_equal(run->brick, list->key[brick]);
        assert_int_equal(run->first, nodes->vis_first[run->row]);
        for (int32_t c = 0; c < run->count; ++c) {
            sum += value_at(nodes, run->first + c) *
                   phase_factor(nodes->uvw_m + 3 * (int64_t)run->row, at,
                                nodes->inv_lambda[run->chan + c]);
        }
    }
    return sum;
}

/* Image 0, and others farther and farther away. */
static tess_tracks_view view_of(const scene *s, int image)
{
    const double share = 1 + 0.1 * image;
    return (tess_tracks_view){
        .factors = factors,
        .context = s,
        .image = image,
        .phase = {share * PHASE[0], share * PHASE[1], share * PHASE[2]}};
}

/* Tracks that stay within bricks, or go from one to another. */
static tess_tracks *tracks_in(const scene *s, const tess_brick_list *bricks,
                              double tolerance, int threads)
{
    const tess_tracks_opts opts = {.half = {HALF[0], HALF[1], HALF[2]},
                                   .tolerance = tolerance,
                                   .num_pol = 1,
                                   .most_images = 3,
                                   .threads = threads,
                                   .same = same,
                                   .context = s};
    const tess_tracks_view view = view_of(s, 0);
    tess_tracks *tracks;
    assert_int_equal(tess_tracks_create(&s->samples, bricks, &opts, &tracks), TESS_OK);
    tess_tracks_take(tracks, &view, 1);
    tess_tracks_show(tracks, 0);
    return tracks;
}

static tess_tracks *tracks_of(const scene *s, double tolerance, int threads)
{
    return tracks_in(s, &s->bricks, tolerance, threads);
}

/* Of all bricks. */
static double complex pixel_of_all_nodes(const tess_tracks *tracks, const double at[3])
{
    const tess_samples *nodes = tess_tracks_nodes(tracks);
    double complex sum = 0;
    for (int64_t row = 0; row < nodes->num_rows; ++row)
        for (int32_t c = 0; c < nodes->num_chan[row]; ++c)
            sum += value_at(nodes, nodes->vis_first[row] + c) *
                   phase_factor(nodes->uvw_m + 3 * row, at,
                                nodes->inv_lambda[nodes->chan_base[row] + c]);
    return sum;
}

/* Pixels in the corners and inside, of noise: the largest error, by Σ W |f V|, of each
 * brick or of both together. */
static double error_of(const scene *s, const tess_tracks *tracks)
{
    const bool together = !tess_tracks_bricks(tracks);
    double largest = 0;
    for (int brick = 0; brick < (together ? 1 : 2); ++brick)
        for (int k = 0; k < 12; ++k) {
            const double share = k < 8 ? 1 : 0.3 * (k - 8);
            const double at[3] = {PHASE[0] + (k & 1 ? share : -share) * HALF[0],
                                  PHASE[1] + (k & 2 ? share : -share) * HALF[1],
                                  PHASE[2] + (k & 4 ? share : -share) * HALF[2]};
            double size, more = 0;
            double complex wanted = pixel_of_samples(s, brick, at, &size);
            if (together) wanted += pixel_of_samples(s, 1, at, &more);
            const double complex found = together ? pixel_of_all_nodes(tracks, at)
                                                  : pixel_of_nodes(tracks, brick, at);
            largest = fmax(largest, cabs(found - wanted) / (size + more));
        }
    return largest;
}

/* Errors of gridding are in proportion to the values of nodes: the sum of their squares
 * is at most twice that of the samples. */
static void check_size(const scene *s, const tess_tracks *tracks)
{
    const tess_samples *samples = &s->samples, *nodes = tess_tracks_nodes(tracks);
    double sum = 0, wanted = 0;
    for (int64_t k = 0; k < 2 * nodes->num_vis; ++k)
        sum += pow(tess_real_at(nodes->vis, nodes->is_double, k), 2);
    for (int64_t k = 0; k < samples->num_vis; ++k) {
        const int64_t row = k / CHANS;
        double complex value = 0;
        for (int q = 0; q < 2; ++q)
            value +=
                factor_of(&s->origins, samples->origin[row], q, (int32_t)(k % CHANS)) *
                value_at(samples, 2 * k + q);
        if (tess_samples_weight(samples, k) > 0)
            wanted += pow(tess_samples_weight(samples, k) * cabs(value), 2);
    }
    assert_true(sum < 2 * wanted);
}

/* Nodes that are expected of a scene: antennas turn in a plane. */
static tess_tracks_size expected_size(const scene *s, double tolerance)
{
    const tess_tracks_opts opts = {.half = {HALF[0], HALF[1], HALF[2]},
                                   .tolerance = tolerance};
    const double away = 2 / TESS_PI * (HALF[0] + HALF[1]);
    double density = 0;
    for (int64_t row = 0; row < ROWS; ++row) {
        const double *uvw_m = s->samples.uvw_m + 3 * row;
        const double length = hypot(uvw_m[0], uvw_m[1]) * s->inv_lambda[CHANS / 2];
        const double step_rad = TESS_TWO_PI * 2e-3 * length * away;
        density += tess_tracks_density(&opts, step_rad, TIMES) / ROWS;
    }
    const double items = tess_tracks_items(ROWS, (double)ROWS * CHANS);
    return (tess_tracks_size){ROWS, items, density * items};
}

/* What is told of tracks before they are found, which a plan counts: of tracks of one
 * piece, and of several. */
static void test_expected_size(void **state)
{
    (void)state;
    for (int far = 0; far < 2; ++far) {
        scene *s = make_scene(false, far ? 700 : 150, 0);
        tess_tracks *tracks = tracks_in(s, NULL, 1e-5, 2);
        const tess_tracks_size size = expected_size(s, 1e-5);
        const double found = (double)tess_tracks_nodes(tracks)->num_rows;
        assert_true(size.items == 2 * ROWS);              /* of 16 channels and of 6 */
        assert_true(fabs(size.nodes / found - 1) < 0.15); /* what plans promise */
        tess_tracks_destroy(tracks);
        free_scene(s);
    }
}

/* Antennas that lie close together, and so far apart that samples are hardly closer
 * than nodes have to be. */
static void test_pixels(void **state)
{
    (void)state;
    for (int k = 0; k < 4; ++k) {
        const bool is_double = k % 2, far = k > 1;
        const double tolerance = is_double ? 1e-9 : 1e-5;
        scene *s = make_scene(is_double, far ? 700 : 150, 0);
        tess_tracks *tracks = tracks_of(s, tolerance, 2);
        const int64_t num_nodes = tess_tracks_nodes(tracks)->num_vis;
        assert_true(num_nodes * (far ? 1 : is_double ? 2 : 4) < s->samples.num_vis);
        assert_true(error_of(s, tracks) < tolerance);
        check_size(s, tracks);
        tess_tracks_destroy(tracks);
        free_scene(s);
    }
}

/* Coordinates that jump about tell of no smooth track. */
static void test_rough(void **state)
{
    (void)state;
    scene *s = make_scene(true, 150, 0.3);
    tess_tracks *tracks = tracks_of(s, 1e-6, 1);
    assert_int_equal(tess_tracks_nodes(tracks)->num_vis, s->samples.num_vis);
    assert_true(error_of(s, tracks) < 1e-14);
    tess_tracks_destroy(tracks);
    free_scene(s);
}

/* Tracks that go from brick to brick, of which the nodes lie between rows, have fewer
 * nodes than those that stay, and are as accurate. Ignored samples at the ends of rows
 * do not part these from others of their baseline. */
static void test_onwards(void **state)
{
    (void)state;
    for (int k = 0; k < 4; ++k) {
        const bool is_double = k % 2, far = k > 1;
        const double tolerance = is_double ? 1e-9 : 1e-5;
        scene *s = make_scene(is_double, far ? 700 : 150, 0);
        tess_tracks *stay = tracks_of(s, tolerance, 2);
        tess_tracks *go = tracks_in(s, NULL, tolerance, 2);
        assert_null(tess_tracks_bricks(go));
        assert_true(tess_tracks_nodes(go)->num_vis <
                    (far ? 0.8 : 1) * (double)tess_tracks_nodes(stay)->num_vis);
        assert_true(error_of(s, go) < tolerance);
        check_size(s, go);
        tess_tracks_destroy(stay);
        tess_tracks_destroy(go);
        free_scene(s);
    }
}

/* Nights that have antennas of their own: their pairs need no memory, and no track goes
 * on from one night to the other. */
static void test_nights(void **state)
{
    (void)state;
    scene *s = make_nights(true, 150, 0, true);
    tess_tracks *tracks = tracks_in(s, NULL, 1e-5, 2);
    assert_true(4 * tess_tracks_nodes(tracks)->num_vis < s->samples.num_vis);
    assert_true(error_of(s, tracks) < 1e-5);
    check_size(s, tracks);
    tess_tracks_destroy(tracks);
    free_scene(s);
}

/* Channels at the ends of the band that are ignored in all rows have no nodes. */
static void test_edges(void **state)
{
    (void)state;
    enum { BEGIN = 2, END = CHANS - 5 };
    const double tolerance = 1e-5;
    scene *s = make_scene(true, 150, 0);
    for (int64_t k = 0; k < s->samples.num_vis; ++k)
        if (k % CHANS < BEGIN || k % CHANS >= END)
            set(&s->samples, s->samples.weight, k, 0);
    tess_tracks *tracks = tracks_in(s, NULL, tolerance, 2);
    const tess_samples *nodes = tess_tracks_nodes(tracks);
    int32_t first = CHANS, end = 0;
    for (int64_t row = 0; row < nodes->num_rows; ++row) {
        const int32_t chan = nodes->chan_base[row];
        first = chan < first ? chan : first;
        end = chan + nodes->num_chan[row] > end ? chan + nodes->num_chan[row] : end;
    }
    assert_int_equal(first, BEGIN);
    assert_int_equal(end, END);
    assert_true(error_of(s, tracks) < tolerance);
    tess_tracks_destroy(tracks);
    free_scene(s);
}

/* Coordinates that a file has rounded, by which single rows err more than the
 * tolerance, but all together less: tracks have nodes all the same. */
static void test_rounded(void **state)
{
    (void)state;
    const double tolerance = 1e-5, phase = TESS_TWO_PI * 6 * hypot(HALF[0], HALF[1]);
    scene *s = make_scene(true, 150, 0.5 * tolerance / phase);
    tess_tracks *tracks = tracks_in(s, NULL, tolerance, 1);
    assert_true(4 * tess_tracks_nodes(tracks)->num_vis < s->samples.num_vis);
    assert_true(error_of(s, tracks) < tolerance);
    tess_tracks_destroy(tracks);
    free_scene(s);
}

/* Nodes are the same, bit by bit, on any number of threads. */
static void test_threads(void **state)
{
    (void)state;
    scene *s = make_scene(false, 150, 0);
    tess_tracks *one = tracks_of(s, 1e-4, 1), *many = tracks_of(s, 1e-4, 4);
    const tess_samples *a = tess_tracks_nodes(one), *b = tess_tracks_nodes(many);
    assert_int_equal(a->num_vis, b->num_vis);
    assert_memory_equal(a->vis, b->vis, (size_t)a->num_vis * 2 * sizeof(float));
    tess_tracks_destroy(one);
    tess_tracks_destroy(many);
    free_scene(s);
}

/* Images that take samples together have the nodes, bit by bit, that they have alone:
 * also of samples that make no tracks, which take them one by one. */
static void test_together(void **state)
{
    (void)state;
    for (int rough = 0; rough < 2; ++rough) {
        scene *s = make_scene(false, 150, rough ? 0.3 : 0);
        tess_tracks *tracks = tracks_of(s, 1e-4, 2), *alone = tracks_of(s, 1e-4, 2);
        const int num = tess_tracks_images(tracks);
        const size_t bytes =
            (size_t)tess_tracks_nodes(tracks)->num_vis * 2 * sizeof(float);
        const tess_tracks_view all[3] = {view_of(s, 0), view_of(s, 1), view_of(s, 2)};
        assert_int_equal(num, rough ? 1 : 3);
        tess_tracks_take(tracks, all, num);
        for (int k = 0; k < num; ++k) {
            tess_tracks_take(alone, &all[k], 1);
            tess_tracks_show(tracks, k);
            assert_memory_equal(tess_tracks_nodes(tracks)->vis,
                                tess_tracks_nodes(alone)->vis, bytes);
        }
        tess_tracks_destroy(tracks);
        tess_tracks_destroy(alone);
        free_scene(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expected_size), cmocka_unit_test(test_pixels),
        cmocka_unit_test(test_rough),         cmocka_unit_test(test_onwards),
        cmocka_unit_test(test_edges),         cmocka_unit_test(test_rounded),
        cmocka_unit_test(test_threads),       cmocka_unit_test(test_together),
        cmocka_unit_test(test_nights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
