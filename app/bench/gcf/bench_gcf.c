/* Makes points and tables of convolution functions, and times the strategies of
 * gridding with tables on them, in turns. */
#include "tess_bench_gcf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tess_backend.h"
#include "tess_bench.h"
#include "tess_bench_gcf_args.h"
#include "tess_bench_list.h"
#include "tess_const.h"
#include "tess_device.h"
#include "tess_log.h"
#include "tess_map.h"
#include "tess_mem.h"
#include "tess_meter.h"
#include "tess_real.h"

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
    bool locked; /* the cells, as who times copies would have them */
} bench_set;

static void set_free(bench_set *set)
{
    tess_gcf_destroy(set->gcf);
    tess_free(set->u);
    tess_free(set->v);
    tess_free(set->w);
    tess_free(set->vis);
    if (set->locked) tess_study_unlock(set->cells);
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
    /* an extra phase of as many turns again, a sine of two */
    const tess_gcf_formula formula = {
        .decay = log(10) / edge,
        .step = l / edge,
        .turns = what->extra & 1 ? what->support / 8.0 / (edge * edge) : 0,
        .ripple = what->extra & 2 ? 2 / edge : 0};
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
    if (what->normalise) TESS_TRY(tess_study_normalise(set->gcf));
    set->vis_values = set->count * what->num_pol;
    set->cell_values = what->size * what->size * what->num_pol;
    set->vis = tess_alloc(set->vis_values, bytes);
    set->cells = tess_alloc(set->cell_values, bytes);
    set->first = tess_alloc(what->degrid ? set->vis_values : set->cell_values, bytes);
    if (!set->vis || !set->cells || !set->first)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for %lld points and %lld² cells",
                  (long long)set->count, (long long)what->size);
    if (what->opts.backend == TESS_GCF_DEVICE)
        set->locked = tess_study_lock(set->cells, set->cell_values * (int64_t)bytes);
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
        const double x = tess_real_at(a, is_double, k);
        const double y = tess_real_at(b, is_double, k);
        square += (x - y) * (x - y);
        norm += y * y;
    }
    return norm > 0 ? sqrt(square / norm) : 0;
}

static tess_gcf_points points_of(const tess_bench_gcf_case *what, const bench_set *set)
{
    return (tess_gcf_points){.count = set->count,
                             .u = set->u,
                             .v = set->v,
                             .w = set->w,
                             .vis = set->vis,
                             .num_pol = what->num_pol};
}

static tess_status run_once(const tess_bench_gcf_case *what, tess_study_plan *plan,
                            bench_set *set, tess_gcf_report *report)
{
    const size_t bytes = what->is_double ? 16 : 8;
    const tess_gcf_points points = points_of(what, set);
    tess_gcf_cells cells = {.nu = what->size, .nv = what->size, .data = set->cells};
    if (what->degrid) return tess_study_degrid(plan, &cells, &points, report);
    memset(set->cells, 0, (size_t)set->cell_values * bytes);
    return tess_study_grid(plan, &points, &cells, report);
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

/* How often the cells are added to, as files. */
static tess_status write_intensity(const tess_bench_gcf_case *what,
                                   const bench_set *set)
{
    tess_status status = TESS_OK;
    char history[128];
    const tess_gcf_points points = points_of(what, set);
    float *value = tess_alloc(what->size * what->size, sizeof *value);
    const tess_map map = {.nu = what->size,
                          .nv = what->size,
                          .value = value,
                          .unit = "updates",
                          .history = history};
    if (!value) TESS_FAIL(TESS_ERR_ALLOC, "a map of the grid");
    snprintf(history, sizeof history, "tessera bench gcf: %lld points, kernels of %d",
             (long long)set->count, what->support);
    TESS_TRY(tess_study_updates(set->gcf, &points, what->size, what->size, value));
    TESS_TRY(tess_map_write(what->intensity, what->overwrite, &map));
cleanup:
    tess_free(value);
    return status;
}

/* ---- energy ---- */

typedef struct energy {
    tess_meter *meter;
    tess_readings before, after;
    double seconds;
} energy;

static void read_meter(void *context, bool is_over)
{
    energy *of = context;
    const double now = tess_time_now();
    tess_meter_read(of->meter, is_over ? &of->after : &of->before);
    of->seconds = is_over ? now - of->seconds : now;
}

/* As the backend says: it is there in every build. */
static void find_bus_id(char *text, int size)
{
    const tess_backend *backend = NULL;
    if (tess_backend_find(TESS_BACKEND_DEVICE, &backend) == TESS_OK && backend->bus_id)
        backend->bus_id(text, size);
}

static tess_meter *open_meter(tess_gcf_backend backend)
{
    const bool on_gpu = backend == TESS_GCF_DEVICE;
    char bus_id[64] = "";
    if (on_gpu) find_bus_id(bus_id, sizeof bus_id);
    return tess_meter_create(bus_id, on_gpu ? NULL : TESS_METER_RAPL);
}

static double joules_of(tess_gcf_backend backend, const tess_readings *readings)
{
    return backend == TESS_GCF_DEVICE ? readings->gpu_j : readings->cpu_j;
}

bool tess_bench_gcf_has_meter(tess_gcf_backend backend)
{
    tess_readings readings;
    tess_meter *meter = open_meter(backend);
    if (!meter) return false;
    tess_meter_read(meter, &readings);
    tess_meter_destroy(meter);
    return isfinite(joules_of(backend, &readings));
}

/* Joules of a run that takes `run_s`, from as many as fill the time asked for. */
static tess_status measure_energy(const tess_bench_gcf_case *what,
                                  tess_study_plan *plan, bench_set *set, double run_s,
                                  tess_bench_gcf_result *result)
{
    tess_status status = TESS_OK;
    const tess_gcf_backend backend = what->opts.backend;
    const double most = 1e5, wanted = ceil(what->energy_s / fmax(run_s, 1e-9));
    const int times = (int)fmin(wanted, most);
    energy of = {.meter = open_meter(backend)};
    if (!of.meter) TESS_FAIL(TESS_ERR_ALLOC, "a meter");
    tess_meter_read(of.meter, &of.before);
    result->mhz = of.before.gpu_mhz;
    result->celsius = of.before.gpu_c;
    if (isfinite(joules_of(backend, &of.before)) && what->energy_s > 0) {
        tess_gcf_report unused;
        tess_study_plan_repeat(plan, times, read_meter, &of);
        status = run_once(what, plan, set, &unused);
        tess_study_plan_repeat(plan, 0, NULL, NULL);
        TESS_TRY(status);
        const double joules =
            joules_of(backend, &of.after) - joules_of(backend, &of.before);
        result->joules = joules / times;
        result->watts = joules / of.seconds;
        result->mhz = of.after.gpu_mhz;
        result->celsius = of.after.gpu_c;
    }
cleanup:
    tess_meter_destroy(of.meter);
    return status;
}

/* ---- a case ---- */

/* The times of all runs of every strategy. */
typedef struct times {
    double *sort_s, *seconds, *copy_s,
        *cells_s; /* [num_strategies][runs], in one allocation */
    int runs;
} times;

static tess_status run_in_turns(const tess_bench_gcf_case *what,
                                tess_study_plan *const *plan, bench_set *set,
                                const times *took, tess_bench_gcf_result *result)
{
    tess_status status = TESS_OK;
    const int runs = took->runs;
    for (int k = 0; k < runs; ++k)
        for (int s = 0; s < what->num_strategies; ++s) {
            tess_gcf_report report;
            TESS_TRY(run_once(what, plan[s], set, &report));
            took->sort_s[s * runs + k] = report.sort_s;
            took->seconds[s * runs + k] = report.seconds;
            const tess_study_copies copies = tess_study_plan_copies(plan[s]);
            took->copy_s[s * runs + k] = copies.copy_s;
            took->cells_s[s * runs + k] = copies.cells_s;
            if (k == 0) compare(what, set, s, &result[s]);
            result[s].num_points = set->count - report.left_out;
            result[s].merged = report.merged;
            result[s].mean_rank = (double)report.point_ranks / (double)report.merged;
            result[s].busy_share = report.busy_share;
            result[s].point_cells = (double)report.point_cells;
            result[s].study_cells = set->study_cells;
            result[s].gflops = 8e-9 * (double)report.point_cells * what->num_pol;
            result[s].all_gflops = 8e-9 * (double)report.all_cells * what->num_pol;
            result[s].box = copies.box;
            result[s].points_atomic = report.points_atomic;
        }
cleanup:
    return status;
}

/* What copies of the whole grid take longer than those of the active box. */
static tess_status measure_saving(const tess_bench_gcf_case *what, int repeat,
                                  bench_set *set, int s, double *cells_s,
                                  tess_bench_gcf_result *result)
{
    tess_status status = TESS_OK;
    tess_study_plan *plan = NULL;
    tess_study_opts opts = what->opts;
    opts.strategy = what->strategy[s];
    opts.probes.active_box = false;
    TESS_TRY(tess_study_plan_create(set->gcf, &opts, &plan));
    for (int k = 0; k < repeat; ++k) {
        tess_gcf_report report;
        TESS_TRY(run_once(what, plan, set, &report));
        cells_s[k] = tess_study_plan_copies(plan).cells_s;
    }
    result->saved_s = tess_bench_median(cells_s, repeat) - result->cells_s;
cleanup:
    tess_study_plan_destroy(plan);
    return status;
}

/* Seconds of a run. A processor sorts in each run. */
static double run_seconds(const tess_bench_gcf_case *what,
                          const tess_bench_gcf_result *of)
{
    return of->seconds + (what->opts.backend == TESS_GCF_CPU ? of->sort_s : 0);
}

/* Fills in the medians of a strategy's runs, and its rates. The first run of `took`
 * only warms caches up. */
static void take_medians(const tess_bench_gcf_case *what, const bench_set *set,
                         const tess_study_plan *plan, const times *took, int s,
                         tess_bench_gcf_result *of)
{
    const int64_t factors = tess_gcf_plan_factor_bytes(tess_study_core(plan));
    const int first = s * took->runs + 1, repeat = took->runs - 1;
    of->table_bytes = factors > 0 ? factors : tess_gcf_bytes(set->gcf);
    of->sort_s = tess_bench_median(took->sort_s + first, repeat);
    of->seconds = tess_bench_median(took->seconds + first, repeat);
    of->copy_s = tess_bench_median(took->copy_s + first, repeat);
    of->cells_s = tess_bench_median(took->cells_s + first, repeat);
    const double run_s = run_seconds(what, of);
    of->gflops /= run_s;
    of->all_gflops /= run_s;
    of->joules = of->watts = of->mhz = of->celsius = of->saved_s = (double)NAN;
}

tess_status tess_bench_gcf_run(tess_bench_gcf_case *what, int repeat,
                               tess_bench_gcf_result *result)
{
    tess_status status = TESS_OK;
    bench_set set = {0};
    tess_study_plan *plan[TESS_BENCH_GCF_MOST] = {NULL};
    times took = {.runs = repeat + 1};
    const int values = took.runs * what->num_strategies;
    took.sort_s = tess_alloc(4 * (int64_t)values, sizeof *took.sort_s);
    if (!took.sort_s) TESS_FAIL(TESS_ERR_ALLOC, "times");
    took.seconds = took.sort_s + values;
    took.copy_s = took.seconds + values;
    took.cells_s = took.copy_s + values;
    TESS_TRY(make_set(what, &set));
    if (what->intensity) TESS_TRY(write_intensity(what, &set));
    for (int s = 0; s < what->num_strategies; ++s) {
        tess_study_opts opts = what->opts;
        opts.strategy = what->strategy[s];
        if (what->shape) opts.shape = what->shape[s];
        TESS_TRY(tess_study_plan_create(set.gcf, &opts, &plan[s]));
    }
    TESS_TRY(run_in_turns(what, plan, &set, &took, result));
    for (int s = 0; s < what->num_strategies; ++s) {
        tess_bench_gcf_result *of = &result[s];
        take_medians(what, &set, plan[s], &took, s, of);
        TESS_TRY(measure_energy(what, plan[s], &set, run_seconds(what, of), of));
        if (what->opts.probes.active_box)
            TESS_TRY(measure_saving(what, repeat, &set, s,
                                    took.cells_s + s * took.runs + 1, of));
    }
cleanup:
    for (int s = 0; s < what->num_strategies; ++s)
        tess_study_plan_destroy(plan[s]);
    tess_free(took.sort_s);
    set_free(&set);
    return status;
}

/* ---- from the values of options to a case ---- */

void tess_bench_gcf_case_of(const tess_bench_gcf_args *args, const double *value,
                            const tess_study_strategy *strategy,
                            tess_bench_gcf_case *what)
{
    *what = (tess_bench_gcf_case){.degrid = value[0] > 0,
                                  .order = (tess_bench_gcf_order)value[1],
                                  .num_points = (int64_t)value[2],
                                  .size = (int64_t)value[3],
                                  .num_pol = (int)value[4],
                                  .is_double = value[5] > 0,
                                  .support = (int)value[6],
                                  .num_planes = args->planes,
                                  .oversampling = args->oversampling,
                                  .field_rad = args->field_rad,
                                  .is_formula = args->formula,
                                  .extra = args->extra,
                                  .normalise = args->normalise,
                                  .energy_s = args->energy_s,
                                  .intensity = args->intensity,
                                  .overwrite = args->overwrite,
                                  .opts = args->opts,
                                  .strategy = strategy,
                                  .shrink = args->shrink};
}
