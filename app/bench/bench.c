/* Makes visibilities up in memory, and times the gridder or the degridder of a backend
 * on them. */
#include "tess_bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tess_bench_list.h"
#include "tess_const.h"
#include "tess_degrid.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_real.h"
#include "tess_samples.h"

/* An array of 64 antennas within 4 km, at 30° South, that looks at −30°: like MeerKAT.
 */
enum { ANTENNAS = 64, BASELINES = ANTENNAS * (ANTENNAS - 1) / 2, CHANNELS = 16 };
static const double ARRAY_RADIUS_M = 4000;
static const double FIRST_FREQ_HZ = 1.25e9, CHANNEL_HZ = 4e6;

typedef struct bench_set {
    tess_geom geom;
    tess_samples samples; /* in double, and as the plan wants them after fit_samples */
    double inv_lambda[CHANNELS];
    double w_min_lambda, w_max_lambda;
} bench_set;

/* Uniform in [0, 1): Knuth's 64-bit generator, the same everywhere. */
static double draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

/* ---- visibilities ---- */

void tess_bench_track(int num_antennas, const double *east, const double *north,
                      double hour_rad, double *uvw_m)
{
    /* of latitude and declination: (x, y, z) = (−N sin φ, E, N cos φ) */
    const double s = -0.5, c = sqrt(0.75), ch = cos(hour_rad), sh = sin(hour_rad);
    for (int a = 0; a < num_antennas; ++a)
        for (int b = a + 1; b < num_antennas; ++b, uvw_m += 3) {
            const double e = east[b] - east[a], n = north[b] - north[a];
            const double x = -n * s, z = n * c;
            uvw_m[0] = sh * x + ch * e;
            uvw_m[1] = -s * ch * x + s * sh * e + c * z;
            uvw_m[2] = c * ch * x - c * sh * e + s * z;
        }
}

static void place_tracks(tess_samples *samples, uint64_t *random)
{
    double east[ANTENNAS], north[ANTENNAS];
    const int64_t num_times = samples->num_rows / BASELINES;
    for (int a = 0; a < ANTENNAS; ++a) {
        const double r = draw(random), angle = TESS_TWO_PI * draw(random);
        east[a] = ARRAY_RADIUS_M * r * r * cos(angle);
        north[a] = ARRAY_RADIUS_M * r * r * sin(angle);
    }
    /* two hours around the meridian, however many integrations */
    for (int64_t t = 0; t < num_times; ++t)
        tess_bench_track(ANTENNAS, east, north,
                         0.52 * ((double)t / (double)num_times - 0.5),
                         samples->uvw_m + 3 * BASELINES * t);
}

static void place_anywhere(const tess_geom *geom, tess_samples *samples,
                           uint64_t *random)
{
    const double extent_m = 0.49 / geom->scale_rad / samples->inv_lambda[0];
    for (int64_t k = 0; k < 3 * samples->num_rows; ++k)
        samples->uvw_m[k] = extent_m * (2 * draw(random) - 1) * (k % 3 == 2 ? 0.1 : 1);
}

/* Puts the rows into the samples, each with its first `channels` channels, and finds
 * the range of |w|. */
static void lay_out_rows(tess_samples *samples, int32_t channels, bench_set *set)
{
    set->w_min_lambda = INFINITY;
    for (int64_t row = 0; row < samples->num_rows; ++row) {
        const double w_m = fabs(samples->uvw_m[3 * row + 2]);
        samples->chan_base[row] = 0;
        samples->num_chan[row] = channels;
        samples->vis_first[row] = row * channels;
        set->w_min_lambda = fmin(set->w_min_lambda, w_m * set->inv_lambda[0]);
        set->w_max_lambda =
            fmax(set->w_max_lambda, w_m * set->inv_lambda[channels - 1]);
    }
}

/* Values between −1 and 1, of weight 1. */
static void draw_values(tess_samples *samples, uint64_t *random)
{
    for (int64_t k = 0; k < samples->num_vis; ++k) {
        ((double *)samples->vis)[2 * k] = 2 * draw(random) - 1;
        ((double *)samples->vis)[2 * k + 1] = 2 * draw(random) - 1;
        ((double *)samples->weight)[k] = 1;
    }
}

/* Rows of tracks have all channels, random ones only the first. */
static tess_status make_set(const tess_bench_case *what, bench_set *set)
{
    tess_status status = TESS_OK;
    const bool tracks = what->order == TESS_BENCH_TRACKS;
    const int32_t channels = tracks ? CHANNELS : 1;
    const int64_t times =
        (what->num_vis + BASELINES * CHANNELS - 1) / (BASELINES * CHANNELS);
    tess_samples *samples = &set->samples;
    uint64_t random = 20;
    /* the longest baseline comes to 0.45 of the grid's half */
    const double longest_lambda = 2 * ARRAY_RADIUS_M *
                                  (FIRST_FREQ_HZ + CHANNELS * CHANNEL_HZ) /
                                  TESS_SPEED_OF_LIGHT_M_S;
    set->geom = (tess_geom){
        .nx = what->size, .ny = what->size, .scale_rad = 0.45 / longest_lambda};
    for (int c = 0; c < CHANNELS; ++c)
        set->inv_lambda[c] = (FIRST_FREQ_HZ + c * CHANNEL_HZ) / TESS_SPEED_OF_LIGHT_M_S;
    *samples = (tess_samples){.is_double = true,
                              .num_pol = 1,
                              .num_weight = 1,
                              .inv_lambda = set->inv_lambda};
    const int64_t num_rows = tracks ? times * BASELINES : what->num_vis;
    TESS_TRY(tess_samples_reserve(samples, num_rows, num_rows * channels));
    samples->num_rows = num_rows;
    samples->num_vis = num_rows * channels;
    if (tracks)
        place_tracks(samples, &random);
    else
        place_anywhere(&set->geom, samples, &random);
    lay_out_rows(samples, channels, set);
    draw_values(samples, &random);
cleanup:
    return status;
}

/* Down to single precision, in place. */
static void fit_samples(bool is_double, tess_samples *samples)
{
    double *vis = samples->vis, *weight = samples->weight;
    if (is_double) return;
    for (int64_t k = 0; k < 2 * samples->num_vis; ++k) {
        const float value = (float)vis[k];
        memcpy((char *)vis + k * (int64_t)sizeof value, &value, sizeof value);
    }
    for (int64_t k = 0; k < samples->num_vis; ++k) {
        const float value = (float)weight[k];
        memcpy((char *)weight + k * (int64_t)sizeof value, &value, sizeof value);
    }
    samples->is_double = false;
}

static tess_status make_plan(const tess_backend *backend, const tess_bench_case *what,
                             const bench_set *set, int threads, tess_grid_plan **plan)
{
    tess_grid_opts opts;
    tess_grid_opts_default(&opts);
    opts.accuracy = what->accuracy;
    opts.precision = what->precision;
    opts.support = what->support;
    opts.worst_pixel = what->degrid;
    opts.do_w = true;
    opts.w_min_lambda = set->w_min_lambda;
    opts.w_max_lambda = set->w_max_lambda;
    opts.w_span_lambda = set->w_max_lambda - set->w_min_lambda;
    opts.num_vis = set->samples.num_vis;
    opts.num_pol = 1;
    opts.threads = threads;
    return tess_grid_plan_create(&set->geom, &opts, backend, plan);
}

/* ---- one run ---- */

/* Grid a block, and read what was gridded off again; the seconds of either. */
static tess_status do_block(const tess_grid_plan *plan, tess_samples *samples,
                            const tess_brick_list *bricks, int64_t first, int64_t end,
                            bool degrid, double *seconds)
{
    tess_status status = TESS_OK;
    tess_brick_sums sums = {0};
    tess_grid_report report = {.busy_share = 1};
    double start = tess_time_now();
    TESS_TRY(tess_grid_execute(plan, samples, &(tess_brick_range){bricks, first, end},
                               false, &sums, &report));
    if (degrid) {
        start = tess_time_now();
        TESS_TRY(tess_degrid_execute(plan, samples, bricks, first, &sums, &report));
    }
    *seconds += tess_time_now() - start;
cleanup:
    tess_brick_sums_free(&sums);
    return status;
}

static tess_status run_once(const tess_grid_plan *plan, tess_samples *samples,
                            bool degrid, double *sort_s, double *seconds)
{
    tess_status status = TESS_OK;
    tess_brick_list bricks = {0};
    const double start = tess_time_now();
    *seconds = 0;
    TESS_TRY(tess_brick_list_make(plan, samples, true, &bricks));
    *sort_s = tess_time_now() - start;
    for (int64_t first = 0, end; first < bricks.num_bricks; first = end) {
        end = tess_brick_list_block_end(plan, &bricks, first);
        TESS_TRY(do_block(plan, samples, &bricks, first, end, degrid, seconds));
    }
    if (degrid) TESS_TRY(tess_degrid_finish(plan, samples, &bricks));
cleanup:
    tess_brick_list_free(&bricks);
    return status;
}

/* The peer on the same visibilities, which are those at the start. */
static tess_status run_peer(const tess_bench_case *what, const bench_set *set,
                            const tess_grid_plan *plan, const void *vis, int repeat,
                            tess_bench_peer_result *result)
{
    const tess_bench_peer_case same = {.degrid = what->degrid,
                                       .is_double = plan->is_double,
                                       .size = what->size,
                                       .nu = plan->nu,
                                       .nv = plan->nv,
                                       .num_planes = plan->num_planes,
                                       .support = plan->kernel.support,
                                       .accuracy = what->accuracy,
                                       .scale_rad = set->geom.scale_rad,
                                       .threads = plan->opts.threads,
                                       .repeat = repeat,
                                       .num_rows = set->samples.num_rows,
                                       .num_chan =
                                           set->samples.num_vis / set->samples.num_rows,
                                       .uvw_m = set->samples.uvw_m,
                                       .inv_lambda = set->inv_lambda,
                                       .vis = vis};
    return tess_bench_peer_run(what->peer, &same, result);
}

static double sum_of(const tess_samples *samples)
{
    double sum = 0;
    for (int64_t k = 0; k < 2 * samples->num_vis; ++k)
        sum += fabs(tess_real_at(samples->vis, samples->is_double, k));
    return sum;
}

tess_status tess_bench_run(const tess_backend *backend, const tess_bench_case *what,
                           int threads, int repeat, tess_bench_result *result)
{
    tess_status status = TESS_OK;
    bench_set set = {0};
    tess_grid_plan *plan = NULL;
    void *vis = NULL;
    double *sort_s = tess_alloc(2 * (int64_t)(repeat + 1), sizeof *sort_s), *seconds;
    if (!sort_s) TESS_FAIL(TESS_ERR_ALLOC, "times");
    seconds = sort_s + repeat + 1;
    TESS_TRY(make_set(what, &set));
    TESS_TRY(make_plan(backend, what, &set, threads, &plan));
    fit_samples(plan->is_double, &set.samples);
    const int64_t bytes = set.samples.num_vis * (plan->is_double ? 16 : 8);
    vis = tess_alloc(bytes, 1);
    if (!vis) TESS_FAIL(TESS_ERR_ALLOC, "visibilities");
    memcpy(vis, set.samples.vis, (size_t)bytes);
    for (int k = 0; k <= repeat; ++k) {
        memcpy(set.samples.vis, vis, (size_t)bytes); /* degridding has replaced them */
        TESS_TRY(run_once(plan, &set.samples, what->degrid, &sort_s[k], &seconds[k]));
    }
    *result = (tess_bench_result){.num_vis = set.samples.num_vis,
                                  .is_double = plan->is_double,
                                  .support = plan->kernel.support,
                                  .num_planes = plan->num_planes,
                                  .nu = plan->nu,
                                  .nv = plan->nv,
                                  .sort_s = tess_bench_median(sort_s + 1, repeat),
                                  .seconds = tess_bench_median(seconds + 1, repeat),
                                  .sum = sum_of(&set.samples)};
    if (what->peer) TESS_TRY(run_peer(what, &set, plan, vis, repeat, &result->peer));
cleanup:
    tess_free(vis);
    tess_free(sort_s);
    tess_samples_free(&set.samples);
    tess_grid_plan_destroy(plan);
    return status;
}
