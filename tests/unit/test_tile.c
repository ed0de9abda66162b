/* The innermost loops of every instruction set against sums over taps in double
 * precision: all supports, both precisions, several polarisations, PSFs, no weights,
 * few and many planes, with and without work memory. The queue that jobs come from. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "kernel_start.h"
#include "locate.h"
#include "tess_mem.h"
#include "tess_samples.h"
#include "tile_tables.h"

enum { ROWS = 30, CHANNELS = 21, VIS = ROWS * CHANNELS };

/* A buffer somewhere on the grid, and samples whose footprints start in its brick. */
typedef struct scene {
    tess_grid_plan plan;
    tess_samples samples;
    double inv_lambda[CHANNELS];
    tess_run run[2 * ROWS];
    int num_runs;
    int num_pol; /* of the buffer */
    tile_job job;
    tile_taps taps[2];
    double *expected; /* buffer, stride included */
    int64_t reals;
    bool repeated; /* two of three rows are the ones before them once more */
} scene;

static double value_of(const void *array, bool is_double, int64_t at)
{
    return is_double ? ((const double *)array)[at] : (double)((const float *)array)[at];
}

static void set_value(void *array, bool is_double, int64_t at, double value)
{
    if (is_double)
        ((double *)array)[at] = value;
    else
        ((float *)array)[at] = (float)value;
}

/* Planes that are few by themselves: that many, which all samples touch. */
enum { BETWEEN_PLANES = 3 };

static void make_plan(scene *s, int support, bool is_double, bool do_w, int starts)
{
    const bool few = starts == BETWEEN_PLANES;
    const int w_support = !do_w ? 1 : few ? BETWEEN_PLANES : support;
    s->plan = (tess_grid_plan){.target.geom = {.nx = 100,
                                               .ny = 90,
                                               .scale_rad = 1e-3,
                                               .l0 = support % 2 ? 0.02 : 0,
                                               .m0 = support % 2 ? -0.03 : 0},
                               .is_double = is_double,
                               .nu = 160,
                               .nv = 150,
                               .tile = TESS_TILE,
                               .footprint = support,
                               .w_support = w_support,
                               .num_planes = 3 + starts + w_support,
                               .w_first_lambda = 5,
                               .w_step_lambda = 0.5,
                               .target.nm1_center = -0.01};
    s->plan.opts.do_w = do_w;
    s->plan.target.phase =
        tess_geom_phase_of(&s->plan.target.geom, s->plan.target.nm1_center, do_w);
    tess_kernel_create(support, 1.5, &s->plan.kernel);
    s->plan.along_w = s->plan.kernel;
    if (few) tess_kernel_between_planes(w_support, 0.1, &s->plan.along_w);
    tile_taps_fill(&s->plan, s->taps);
}

/* Rows whose channels all start in the brick at (64, 144), the last tile along v, which
 * wraps around; half of them with w < 0, which is the same baseline the other way
 * round. */
static void make_rows(scene *s, draw *random, int starts)
{
    const double scale = s->plan.target.geom.scale_rad,
                 half = 0.5 * s->plan.kernel.support;
    const double half_w = 0.5 * s->plan.w_support;
    tess_samples *samples = &s->samples;
    for (int c = 0; c < CHANNELS; ++c)
        s->inv_lambda[c] = 1.0 + 1e-6 * c;
    for (int64_t row = 0; row < ROWS; ++row) {
        const double sign = row % 2 ? -1 : 1;
        /* crowd some rows, so that groups of all sizes come up */
        const double spread = row % 3 == 0 ? 1.9 : 15.9;
        const double u = 64 + half + draw_uniform(random, -0.999, spread - 1);
        const double v =
            144 + half + draw_uniform(random, -0.999, fmin(spread, 5.9) - 1);
        const double plane = 2 + half_w + draw_uniform(random, -0.999, starts - 1.01);
        s->run[s->num_runs++] =
            (tess_run){.first = row * CHANNELS, .row = (int32_t)row, .count = CHANNELS};
        for (int k = 0; s->repeated && row % 3 > 0 && k < 3; ++k)
            samples->uvw_m[3 * row + k] = -samples->uvw_m[3 * row + k - 3];
        if (s->repeated && row % 3 > 0) continue;
        samples->uvw_m[3 * row] = -sign * u / (scale * (double)s->plan.nu);
        samples->uvw_m[3 * row + 1] = sign * v / (scale * (double)s->plan.nv);
        samples->uvw_m[3 * row + 2] =
            sign * (s->plan.w_first_lambda + plane * s->plan.w_step_lambda);
    }
    for (int64_t k = 0; k < 2 * VIS * samples->num_pol; ++k)
        set_value(samples->vis, samples->is_double, k, draw_uniform(random, -1, 1));
    for (int64_t k = 0; k < VIS * samples->num_weight; ++k)
        set_value(samples->weight, samples->is_double, k,
                  draw_index(random, 5) == 0 ? 0 : draw_uniform(random, 0.1, 2));
}

static scene *make_scene(int support, bool is_double, int num_pol, int num_weight,
                         int starts, bool repeated)
{
    const bool do_w = starts > 0;
    draw random = {(uint64_t)(100 * support + 10 * num_pol + starts)};
    scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->repeated = repeated;
    make_plan(s, support, is_double, do_w, starts);
    s->samples = (tess_samples){.is_double = is_double,
                                .num_pol = num_pol,
                                .num_weight = num_weight,
                                .inv_lambda = s->inv_lambda};
    assert_int_equal(tess_samples_reserve(&s->samples, ROWS, VIS), TESS_OK);
    if (num_weight == 0) {
        tess_free(s->samples.weight);
        s->samples.weight = NULL;
    }
    make_rows(s, &random, starts);
    s->num_pol = num_pol + num_weight;
    const int w_support = s->plan.w_support;
    s->job = (tile_job){.plan = &s->plan,
                        .samples = tile_samples_of(&s->samples),
                        .taps = s->taps,
                        .run = s->run,
                        .skip = 4,
                        .count = VIS - 9,
                        .cell_u = 64,
                        .cell_v = 144,
                        .plane_first = do_w ? 2 : 0,
                        .num_planes = do_w ? starts + w_support - 1 : 1,
                        .kept_planes = do_w ? starts + w_support - 1 : 1,
                        .num_pol = s->num_pol,
                        .psf = true};
    s->reals = 2 * (int64_t)s->num_pol * s->job.num_planes *
               tess_grid_brick_lines(&s->plan) * tess_grid_brick_stride(&s->plan);
    s->expected = calloc((size_t)s->reals, sizeof *s->expected);
    assert_non_null(s->expected);
    if (starts % 2 == 0) { /* some memory that is not a multiple of lines */
        s->job.next = s->expected;
        s->job.next_bytes = s->reals * (int64_t)sizeof *s->expected - 8;
    }
    return s;
}

static void free_scene(scene *s)
{
    tess_samples_free(&s->samples);
    free(s->expected);
    free(s);
}

/* One sample's place in the buffer. */
typedef struct footprint {
    int64_t u, v, plane;
    double tap[3][TESS_MAX_SUPPORT];
    double phase_re, phase_im;
    bool conjugate;
} footprint;

static footprint footprint_of(const scene *s, int64_t sample)
{
    const tess_grid_plan *plan = &s->plan;
    const double inv_lambda = s->inv_lambda[sample % CHANNELS];
    const tess_row_scale row =
        tess_row_scale_of(plan, s->samples.uvw_m + 3 * (sample / CHANNELS));
    double fraction[3] = {0};
    footprint f = {.conjugate = row.conjugate};
    f.u = kernel_start(&plan->kernel, row.a * inv_lambda, &fraction[0]) - 64;
    f.v = kernel_start(&plan->kernel, row.b * inv_lambda, &fraction[1]) - 144;
    const double w = row.w * inv_lambda;
    const double phase = 6.283185307179586 * row.turns * inv_lambda;
    f.plane =
        kernel_start(&plan->along_w, tess_plane_coordinate(plan, w), &fraction[2]) -
        s->job.plane_first;
    if (!plan->opts.do_w) f.plane = 0;
    for (int k = 0; k < 3; ++k)
        tess_kernel_taps(k < 2 ? &plan->kernel : &plan->along_w, fraction[k], f.tap[k]);
    if (!plan->opts.do_w) f.tap[2][0] = 1;
    f.phase_re = tess_has_phase(plan) ? cos(phase) : 1;
    f.phase_im = tess_has_phase(plan) ? sin(phase) : 0;
    return f;
}

static int64_t place(const scene *s, const footprint *f, int pol, int p, int i, int j)
{
    const int64_t lines = tess_grid_brick_lines(&s->plan);
    const int64_t layer = (int64_t)pol * s->job.num_planes + f->plane + p;
    return 2 *
           ((layer * lines + f->u + i) * tess_grid_brick_stride(&s->plan) + f->v + j);
}

static void grid_expected(scene *s)
{
    const tess_samples *samples = &s->samples;
    const int support = s->plan.kernel.support;
    for (int64_t k = s->job.skip; k < s->job.skip + s->job.count; ++k) {
        const footprint f = footprint_of(s, k);
        for (int pol = 0; pol < s->num_pol; ++pol) {
            const bool psf = pol >= samples->num_pol;
            const int which = psf                        ? pol - samples->num_pol
                              : samples->num_weight == 1 ? 0
                                                         : pol;
            const double w = samples->num_weight == 0
                                 ? 1
                                 : value_of(samples->weight, samples->is_double,
                                            k * samples->num_weight + which);
            const int64_t at = 2 * (k * samples->num_pol + pol);
            const double vr = psf ? 1 : value_of(samples->vis, samples->is_double, at);
            const double vi = psf ? 0
                                  : value_of(samples->vis, samples->is_double, at + 1) *
                                        (f.conjugate ? -1 : 1);
            const double re = w * (vr * f.phase_re + vi * f.phase_im);
            const double im = w * (vi * f.phase_re - vr * f.phase_im);
            for (int p = 0; p < s->plan.w_support; ++p)
                for (int i = 0; i < support; ++i)
                    for (int j = 0; j < support; ++j) {
                        const double tap = f.tap[0][i] * f.tap[1][j] * f.tap[2][p];
                        double *cell = s->expected + place(s, &f, pol, p, i, j);
                        cell[0] += tap * re;
                        cell[1] += tap * im;
                    }
        }
    }
}

/* A sample's taps and phase are a few roundings off, the same way in all its cells:
 * relative to the largest value. In double precision the rounding of grid coordinates,
 * of up to 160 cells, times the kernel's slope of a few per cell, comes on top. */
static double tolerance(bool is_double, const double *values, int64_t count)
{
    double largest = 0;
    for (int64_t k = 0; k < count; ++k)
        largest = fmax(largest, fabs(values[k]));
    return (is_double ? 0x1p-53 * 1000 : 0x1p-24 * 32) * largest;
}

static void check_grid(scene *s, tile_function *grid, void *work)
{
    const bool is_double = s->plan.is_double;
    void *data = tess_alloc_zero(s->reals, is_double ? 8 : 4);
    assert_non_null(data);
    s->job.data = data;
    s->job.work = work;
    grid(&s->job);
    const int64_t cells = tess_grid_brick_lines(&s->plan);
    const int64_t stride = tess_grid_brick_stride(&s->plan);
    const double within = tolerance(is_double, s->expected, s->reals);
    for (int64_t k = 0; k < s->reals; ++k) {
        if (k / 2 % stride >= cells) continue; /* behind the line: not read by anyone */
        if (!(fabs(value_of(data, is_double, k) - s->expected[k]) <= within))
            fail_msg("support %d, value %lld: %.9g, not %.9g", s->plan.kernel.support,
                     (long long)k, value_of(data, is_double, k), s->expected[k]);
    }
    tess_free(data);
}

/* Planes [first, first + count) of a buffer, by themselves. */
static void *planes_of(const scene *s, const void *data, int pols, int first, int count)
{
    const int64_t value = s->plan.is_double ? 16 : 8;
    const int64_t bytes =
        tess_grid_brick_lines(&s->plan) * tess_grid_brick_stride(&s->plan) * value;
    char *out = tess_alloc(pols * count, (size_t)bytes);
    assert_non_null(out);
    for (int pol = 0; pol < pols; ++pol)
        memcpy(out + pol * count * bytes,
               (const char *)data + (pol * s->job.num_planes + first) * bytes,
               (size_t)(count * bytes));
    return out;
}

/* Windows of planes, one after the other, add up to what all planes at once give. */
static void check_windows(const scene *s, tile_job job, tile_function *degrid,
                          double within)
{
    enum { AT_ONCE = 3 };
    const bool is_double = s->plan.is_double;
    const int64_t reals = 2 * (int64_t)VIS * job.num_pol;
    const void *data = job.data, *whole = job.vis_out;
    job.vis_out = tess_alloc_zero(reals, is_double ? 8 : 4);
    assert_non_null(job.vis_out);
    job.add = true;
    for (int first = 0; first < job.num_planes; first += AT_ONCE) {
        const int left = job.num_planes - first;
        job.kept_first = first;
        job.kept_planes = left < AT_ONCE ? left : AT_ONCE;
        job.data = planes_of(s, data, job.num_pol, first, job.kept_planes);
        degrid(&job);
        tess_free(job.data);
    }
    for (int64_t k = 0; k < reals; ++k)
        assert_true(fabs(value_of(job.vis_out, is_double, k) -
                         value_of(whole, is_double, k)) <= within);
    tess_free(job.vis_out);
}

/* Sums of a buffer of noise. */
static void check_degrid(scene *s, tile_function *degrid, void *work)
{
    const bool is_double = s->plan.is_double;
    const int pols = s->samples.num_pol, support = s->plan.kernel.support;
    draw random = {7};
    void *data = tess_alloc_zero(s->reals, is_double ? 8 : 4);
    void *out = tess_alloc_zero(2 * (int64_t)VIS * pols, is_double ? 8 : 4);
    assert_true(data && out);
    for (int64_t k = 0; k < s->reals; ++k)
        set_value(data, is_double, k, draw_uniform(&random, -1, 1));
    tile_job job = s->job;
    job.num_pol = pols;
    job.data = data;
    job.vis_out = out;
    job.work = work;
    degrid(&job);
    /* kernel values sum to W/2 or so along an axis, those of a noise to its root */
    const double within = tolerance(is_double, (const double[]){support}, 1);
    for (int64_t k = 0; k < VIS; ++k)
        for (int pol = 0; pol < pols; ++pol) {
            const footprint f = footprint_of(s, k);
            double re = 0, im = 0;
            for (int p = 0; p < s->plan.w_support; ++p)
                for (int i = 0; i < support; ++i)
                    for (int j = 0; j < support; ++j) {
                        const double tap = f.tap[0][i] * f.tap[1][j] * f.tap[2][p];
                        const int64_t at = place(s, &f, pol, p, i, j);
                        re += tap * value_of(data, is_double, at);
                        im += tap * value_of(data, is_double, at + 1);
                    }
            const bool inside = k >= job.skip && k < job.skip + job.count;
            const double sign = f.conjugate ? -1 : 1;
            const double vr = inside ? re * f.phase_re - im * f.phase_im : 0;
            const double vi = inside ? sign * (re * f.phase_im + im * f.phase_re) : 0;
            const int64_t at = 2 * (k * pols + pol);
            assert_true(fabs(value_of(out, is_double, at) - vr) <= within);
            assert_true(fabs(value_of(out, is_double, at + 1) - vi) <= within);
        }
    check_windows(s, job, degrid, within);
    tess_free(data);
    tess_free(out);
}

/* Samples are merged where most are at the position of another, unless what is sorted
 * together is too little; never where none are. */
static void check_merged(const scene *s, int64_t merged)
{
    if (s->repeated)
        assert_in_range(merged, VIS / 3, VIS);
    else
        assert_int_equal(merged, 0);
}

static void check_scene(scene *s, const tile_table *table, void *work)
{
    const int support = s->plan.kernel.support;
    const bool is_double = s->plan.is_double;
    int64_t merged = 0;
    s->job.merged = &merged;
    check_grid(s, table->grid[is_double][support], work);
    check_merged(s, merged);
    merged = 0;
    check_degrid(s, table->degrid[is_double][support], work);
    /* and as often for windows of three planes each */
    check_merged(s, merged / (1 + (s->job.num_planes + 2) / 3));
    s->job.merged = NULL;
    check_grid(s, table->grid[is_double][support], NULL);
    check_degrid(s, table->degrid[is_double][support], NULL);
}

/* The tables that this processor has. */
static int tables(const tile_table *table[4])
{
    static const char *const name[] = {"portable", "avx2", "knl", "avx512"};
    int count = 0;
    for (int k = 0; k < 4; ++k) {
        setenv("TESS_ISA", name[k], 1);
        table[count] = tile_table_best();
        count += count == 0 || table[count] != table[0];
    }
    unsetenv("TESS_ISA");
    return count;
}

static void check_support(int support)
{
    /* one plane, without w; one start; few planes; a usual block; more starts than a
     * sort key holds; samples that share positions, with and without w */
    static const struct {
        int starts, num_pol, num_weight;
        bool repeated;
    } of[] = {{0, 1, 1, false}, {1, 2, 2, false},  {BETWEEN_PLANES, 1, 1, false},
              {6, 1, 0, false}, {37, 2, 2, false}, {0, 2, 1, true},
              {6, 1, 1, true}};
    const tile_table *table[4];
    const int count = tables(table);
    for (int is_double = 0; is_double < 2; ++is_double)
        for (size_t k = 0; k < sizeof of / sizeof *of; ++k) {
            scene *s = make_scene(support, is_double, of[k].num_pol, of[k].num_weight,
                                  of[k].starts, of[k].repeated);
            void *work = tess_alloc(tile_work_bytes(&s->plan), 1);
            assert_non_null(work);
            grid_expected(s);
            for (int t = 0; t < count; ++t)
                check_scene(s, table[t], work);
            tess_free(work);
            free_scene(s);
        }
}

static void test_every_support(void **state)
{
    for (int support = TESS_MIN_SUPPORT; support <= TESS_MAX_SUPPORT; ++support)
        check_support(support);
}

/* Each piece is taken once, by whichever thread, and what is taken ahead is a piece. */
static void check_queue(int num_pieces, int threads)
{
    enum { MOST = 300 };
    tile_piece piece[MOST];
    int taken[MOST] = {0}, bad = 0;
    for (int k = 0; k < num_pieces; ++k)
        piece[k] = (tile_piece){.count = k < 5 ? 100000 : 1000 - k};
    tile_queue queue = {piece, num_pieces, 0, threads};
#pragma omp parallel num_threads(threads) reduction(+ : bad)
    for (int64_t k = tile_queue_take(&queue), next; k < num_pieces;
         k = next < 0 ? tile_queue_take(&queue) : next) {
#pragma omp atomic update
        ++taken[k];
        next = tile_queue_take_ahead(&queue, k);
        bad += next < -1 || next >= num_pieces;
        bad += next >= 0 && piece[k].count == 100000; /* others may have the next one */
    }
    assert_int_equal(bad, 0);
    for (int k = 0; k < num_pieces; ++k)
        assert_int_equal(taken[k], 1);
}

static void test_queue(void **state)
{
    static const int num_pieces[] = {0, 1, 3, 300};
    for (size_t k = 0; k < sizeof num_pieces / sizeof *num_pieces; ++k)
        for (int threads = 1; threads <= 5; ++threads)
            check_queue(num_pieces[k], threads);
}

/* A buffer is fetched if samples read most of it, and it leaves the cache some room. */
static void test_fetch(void **state)
{
    scene *s = make_scene(6, false, 1, 1, 6, false);
    const tess_brick_sum sum = {.num_planes = 11}, large = {.num_planes = 100};
    const tile_piece many = {.count = 1000}, few = {.count = 2};
    tile_job job = {.num_pol = 1};
    tile_job_fetch(&s->plan, &sum, &few, s, &job);
    assert_null(job.next);
    tile_job_fetch(&s->plan, &large, &many, s, &job);
    assert_null(job.next);
    tile_job_fetch(&s->plan, &sum, &many, s, &job);
    assert_ptr_equal(job.next, s);
    assert_int_equal(job.next_bytes, 8 * tile_values(&s->plan, &sum, 1));
    free_scene(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_support),
                                       cmocka_unit_test(test_queue),
                                       cmocka_unit_test(test_fetch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
