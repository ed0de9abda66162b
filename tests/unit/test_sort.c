/* Cutting rows into runs and sorting them to bricks: every sample once, in order, the
 * same with any number of threads, whatever the rows and channel tables look like. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "tess_grid.h"
#include "tess_mem.h"
#include "tess_samples.h"

enum { ROWS = 700, TABLE = 64 };

typedef struct scene {
    tess_grid_plan *plan;
    tess_samples samples;
    double inv_lambda[TABLE];
    bool ignored[ROWS * TABLE];
} scene;

/* Channel tables: rising, falling, zigzag, and one whose band is wide. Each has 16. */
static void make_channels(double *inv_lambda)
{
    for (int c = 0; c < 16; ++c) {
        inv_lambda[c] = 3.0 + 0.05 * c;
        inv_lambda[16 + c] = 4.0 - 0.05 * c;
        inv_lambda[32 + c] = c % 2 ? 3.0 + 0.1 * c : 4.0 - 0.1 * c;
        inv_lambda[48 + c] = 1.0 + 0.5 * c;
    }
}

/* 60 × 50 pixels of 0.01 rad: the grid repeats every 100 wavelengths, and rows of up to
 * 120 m reach far beyond it. */
static void make_plan(scene *s, int block_planes)
{
    const tess_geom geom = {.nx = 60, .ny = 50, .scale_rad = 0.01};
    tess_grid_opts opts;
    tess_grid_opts_default(&opts);
    opts.w_max_lambda = 900;
    opts.num_vis = 10000;
    opts.block_planes = block_planes;
    const tess_backend *backend;
    assert_int_equal(tess_backend_find("cpu", &backend), TESS_OK);
    assert_int_equal(tess_grid_plan_create(&geom, &opts, backend, &s->plan), TESS_OK);
}

static scene *make_scene(int block_planes, bool is_double)
{
    draw random = {99};
    scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    make_channels(s->inv_lambda);
    make_plan(s, block_planes);
    tess_samples *samples = &s->samples;
    *samples = (tess_samples){.is_double = is_double,
                              .num_pol = 1,
                              .num_weight = 2,
                              .inv_lambda = s->inv_lambda};
    assert_int_equal(tess_samples_reserve(samples, ROWS, ROWS * 16), TESS_OK);
    for (int64_t row = 0; row < ROWS; ++row) {
        const double spread = row % 3 == 0 ? 120.0 : row % 3 == 1 ? 8.0 : 0.3;
        for (int k = 0; k < 3; ++k)
            samples->uvw_m[3 * row + k] =
                row % 50 == 7 ? 0 : draw_uniform(&random, -spread, spread);
        samples->chan_base[row] = (int32_t)(16 * draw_index(&random, 4));
        samples->num_chan[row] = (int32_t)(1 + draw_index(&random, 16));
        samples->vis_first[row] = samples->num_vis;
        samples->num_vis += samples->num_chan[row];
    }
    samples->num_rows = ROWS;
    /* weights, of which a sample is ignored when both are zero */
    for (int64_t k = 0; k < samples->num_vis; ++k) {
        s->ignored[k] = draw_index(&random, 3) == 0;
        for (int j = 0; j < 2; ++j) {
            const double weight = s->ignored[k] || draw_index(&random, 4) == 0;
            const double value = s->ignored[k] ? 0 : (j == k % 2 ? 1 : 1 - weight);
            if (is_double)
                ((double *)samples->weight)[2 * k + j] = value;
            else
                ((float *)samples->weight)[2 * k + j] = (float)value;
        }
    }
    return s;
}

static void free_scene(scene *s)
{
    tess_samples_free(&s->samples);
    tess_grid_plan_destroy(s->plan);
    free(s);
}

static tess_brick_list sorted(const scene *s, bool skip_ignored, int threads)
{
    tess_brick_list list = {0};
    /* in two parts, as blocks of a file come */
    assert_int_equal(tess_brick_list_append(s->plan, &s->samples, 0, ROWS / 3,
                                            skip_ignored, threads, &list),
                     TESS_OK);
    assert_int_equal(tess_brick_list_append(s->plan, &s->samples, ROWS / 3, ROWS,
                                            skip_ignored, threads, &list),
                     TESS_OK);
    assert_int_equal(tess_brick_list_sort(&list, threads), TESS_OK);
    return list;
}

/* A run's samples are those of its row and channels, and lie in its brick. */
static void check_run(const scene *s, const tess_run *run, int *seen)
{
    const tess_samples *samples = &s->samples;
    const int32_t row = run->row;
    assert_in_range(row, 0, ROWS - 1);
    const int32_t offset = run->chan - samples->chan_base[row];
    assert_true(offset >= 0 && run->count > 0);
    assert_true(offset + run->count <= samples->num_chan[row]);
    assert_int_equal(run->first, samples->vis_first[row] + offset);
    for (int32_t c = 0; c < run->count; ++c) {
        const double *uvw_m = samples->uvw_m + 3 * row;
        assert_int_equal(
            tess_brick_key_of(s->plan, uvw_m, s->inv_lambda[run->chan + c]),
            run->brick);
        ++seen[run->first + c];
    }
}

static void check_index(const tess_brick_list *list)
{
    int64_t at = 0;
    for (int64_t b = 0; b < list->num_bricks; ++b) {
        int64_t count = 0;
        assert_true(b == 0 || list->key[b] > list->key[b - 1]);
        assert_int_equal(list->first_run[b], at);
        for (; at < list->num_runs && list->run[at].brick == list->key[b]; ++at) {
            count += list->run[at].count;
            /* stable: in order of samples inside a brick */
            assert_true(at == list->first_run[b] ||
                        list->run[at].first > list->run[at - 1].first);
        }
        assert_int_equal(list->num_vis[b], count);
    }
    assert_int_equal(at, list->num_runs);
    assert_int_equal(list->first_run[list->num_bricks], at);
}

static void check_list(const scene *s, const tess_brick_list *list, bool skip_ignored)
{
    int *seen = calloc((size_t)s->samples.num_vis, sizeof *seen);
    assert_non_null(seen);
    for (int64_t k = 0; k < list->num_runs; ++k) {
        const tess_run *run = &list->run[k];
        check_run(s, run, seen);
        /* ignored samples neither begin nor make up a run */
        if (skip_ignored) assert_false(s->ignored[run->first]);
    }
    for (int64_t k = 0; k < s->samples.num_vis; ++k) {
        if (skip_ignored && s->ignored[k])
            assert_in_range(seen[k], 0, 1); /* between two that count */
        else
            assert_int_equal(seen[k], 1);
    }
    check_index(list);
    free(seen);
}

static void test_every_sample_once(void **state)
{
    static const int block_planes[] = {1, 3, 0};
    for (int b = 0; b < 3; ++b)
        for (int mode = 0; mode < 4; ++mode) {
            scene *s = make_scene(block_planes[b], mode / 2);
            tess_brick_list list = sorted(s, mode % 2, 1);
            assert_true(list.num_bricks > 50);
            check_list(s, &list, mode % 2);
            tess_brick_list_free(&list);
            free_scene(s);
        }
}

static void test_threads(void **state)
{
    scene *s = make_scene(3, false);
    tess_brick_list one = sorted(s, true, 1);
    for (int threads = 2; threads <= 5; ++threads) {
        tess_brick_list many = sorted(s, true, threads);
        assert_int_equal(many.num_runs, one.num_runs);
        assert_memory_equal(many.run, one.run, (size_t)one.num_runs * sizeof *one.run);
        assert_int_equal(many.num_bricks, one.num_bricks);
        tess_brick_list_free(&many);
    }
    tess_brick_list_free(&one);
    free_scene(s);
}

/* The image is periodic in u and v: a baseline longer by one period of the grid has the
 * same tile, and (−u, −v, −w) the same brick. */
static void test_wrap(void **state)
{
    scene *s = make_scene(3, false);
    draw random = {4};
    for (int k = 0; k < 2000; ++k) {
        double uvw[3], moved[3];
        for (int i = 0; i < 3; ++i)
            uvw[i] = draw_uniform(&random, -49.0, 49.0);
        const int64_t key = tess_brick_key_of(s->plan, uvw, 1.0);
        assert_in_range(key, 0,
                        s->plan->num_blocks * s->plan->tiles_u * s->plan->tiles_v - 1);
        for (int i = 0; i < 3; ++i)
            moved[i] = -uvw[i];
        assert_int_equal(tess_brick_key_of(s->plan, moved, 1.0), key);
        /* not within rounding of a cell's border */
        moved[0] = uvw[0] + (draw_index(&random, 2) ? 100.0 : -300.0);
        moved[1] = uvw[1] + (draw_index(&random, 2) ? 200.0 : -100.0);
        moved[2] = uvw[2];
        assert_int_equal(tess_brick_key_of(s->plan, moved, 1.0), key);
    }
    free_scene(s);
}

/* The same samples in the same order, in parts that are full but for a brick's last. */
static void test_cut(void **state)
{
    enum { MOST = 5 };
    scene *s = make_scene(0, false);
    tess_brick_list whole = {0}, cut = {0};
    tess_brick_list *both[2] = {&whole, &cut};
    for (int k = 0; k < 2; ++k) {
        assert_int_equal(
            tess_brick_list_append(s->plan, &s->samples, 0, ROWS, true, 2, both[k]),
            TESS_OK);
        assert_int_equal(tess_brick_list_sort(both[k], 2), TESS_OK);
    }
    assert_int_equal(tess_brick_list_cut(&cut, MOST), TESS_OK);
    assert_true(cut.num_bricks > whole.num_bricks);
    int64_t part = 0, run = 0, used = 0; /* of `cut`, and samples of the run */
    for (int64_t b = 0; b < whole.num_bricks; ++b) {
        for (int64_t left = whole.num_vis[b]; left > 0; left -= MOST, ++part) {
            assert_int_equal(cut.key[part], whole.key[b]);
            assert_int_equal(cut.num_vis[part], left < MOST ? left : MOST);
            int64_t count = 0;
            for (int64_t r = cut.first_run[part]; r < cut.first_run[part + 1]; ++r)
                count += cut.run[r].count;
            assert_int_equal(count, cut.num_vis[part]);
        }
        for (int64_t r = whole.first_run[b]; r < whole.first_run[b + 1]; ++r)
            for (int32_t k = 0; k < whole.run[r].count; ++k) {
                assert_int_equal(cut.run[run].row, whole.run[r].row);
                assert_int_equal(cut.run[run].first + used, whole.run[r].first + k);
                assert_int_equal(cut.run[run].chan + used, whole.run[r].chan + k);
                if (++used < cut.run[run].count) continue;
                used = 0;
                ++run;
            }
    }
    assert_int_equal(part, cut.num_bricks);
    assert_int_equal(run, cut.num_runs);
    tess_brick_list_free(&whole);
    tess_brick_list_free(&cut);
    free_scene(s);
}

/* The runs of every third row, in their order, and no bricks without any. */
static void test_pick(void **state)
{
    scene *s = make_scene(0, false);
    tess_brick_list all = sorted(s, true, 2), picked = {0};
    bool wanted[ROWS];
    for (int row = 0; row < ROWS; ++row)
        wanted[row] = row % 3 == 1;
    assert_int_equal(tess_brick_list_pick(&all, wanted, &picked), TESS_OK);
    check_index(&picked);
    assert_true(picked.num_runs > 0 && picked.num_bricks < all.num_bricks);
    int64_t next = 0;
    for (int64_t r = 0; r < all.num_runs; ++r)
        if (wanted[all.run[r].row])
            assert_memory_equal(&picked.run[next++], &all.run[r], sizeof *all.run);
    assert_int_equal(next, picked.num_runs);
    tess_brick_list_free(&picked);
    memset(wanted, 0, sizeof wanted);
    assert_int_equal(tess_brick_list_pick(&all, wanted, &picked), TESS_OK);
    assert_int_equal(picked.num_bricks, 0);
    assert_int_equal(picked.first_run[0], 0);
    tess_brick_list_free(&picked);
    tess_brick_list_free(&all);
    free_scene(s);
}

/* Keys of few bits, which are sorted in one pass, and of many, which are not. */
static void test_keys(void **state)
{
    static const int64_t keys[] = {1, 2, 50, 5000, INT64_C(1) << 23, INT64_C(1) << 52};
    enum { RUNS = 6000 };
    for (size_t c = 0; c < sizeof keys / sizeof *keys; ++c)
        for (int threads = 1; threads <= 5; threads += 2) {
            draw random = {77};
            tess_brick_list list = {0};
            list.run = tess_alloc(RUNS, sizeof *list.run);
            assert_non_null(list.run);
            list.num_runs = list.capacity_runs = RUNS;
            for (int k = 0; k < RUNS; ++k)
                list.run[k] = (tess_run){.brick = draw_index(&random, keys[c]),
                                         .first = k,
                                         .count = 1 + k % 3};
            assert_int_equal(tess_brick_list_sort(&list, threads), TESS_OK);
            check_index(&list);
            tess_brick_list_free(&list);
        }
}

/* The planes of a brick are those of its samples' footprints, from the first one's
 * first to the last one's last. `list` is sorted. */
static void check_planes(const scene *s, const tess_brick_list *list,
                         const tess_plane_span *planes)
{
    const int support = s->plan->w_support, last = s->plan->num_planes - support;
    for (int64_t b = 0; b < list->num_bricks; ++b) {
        int lowest = last, highest = 0;
        for (int64_t r = list->first_run[b]; r < list->first_run[b + 1]; ++r)
            for (int c = 0; c < list->run[r].count; ++c) {
                const double w = fabs(s->samples.uvw_m[3 * list->run[r].row + 2]) *
                                 s->samples.inv_lambda[list->run[r].chan + c];
                const double plane =
                    (w - s->plan->w_first_lambda) / s->plan->w_step_lambda;
                const int start = (int)ceil(plane - 0.5 * support);
                lowest = start < lowest ? start : lowest;
                highest = start > highest ? start : highest;
            }
        assert_int_equal(planes[b].first, lowest < 0 ? 0 : lowest);
        assert_int_equal(planes[b].end, (highest > last ? last : highest) + support);
    }
}

/* Counting finds the bricks that sorting finds: by counters of all bricks, or, of few
 * samples, by sorting. */
static void test_counting(void **state)
{
    scene *s = make_scene(1, false);
    const int64_t num_keys = s->plan->num_blocks * s->plan->tiles_u * s->plan->tiles_v;
    for (int few = 0; few < 2; ++few)
        for (int threads = 1; threads <= 3; ++threads) {
            tess_brick_list counted = {0}, sorted = {0}, spread = {0};
            tess_samples rows = s->samples;
            rows.num_rows = few ? 4 : ROWS;
            rows.num_vis =
                rows.vis_first[rows.num_rows - 1] + rows.num_chan[rows.num_rows - 1];
            assert_int_equal(few, num_keys > 2 * rows.num_vis);
            assert_int_equal(
                tess_brick_list_count(s->plan, &rows, true, threads, &counted),
                TESS_OK);
            assert_int_equal(tess_brick_list_append(s->plan, &rows, 0, rows.num_rows,
                                                    true, threads, &sorted),
                             TESS_OK);
            assert_int_equal(tess_brick_list_sort(&sorted, threads), TESS_OK);
            assert_null(counted.run);
            assert_int_equal(counted.num_runs, sorted.num_runs);
            assert_true(sorted.num_bricks > 1);
            assert_int_equal(counted.num_bricks, sorted.num_bricks);
            const size_t bytes = (size_t)sorted.num_bricks * sizeof *sorted.key;
            assert_memory_equal(counted.key, sorted.key, bytes);
            assert_memory_equal(counted.num_vis, sorted.num_vis, bytes);
            assert_memory_equal(counted.first_run, sorted.first_run,
                                bytes + sizeof *sorted.first_run);
            assert_int_equal(
                tess_brick_list_count_planes(s->plan, &rows, true, threads, &spread),
                TESS_OK);
            assert_null(spread.run);
            assert_int_equal(spread.num_bricks, sorted.num_bricks);
            assert_memory_equal(spread.key, sorted.key, bytes);
            check_planes(s, &sorted, spread.planes);
            tess_brick_list_free(&counted);
            tess_brick_list_free(&sorted);
            tess_brick_list_free(&spread);
        }
    free_scene(s);
}

/* Planes are found by the ends of runs where channels are in order, by all of them
 * where they are not. */
static void test_channel_order(void **state)
{
    static const bool in_order[] = {true, true, false, true};
    scene *s = make_scene(2, false);
    tess_samples none = {0};
    assert_false(tess_samples_in_order(&s->samples));
    assert_true(tess_samples_in_order(&none));
    for (int part = 0; part < 4; ++part) {
        tess_brick_list sorted = {0}, spread = {0};
        for (int row = 0; row < ROWS; ++row)
            s->samples.chan_base[row] = 16 * part;
        assert_int_equal(tess_samples_in_order(&s->samples), in_order[part]);
        assert_int_equal(
            tess_brick_list_append(s->plan, &s->samples, 0, ROWS, true, 2, &sorted),
            TESS_OK);
        assert_int_equal(tess_brick_list_sort(&sorted, 2), TESS_OK);
        assert_int_equal(
            tess_brick_list_count_planes(s->plan, &s->samples, true, 2, &spread),
            TESS_OK);
        check_planes(s, &sorted, spread.planes);
        tess_brick_list_free(&sorted);
        tess_brick_list_free(&spread);
    }
    for (int row = 0; row < ROWS; ++row)
        s->samples.num_chan[row] = 0;
    assert_true(tess_samples_in_order(&s->samples));
    free_scene(s);
}

static void test_empty(void **state)
{
    scene *s = make_scene(0, false);
    tess_brick_list list = {0};
    assert_int_equal(tess_brick_list_append(s->plan, &s->samples, 5, 5, true, 4, &list),
                     TESS_OK);
    assert_int_equal(tess_brick_list_sort(&list, 2), TESS_OK);
    assert_int_equal(list.num_runs, 0);
    assert_int_equal(list.num_bricks, 0);
    assert_int_equal(list.first_run[0], 0);
    memset(s->samples.weight, 0, (size_t)s->samples.num_vis * 2 * sizeof(float));
    assert_int_equal(
        tess_brick_list_append(s->plan, &s->samples, 0, ROWS, true, 3, &list), TESS_OK);
    assert_int_equal(list.num_runs, 0);
    tess_brick_list_free(&list);
    s->samples.num_rows = 0;
    assert_int_equal(tess_brick_list_count_planes(s->plan, &s->samples, true, 2, &list),
                     TESS_OK);
    assert_int_equal(list.num_bricks, 0);
    tess_brick_list_free(&list);
    free_scene(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_sample_once),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_pick),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_counting),
        cmocka_unit_test(test_channel_order),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
