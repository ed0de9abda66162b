#define _GNU_SOURCE
#include "bench_gcf_study.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tess_const.h"
#include "tess_log.h"
#include "tess_mem.h"

enum {
    MOST_ROWS = 4096,
    MOST_NOTES = 256,
    MOST_VARIANTS = 2,
    MOST_ONLY = 5,
    SET_WEIGHT = 8, /* of time, to other cases' 1 */
    LEAST_POINTS = 200
};

/* Cells a second that strategies are taken to update, so that a case has the points for
 * its time: `atomic` and `scatter`, the slowest, and (sets) `tiled`. */
static const double CPU_RATE = 1e8, GPU_RATE = 6e10;
static const double CPU_SET_RATE = 2e8, GPU_SET_RATE = 5e11;

/* Meters are read every few tens of milliseconds. */
static const double LEAST_ENERGY_S = 0.2;

/* A way that a table compares with the usual one. */
typedef struct variant {
    const char *name;
    void (*apply)(tess_bench_gcf_case *what);
} variant;

/* A table: lists of what its cases have, all combinations; none: one usual value. */
typedef struct table {
    const char *name, *title;
    bool cpu, gpu;
    tess_bench_list operation, order, vis, size, pol, precision, gcf;
    bool is_formula;
    tess_gcf_strategy only[MOST_ONLY]; /* strategies, if num_only > 0 */
    int num_only;
    variant variant[MOST_VARIANTS];
    int num_variants;
} table;

static void with_fast_math(tess_bench_gcf_case *what)
{
    what->opts.fast_math = true;
}

static void with_compare_and_swap(tess_bench_gcf_case *what)
{
    what->opts.probes.atomics = TESS_GCF_CAS;
}

static const table tables[] = {
    {.name = "size",
     .title = "Size of the convolution function, random and sorted points",
     .cpu = true,
     .gpu = true,
     .order = {{TESS_BENCH_GCF_RANDOM, TESS_BENCH_GCF_SORTED}, 2},
     .gcf = {{8, 16, 32, 64, 128, 256, 512}, 7}},
    {.name = "points",
     .title = "Number of points",
     .cpu = true,
     .gpu = true,
     .vis = {{1e3, 1e4, 1e5, 1e6, 1e7, 1e8}, 6}},
    {.name = "image",
     .title = "Size of the grid",
     .cpu = true,
     .gpu = true,
     .size = {{1024, 2048, 4096, 8192, 16384}, 5}},
    {.name = "pol",
     .title = "Polarisations in one pass, tracks",
     .cpu = true,
     .gpu = true,
     .order = {{TESS_BENCH_GCF_TRACKS, TESS_BENCH_GCF_BASELINES}, 2},
     .pol = {{1, 2, 4}, 3},
     .gcf = {{64}, 1}},
    {.name = "precision",
     .title = "Single and double precision",
     .cpu = true,
     .gpu = true,
     .precision = {{0, 1}, 2},
     .gcf = {{32, 128}, 2}},
    {.name = "atomics",
     .title = "Atomic additions: native, or by compare-and-swap",
     .cpu = true,
     .gpu = true,
     .operation = {{0}, 1},
     .order = {{TESS_BENCH_GCF_RANDOM, TESS_BENCH_GCF_TRACKS}, 2},
     .precision = {{0, 1}, 2},
     .only = {TESS_GCF_ATOMIC, TESS_GCF_SCATTER, TESS_GCF_WARP, TESS_GCF_WINDOW,
              TESS_GCF_COARSE},
     .num_only = 5,
     .variant = {{"native", NULL}, {"compare-and-swap", with_compare_and_swap}},
     .num_variants = 2},
    {.name = "computed",
     .title = "Kernels of a formula: computed, or read from a table",
     .gpu = true,
     .operation = {{1}, 1},
     .pol = {{1, 4}, 2},
     .gcf = {{32, 128}, 2},
     .is_formula = true,
     .only = {TESS_GCF_GATHER, TESS_GCF_COMPUTED},
     .num_only = 2,
     .variant = {{"", NULL}, {"fast-math", with_fast_math}},
     .num_variants = 2},
    {.name = "sets",
     .title = "The four data sets of the tiled study",
     .cpu = true,
     .gpu = true,
     .operation = {{0}, 1},
     .order = {{TESS_BENCH_GCF_SETS, TESS_BENCH_GCF_SETS + 1, TESS_BENCH_GCF_SETS + 2,
                TESS_BENCH_GCF_SETS + 3},
               4},
     .only = {TESS_GCF_TILED, TESS_GCF_FACTORED},
     .num_only = 2},
};

enum { NUM_TABLES = sizeof tables / sizeof *tables, LISTS = 7 };

const char *tess_bench_gcf_table_name(int k)
{
    return k < NUM_TABLES ? tables[k].name : NULL;
}

const char *tess_bench_gcf_table_title(int k)
{
    return k < NUM_TABLES ? tables[k].title : NULL;
}

/* ---- cases ---- */

/* What a list of a table comes to: the option's values instead, if it was given, or the
 * one of them that is nearest to the usual one. */
static tess_bench_list values_of(const tess_bench_list *own,
                                 const tess_bench_list *given, bool is_given,
                                 double usual)
{
    if (is_given && own->count > 1) return *given;
    if (own->count == 1) usual = own->value[0];
    double nearest = is_given ? given->value[0] : usual;
    for (int k = 1; is_given && k < given->count; ++k)
        if (fabs(log(given->value[k] / usual)) < fabs(log(nearest / usual)))
            nearest = given->value[k];
    return own->count > 1 ? *own : (tess_bench_list){{nearest}, 1};
}

static void lists_of(const table *of, const tess_bench_gcf_args *args,
                     tess_bench_list *list)
{
    const double points = args->opts.backend == TESS_GCF_CPU ? 1e5 : 4e5;
    static const tess_bench_list both = {{0, 1}, 2};
    const tess_bench_list *operation = of->operation.count > 0 ? &of->operation : &both;
    list[0] = args->given.operation && of->operation.count == 0 ? args->operation
                                                                : *operation;
    list[1] = values_of(&of->order, &args->order, false, TESS_BENCH_GCF_RANDOM);
    list[2] = values_of(&of->vis, &args->vis, args->given.vis, points);
    list[3] = values_of(&of->size, &args->size, args->given.size, 4096);
    list[4] = values_of(&of->pol, &args->pol, false, 1);
    list[5] = values_of(&of->precision, &args->precision, false, 0);
    list[6] = values_of(&of->gcf, &args->gcf, args->given.gcf, 32);
}

static int count_cases(const table *of, const tess_bench_gcf_args *args)
{
    tess_bench_list list[LISTS];
    int cases = of->num_variants > 0 ? of->num_variants : 1;
    lists_of(of, args, list);
    for (int k = 0; k < LISTS; ++k)
        cases *= list[k].count;
    return cases;
}

static bool is_asked(const table *of, const tess_bench_gcf_args *args)
{
    return args->opts.backend == TESS_GCF_CPU ? of->cpu : of->gpu;
}

static bool is_of_sets(const table *of)
{
    return of->order.count > 0 && of->order.value[0] >= TESS_BENCH_GCF_SETS;
}

/* Can a strategy do a case, with its switches? */
static bool is_there(const tess_bench_gcf_case *what, tess_gcf_strategy strategy)
{
    tess_gcf_grid_opts opts = what->opts;
    opts.strategy = strategy;
    if (!tess_gcf_strategy_there(opts.backend, strategy, what->degrid)) return false;
    if (tess_gcf_check_probes(&opts, what->degrid) == TESS_OK) return true;
    tess_error_clear();
    return false;
}

static void list_strategies(const table *of, const tess_bench_gcf_args *args,
                            tess_gcf_strategy *strategy, tess_bench_gcf_case *what)
{
    what->num_strategies = 0;
    for (int k = 0; k < TESS_GCF_NUM_STRATEGIES; ++k) {
        bool asked = args->strategy.count == 0, meant = of->num_only == 0;
        for (int s = 0; s < args->strategy.count; ++s)
            asked = asked || args->strategy.value[s] == k;
        for (int s = 0; s < of->num_only; ++s)
            meant = meant || of->only[s] == (tess_gcf_strategy)k;
        if (!of->is_formula && k == TESS_GCF_COMPUTED) meant = false;
        if (args->strategy.count == 0 &&
            (k == TESS_GCF_SERIAL || k == TESS_GCF_PRIVATE))
            meant = false;
        if (asked && meant && is_there(what, (tess_gcf_strategy)k))
            strategy[what->num_strategies++] = (tess_gcf_strategy)k;
    }
}

static void leave_out(tess_bench_gcf_study *study, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void leave_out(tess_bench_gcf_study *study, const char *format, ...)
{
    va_list values;
    if (study->num_notes == MOST_NOTES) return;
    va_start(values, format);
    vsnprintf(study->note[study->num_notes], sizeof *study->note, format, values);
    va_end(values);
    tess_log_info("left out: %s", study->note[study->num_notes++]);
}

/* ---- limits ---- */

/* Bytes that a case takes on the host, but for kernels. */
static double bytes_of(const tess_bench_gcf_case *what)
{
    const double value = (what->is_double ? 16.0 : 8.0) * what->num_pol;
    const double cells = (double)what->size * (double)what->size;
    /* places of points and keys to sort by as well; the grid, and the one compared with
     */
    return (double)what->num_points * (24 + 64 + 2 * value) + 2 * cells * value;
}

static const tess_bench_gcf_set *set_of(const tess_bench_gcf_case *what)
{
    return what->order < TESS_BENCH_GCF_SETS
               ? NULL
               : &tess_bench_gcf_sets[what->order - TESS_BENCH_GCF_SETS];
}

/* Cells that a case updates; of a set roughly: most kernels are narrow. */
static double cells_of(const tess_bench_gcf_case *what)
{
    const tess_bench_gcf_set *set = set_of(what);
    const double width = set ? 2 * set->half_support + 1 : what->support;
    const double share = set ? 0.05 : 1;
    return share * width * width * (double)what->num_points * what->num_pol;
}

/* Fewer points where the case would take longer than `seconds`; false: it has none
 * left, or does not fit into memory. The points of a table of their numbers stay. */
static bool fit(const table *of, tess_bench_gcf_study *study, double seconds,
                tess_bench_gcf_case *what, const char **why)
{
    const tess_bench_gcf_args *args = study->args;
    const bool on_cpu = what->opts.backend == TESS_GCF_CPU,
               is_set = set_of(what) != NULL;
    const double each = on_cpu ? (is_set ? CPU_SET_RATE : CPU_RATE) * what->opts.threads
                               : (is_set ? GPU_SET_RATE : GPU_RATE);
    const double runs = (double)(args->repeat + 1) * what->num_strategies;
    const double most = seconds * each / runs, cells = cells_of(what);
    *why = "--within";
    if (!args->given.vis && cells > most) {
        if (is_set || of->vis.count > 1) return false;
        what->num_points = (int64_t)((double)what->num_points * most / cells);
        if (what->num_points < LEAST_POINTS) return false;
    }
    *why = "memory";
    return bytes_of(what) < 0.7 * (double)tess_mem_node_limit_bytes();
}

/* ---- running ---- */

/* How long a strategy is repeated to read its joules, which is not in `seconds`, but no
 * longer than a strategy's part of them; 0: too short for meters. */
static double energy_seconds(const tess_bench_gcf_args *args, double seconds,
                             int strategies)
{
    const double each = fmin(args->energy_s, seconds / strategies);
    return each < LEAST_ENERGY_S ? 0 : each;
}

static tess_status add_rows(tess_bench_gcf_study *study, const tess_bench_gcf_row *like,
                            const tess_bench_gcf_result *found)
{
    tess_status status = TESS_OK;
    for (int s = 0; s < like->what.num_strategies; ++s) {
        if (study->num_rows == MOST_ROWS)
            TESS_FAIL(TESS_ERR_USAGE, "--study: more than %d lines", MOST_ROWS);
        tess_bench_gcf_row *row = &study->row[study->num_rows++];
        *row = *like;
        row->strategy = like->what.strategy[s];
        row->what.strategy = NULL;
        row->found = found[s];
        row->joules = found[s].joules;
    }
cleanup:
    return status;
}

static void describe(const tess_bench_gcf_case *what, const char *name, char *text,
                     size_t size)
{
    snprintf(text, size, "%s, %s, %lld points, %lld² cells, GCF %d, %d pol, %s%s%s",
             tess_bench_gcf_operation_name[what->degrid],
             tess_bench_gcf_order_name[what->order], (long long)what->num_points,
             (long long)what->size, what->support, what->num_pol,
             tess_bench_gcf_precision_name[what->is_double], *name ? ", " : "", name);
}

static tess_status run_case(tess_bench_gcf_study *study, int number,
                            const double *value, const variant *as, double seconds,
                            int table_number)
{
    tess_status status = TESS_OK;
    const table *of = &tables[table_number];
    const tess_bench_gcf_args *args = study->args;
    tess_gcf_strategy strategy[TESS_GCF_NUM_STRATEGIES];
    tess_bench_gcf_result found[TESS_GCF_NUM_STRATEGIES];
    const char *why;
    char text[160];
    tess_bench_gcf_case what;
    tess_bench_gcf_case_of(args, value, strategy, &what);
    what.is_formula = of->is_formula;
    const tess_bench_gcf_set *set = set_of(&what);
    const int64_t all =
        set ? (int64_t)set->num_stations * (set->num_stations - 1) / 2 * set->num_times
            : 0;
    if (set && !args->given.vis) what.num_points = all;
    if (set) what.size = set->size;
    if (set && what.opts.backend == TESS_GCF_CUDA) what.opts.probes.active_box = true;
    if (as->apply) as->apply(&what);
    list_strategies(of, args, strategy, &what);
    if (what.num_strategies == 0) return TESS_OK;
    describe(&what, as->name, text, sizeof text);
    if (what.size < what.support + 4) {
        leave_out(study, "%s: %s: the grid is too small", of->name, text);
        return TESS_OK;
    }
    if (!fit(of, study, seconds, &what, &why)) {
        leave_out(study, "%s: %s: %s", of->name, text, why);
        return TESS_OK;
    }
    tess_log_info("%s: %s", of->name, text);
    what.energy_s = energy_seconds(args, seconds, what.num_strategies);
    TESS_TRY(tess_bench_gcf_run(&what, (int)args->repeat, found));
    const tess_bench_gcf_row row = {
        .table = table_number,
        .number = number,
        .variant = as->name,
        .whole = !set || (args->shrink >= 1 && found[0].num_points == all),
        .what = what,
        .joules = NAN};
    TESS_TRY(add_rows(study, &row, found));
cleanup:
    return status;
}

static tess_status run_table(tess_bench_gcf_study *study, int number, double seconds)
{
    tess_status status = TESS_OK;
    static const variant usual = {"", NULL};
    const table *of = &tables[number];
    tess_bench_list list[LISTS];
    const tess_bench_list *pointer[LISTS];
    lists_of(of, study->args, list);
    for (int k = 0; k < LISTS; ++k)
        pointer[k] = &list[k];
    const int variants = of->num_variants > 0 ? of->num_variants : 1;
    const int cases = count_cases(of, study->args);
    /* of numbers of points the last takes nearly all the time */
    if (of->vis.count > 1) seconds *= list[2].count;
    for (int k = 0; k < cases; ++k) {
        double value[LISTS];
        tess_bench_combination(pointer, LISTS, k / variants, value);
        TESS_TRY(run_case(study, k, value,
                          of->num_variants > 0 ? &of->variant[k % variants] : &usual,
                          seconds, number));
        /* a study that is interrupted leaves what it has */
        TESS_TRY(tess_bench_gcf_write_csv(study, number));
    }
    TESS_TRY(tess_bench_gcf_write_report(study));
cleanup:
    return status;
}

/* Seconds of a case, from those of all, sets counting more. */
static double share_of_time(const tess_bench_gcf_args *args)
{
    double cases = 0;
    for (int k = 0; k < args->study.count; ++k) {
        const table *of = &tables[(int)args->study.value[k]];
        if (is_asked(of, args))
            cases += count_cases(of, args) * (is_of_sets(of) ? SET_WEIGHT : 1);
    }
    return 60 * args->within_min / fmax(cases, 1);
}

static tess_status make_folder(const char *folder)
{
    tess_status status = TESS_OK;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        TESS_FAIL(TESS_ERR_IO, "%s: %s", folder, strerror(errno));
cleanup:
    return status;
}

tess_status tess_bench_gcf_study_run(const tess_bench_gcf_args *args)
{
    tess_status status = TESS_OK;
    tess_bench_gcf_study study = {.args = args};
    const double seconds = share_of_time(args);
    if (!args->out) TESS_FAIL(TESS_ERR_USAGE, "--study wants --out FOLDER");
    TESS_TRY(make_folder(args->out));
    study.row = tess_alloc(MOST_ROWS, sizeof *study.row);
    study.note = tess_alloc(MOST_NOTES, sizeof *study.note);
    if (!study.row || !study.note) TESS_FAIL(TESS_ERR_ALLOC, "tables of a study");
    for (int k = 0; k < args->study.count; ++k) {
        const int number = (int)args->study.value[k];
        const table *of = &tables[number];
        if (!is_asked(of, args))
            leave_out(&study, "%s: a GPU's alone (--backend cuda)", of->name);
        else
            TESS_TRY(
                run_table(&study, number, seconds * (is_of_sets(of) ? SET_WEIGHT : 1)));
    }
    TESS_TRY(tess_bench_gcf_plot(args->out));
    /* with the plots, and what was not asked */
    TESS_TRY(tess_bench_gcf_write_report(&study));
    printf("%s/report.md\n", args->out);
cleanup:
    tess_free(study.row);
    tess_free(study.note);
    return status;
}
