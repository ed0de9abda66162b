#include "bench_gcf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench_list.h"
#include "tess_const.h"
#include "tess_mem.h"

enum { ANTENNAS = 64, BASELINES = ANTENNAS * (ANTENNAS - 1) / 2, TILE = 64 };

/* Points, and the results to be compared. */
typedef struct bench_set {
    tess_gcf *gcf;
    double *u, *v, *w;
    int64_t count;
    void *vis, *cells; /* in turns input and output */
    void *first;       /* the first strategy's output */
    int64_t vis_values, cell_values;
    double study_cells;
} bench_set;

static void set_free(bench_set *set)
{
    tess_gcf_destroy(set->gcf);
    tess_free(set->u);
    tess_free(set->v);
    tess_free(set->w);
    tess_free(set->vis);
    tess_free(set->cells);
    tess_free(set->first);
}

/* Uniform in [0, 1): Knuth's 64-bit generator, the same everywhere. */
static double draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

/* Kernels of one support. Their fringes reach S/2 cells at w, less the taper's own
 * width, where the taper has fallen to a few percent, 0.6 of the field from the centre.
 */
static tess_status make_table(const tess_bench_gcf_case *what, tess_gcf **gcf)
{
    tess_gcf_opts opts;
    tess_gcf_opts_default(&opts);
    opts.field_l = opts.field_m = what->field_rad;
    opts.min_support = opts.max_support = what->support;
    opts.layout.num_planes = what->num_planes;
    opts.layout.oversampling = what->oversampling;
    opts.layout.is_double = what->is_double;
    opts.layout.threads = what->opts.threads;
    opts.layout.w_max_lambda =
        fmax(0, 0.5 * what->support - 4) / (0.6 * what->field_rad * what->field_rad);
    return tess_gcf_create(&opts, gcf);
}

/* Kernels of a formula, of one support: a tenth is left at their edges, and the phase
 * turns S/8 times up to there on the last plane. */
static tess_status make_formula(const tess_bench_gcf_case *what, tess_gcf **gcf)
{
    tess_status status = TESS_OK;
    const double edge = 0.5 * what->support, l = 0.3;
    const tess_gcf_formula formula = {.decay = log(10) / edge, .step = l / edge};
    const tess_gcf_layout layout = {.num_planes = what->num_planes,
                                    .w_max_lambda =
                                        what->support / 8.0 / (1 - sqrt(1 - l * l)),
                                    .oversampling = what->oversampling,
                                    .is_double = what->is_double,
                                    .threads = what->opts.threads};
    int *support = tess_alloc(what->num_planes, sizeof *support);
    if (!support) TESS_FAIL(TESS_ERR_ALLOC, "planes of kernels");
    for (int p = 0; p < what->num_planes; ++p)
        support[p] = what->support;
    TESS_TRY(tess_gcf_create_formula(&layout, support, &formula, gcf));
cleanup:
    tess_free(support);
    return status;
}

/* A point of a track: u, v, w as parts of the longest baseline. */
static void place_tracks(const tess_bench_gcf_case *what, double half, bench_set *set,
                         uint64_t *random)
{
    double east[ANTENNAS], north[ANTENNAS], uvw[3 * BASELINES];
    for (int a = 0; a < ANTENNAS; ++a) {
        const double r = draw(random), angle = TESS_TWO_PI * draw(random);
        east[a] = 0.5 * r * r * cos(angle);
        north[a] = 0.5 * r * r * sin(angle);
    }
    const int64_t times = set->count / BASELINES;
    for (int64_t t = 0; t < times; ++t) {
        tess_bench_track(ANTENNAS, east, north,
                         0.52 * ((double)t / (double)times - 0.5), uvw);
        for (int b = 0; b < BASELINES; ++b) {
            const int64_t k = what->order == TESS_BENCH_GCF_BASELINES
                                  ? b * times + t
                                  : t * BASELINES + b;
            set->u[k] = 0.5 * (double)what->size + half * uvw[3 * b];
            set->v[k] = 0.5 * (double)what->size + half * uvw[3 * b + 1];
            set->w[k] = set->gcf->layout.w_max_lambda * uvw[3 * b + 2];
        }
    }
}

static int by_tile(const void *a, const void *b)
{
    const double *x = a, *y = b;
    for (int axis = 0; axis < 2; ++axis) {
        const double p = floor(x[axis] / TILE), q = floor(y[axis] / TILE);
        if (p != q) return p < q ? -1 : 1;
    }
    return 0;
}

static tess_status place_anywhere(const tess_bench_gcf_case *what, double half,
                                  bench_set *set, uint64_t *random)
{
    tess_status status = TESS_OK;
    double *point = tess_alloc(set->count, 3 * sizeof *point);
    if (!point) TESS_FAIL(TESS_ERR_ALLOC, "points");
    for (int64_t k = 0; k < set->count; ++k) {
        for (int axis = 0; axis < 2; ++axis)
            point[3 * k + axis] =
                0.5 * (double)what->size + half * (2 * draw(random) - 1);
        point[3 * k + 2] = set->gcf->layout.w_max_lambda * (2 * draw(random) - 1);
    }
    if (what->order == TESS_BENCH_GCF_SORTED)
        qsort(point, (size_t)set->count, 3 * sizeof *point, by_tile);
    for (int64_t k = 0; k < set->count; ++k) {
        set->u[k] = point[3 * k];
        set->v[k] = point[3 * k + 1];
        set->w[k] = point[3 * k + 2];
    }
cleanup:
    tess_free(point);
    return status;
}

static void fill(bool is_double, int64_t values, uint64_t *random, void *array)
{
    for (int64_t k = 0; k < 2 * values; ++k)
        if (is_double)
            ((double *)array)[k] = 2 * draw(random) - 1;
        else
            ((float *)array)[k] = (float)(2 * draw(random) - 1);
}

/* Points of a study's set, and its kernels. */
static tess_status make_points(tess_bench_gcf_case *what, bench_set *set)
{
    tess_status status = TESS_OK;
    tess_bench_gcf_points points = {0};
    TESS_TRY(tess_bench_gcf_set_make(
        &tess_bench_gcf_sets[what->order - TESS_BENCH_GCF_SETS], what->num_points,
        what->shrink, what->opts.threads, &points));
    TESS_TRY(tess_bench_gcf_set_kernels(&points, what->is_double, what->opts.threads,
                                        &set->gcf));
    set->u = points.u;
    set->v = points.v;
    set->w = points.w;
    set->count = points.count;
    set->study_cells = points.study_updates;
    what->size = points.size;
    what->num_planes = points.num_planes;
    what->support = set->gcf->max_support;
    what->oversampling = set->gcf->layout.oversampling;
    what->field_rad = points.field;
    points.u = points.v = points.w = NULL;
cleanup:
    tess_bench_gcf_points_free(&points);
    return status;
}

/* Points made up, and their kernels. */
static tess_status make_up_points(const tess_bench_gcf_case *what, bench_set *set,
                                  uint64_t *random)
{
    tess_status status = TESS_OK;
    const bool tracks =
        what->order == TESS_BENCH_GCF_TRACKS || what->order == TESS_BENCH_GCF_BASELINES;
    const double half = 0.5 * (double)(what->size - what->support) - 1;
    if (half < 1)
        TESS_FAIL(TESS_ERR_USAGE, "a grid of %lld cells is too small for kernels of %d",
                  (long long)what->size, what->support);
    TESS_TRY((what->is_formula ? make_formula : make_table)(what, &set->gcf));
    set->count = tracks ? (what->num_points + BASELINES - 1) / BASELINES * BASELINES
                        : what->num_points;
    set->u = tess_alloc(set->count, sizeof *set->u);
    set->v = tess_alloc(set->count, sizeof *set->v);
    set->w = tess_alloc(set->count, sizeof *set->w);
    if (!set->u || !set->v || !set->w) TESS_FAIL(TESS_ERR_ALLOC, "points");
    if (tracks)
        place_tracks(what, half, set, random);
    else
        TESS_TRY(place_anywhere(what, half, set, random));
cleanup:
    return status;
}

static tess_status make_set(tess_bench_gcf_case *what, bench_set *set)
{
    tess_status status = TESS_OK;
    uint64_t random = 20;
    const size_t bytes = what->is_double ? 16 : 8;
    if (what->order >= TESS_BENCH_GCF_SETS)
        TESS_TRY(make_points(what, set));
    else
        TESS_TRY(make_up_points(what, set, &random));
    set->vis_values = set->count * what->num_pol;
    set->cell_values = what->size * what->size * what->num_pol;
    set->vis = tess_alloc(set->vis_values, bytes);
    set->cells = tess_alloc(set->cell_values, bytes);
    set->first = tess_alloc(what->degrid ? set->vis_values : set->cell_values, bytes);
    if (!set->vis || !set->cells || !set->first)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for %lld points and %lld² cells",
                  (long long)set->count, (long long)what->size);
    fill(what->is_double, set->vis_values, &random, set->vis);
    if (what->degrid) fill(what->is_double, set->cell_values, &random, set->cells);
cleanup:
    return status;
}

/* Relative L2 difference of two arrays. */
static double difference(bool is_double, int threads, const void *a, const void *b,
                         int64_t values)
{
    double square = 0, norm = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : square, norm)
    for (int64_t k = 0; k < 2 * values; ++k) {
        const double x =
            is_double ? ((const double *)a)[k] : (double)((const float *)a)[k];
        const double y =
            is_double ? ((const double *)b)[k] : (double)((const float *)b)[k];
        square += (x - y) * (x - y);
        norm += y * y;
    }
    return norm > 0 ? sqrt(square / norm) : 0;
}

static tess_status run_once(const tess_bench_gcf_case *what, const tess_gcf_plan *plan,
                            bench_set *set, tess_gcf_report *report)
{
    const size_t bytes = what->is_double ? 16 : 8;
    const tess_gcf_points points = {.count = set->count,
                                    .u = set->u,
                                    .v = set->v,
                                    .w = set->w,
                                    .vis = set->vis,
                                    .num_pol = what->num_pol};
    tess_gcf_cells cells = {.nu = what->size, .nv = what->size, .data = set->cells};
    if (what->degrid) return tess_gcf_degrid(plan, &cells, &points, report);
    memset(set->cells, 0, (size_t)set->cell_values * bytes);
    return tess_gcf_grid(plan, &points, &cells, report);
}

/* The output of the first strategy is kept, others are compared with it. */
static void compare(const tess_bench_gcf_case *what, bench_set *set, int strategy,
                    tess_bench_gcf_result *result)
{
    const void *out = what->degrid ? set->vis : set->cells;
    const int64_t values = what->degrid ? set->vis_values : set->cell_values;
    if (strategy == 0)
        memcpy(set->first, out, (size_t)values * (what->is_double ? 16 : 8));
    result->difference =
        difference(what->is_double, what->opts.threads, out, set->first, values);
}

tess_status tess_bench_gcf_run(tess_bench_gcf_case *what, int repeat,
                               tess_bench_gcf_result *result)
{
    tess_status status = TESS_OK;
    bench_set set = {0};
    tess_gcf_plan *plan[TESS_BENCH_GCF_MOST] = {NULL};
    const int runs = repeat + 1;
    double *sort_s =
        tess_alloc(4 * (int64_t)runs * what->num_strategies, sizeof *sort_s);
    if (!sort_s) TESS_FAIL(TESS_ERR_ALLOC, "times");
    double *seconds = sort_s + runs * what->num_strategies;
    double *copy_s = seconds + runs * what->num_strategies;
    double *cells_s = copy_s + runs * what->num_strategies;
    TESS_TRY(make_set(what, &set));
    for (int s = 0; s < what->num_strategies; ++s) {
        tess_gcf_grid_opts opts = what->opts;
        opts.strategy = what->strategy[s];
        if (what->shape) opts.shape = what->shape[s];
        TESS_TRY(tess_gcf_plan_create(set.gcf, &opts, &plan[s]));
    }
    for (int k = 0; k < runs; ++k)
        for (int s = 0; s < what->num_strategies; ++s) {
            tess_gcf_report report;
            TESS_TRY(run_once(what, plan[s], &set, &report));
            sort_s[s * runs + k] = report.sort_s;
            seconds[s * runs + k] = report.seconds;
            copy_s[s * runs + k] = report.copy_s;
            cells_s[s * runs + k] = report.cells_s;
            if (k == 0) compare(what, &set, s, &result[s]);
            const double done = (double)report.merged;
            result[s].num_points = set.count - report.left_out;
            result[s].merged = report.merged;
            result[s].mean_rank = (double)report.point_ranks / done;
            result[s].busy_share = report.busy_share;
            result[s].point_cells = (double)report.point_cells;
            result[s].study_cells = set.study_cells;
            result[s].gflops = 8e-9 * (double)report.point_cells * what->num_pol;
        }
    for (int s = 0; s < what->num_strategies; ++s) {
        const int64_t factors = tess_gcf_plan_factor_bytes(plan[s]);
        result[s].table_bytes = factors > 0 ? factors : tess_gcf_bytes(set.gcf);
        result[s].sort_s = tess_bench_median(sort_s + s * runs + 1, repeat);
        result[s].seconds = tess_bench_median(seconds + s * runs + 1, repeat);
        result[s].copy_s = tess_bench_median(copy_s + s * runs + 1, repeat);
        result[s].cells_s = tess_bench_median(cells_s + s * runs + 1, repeat);
        result[s].gflops /= result[s].seconds +
                            (what->opts.backend == TESS_GCF_CPU ? result[s].sort_s : 0);
    }
cleanup:
    for (int s = 0; s < what->num_strategies; ++s)
        tess_gcf_plan_destroy(plan[s]);
    tess_free(sort_s);
    set_free(&set);
    return status;
}
