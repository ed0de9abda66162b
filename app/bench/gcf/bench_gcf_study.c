/* Measures the tables of a study: makes their cases, as large as the time allows, and
 * runs them. */
#define _GNU_SOURCE
#include "tess_bench_gcf_args.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "bench_gcf_report.h"
#include "tess_bench_gcf_names.h"
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

/* Cells and polarisations a second that strategies are taken to do, so that a case has
 * the points for its time: gridding and degridding kernels of 32 cells and more in
 * single precision on an H200, and on a thread of a CPU, the slower of what was seen.
 */
static const double gpu_rate[2][TESS_STUDY_NUM_STRATEGIES] = {
    {[TESS_STUDY_SCATTER] = 1.2e11,
     [TESS_STUDY_WARP] = 1.2e11,
     [TESS_STUDY_GATHER] = 2e11,
     [TESS_STUDY_WINDOW] = 2e11,
     [TESS_STUDY_COARSE] = 1.5e11,
     [TESS_STUDY_TILED] = 5e11,
     [TESS_STUDY_FACTORED] = 1e12},
    {[TESS_STUDY_SCATTER] = 1.5e11,
     [TESS_STUDY_GATHER] = 3e11,
     [TESS_STUDY_WINDOW] = 1.2e11,
     [TESS_STUDY_TILED] = 2e11,
     [TESS_STUDY_FACTORED] = 1e12,
     [TESS_STUDY_COMPUTED] = 2e11}};
static const double cpu_rate[TESS_STUDY_NUM_STRATEGIES] = {
    [TESS_STUDY_SERIAL] = 2e8,     [TESS_STUDY_ATOMIC] = 5e7,
    [TESS_STUDY_PRIVATE] = 1e8,    [TESS_STUDY_TILED] = 2.5e8,
    [TESS_STUDY_FACTORED] = 2.5e8, [TESS_STUDY_COMPUTED] = 2e7};
/* What the same take in double precision, and adding by compare-and-swap, on a GPU. */
static const double DOUBLE_TIMES = 3, CAS_TIMES = 10;

/* Meters are read every few tens of milliseconds. Reading joules takes this part of a
 * study's time, unless it is too short for that. */
static const double LEAST_ENERGY_S = 0.2, ENERGY_SHARE = 0.25;

/* A way that a table compares with the usual one. */
typedef struct variant {
    const char *name;
    void (*apply)(tess_bench_gcf_case *what);
} variant;

/* A table: lists of what its cases have, all combinations; none: one usual value. */
typedef struct table {
    tess_bench_list operation, order, vis, size, pol, precision, gcf;
    double degrid_vis, degrid_size; /* usual ones of degridding on a GPU, as published;
                                       0: those of gridding */
    bool is_formula;
    tess_study_strategy only[MOST_ONLY]; /* strategies, if num_only > 0 */
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
    what->opts.probes.atomics = TESS_STUDY_CAS;
}

static const table tables[TESS_BENCH_GCF_NUM_TABLES] = {
    [TESS_BENCH_GCF_TABLE_SIZE] = {.order = {{TESS_BENCH_GCF_RANDOM,
                                              TESS_BENCH_GCF_SORTED},
                                             2},
                                   .gcf = {{8, 16, 32, 64, 128, 256, 512}, 7},
                                   .degrid_vis = 4e6,
                                   .degrid_size = 8192},
    [TESS_BENCH_GCF_TABLE_POINTS] = {.vis = {{1e3, 1e4, 1e5, 1e6, 1e7, 1e8}, 6}},
    [TESS_BENCH_GCF_TABLE_IMAGE] = {.size = {{1024, 2048, 4096, 8192, 16384}, 5}},
    [TESS_BENCH_GCF_TABLE_POL] = {.order = {{TESS_BENCH_GCF_TRACKS,
                                             TESS_BENCH_GCF_BASELINES},
                                            2},
                                  .pol = {{1, 2, 4}, 3},
                                  .gcf = {{64}, 1}},
    [TESS_BENCH_GCF_TABLE_PRECISION] = {.precision = {{0, 1}, 2},
                                        .gcf = {{32, 128}, 2},
                                        .degrid_vis = 4e6,
                                        .degrid_size = 8192},
    [TESS_BENCH_GCF_TABLE_ATOMICS] =
        {.operation = {{0}, 1},
         .order = {{TESS_BENCH_GCF_RANDOM, TESS_BENCH_GCF_TRACKS}, 2},
         .precision = {{0, 1}, 2},
         .only = {TESS_STUDY_ATOMIC, TESS_STUDY_SCATTER, TESS_STUDY_WARP,
                  TESS_STUDY_WINDOW, TESS_STUDY_COARSE},
         .num_only = 5,
         .variant = {{"native", NULL}, {"compare-and-swap", with_compare_and_swap}},
         .num_variants = 2},
    [TESS_BENCH_GCF_TABLE_COMPUTED] = {.operation = {{1}, 1},
                                       .pol = {{1, 4}, 2},
                                       .gcf = {{32, 128}, 2},
                                       .is_formula = true,
                                       .only = {TESS_STUDY_ATOMIC, TESS_STUDY_GATHER,
                                                TESS_STUDY_COMPUTED},
                                       .num_only = 3,
                                       .variant = {{"", NULL},
                                                   {"fast-math", with_fast_math}},
                                       .num_variants = 2},
    [TESS_BENCH_GCF_TABLE_SETS] = {.operation = {{0}, 1},
                                   .order = {{TESS_BENCH_GCF_SETS,
                                              TESS_BENCH_GCF_SETS + 1,
                                              TESS_BENCH_GCF_SETS + 2,
                                              TESS_BENCH_GCF_SETS + 3},
                                             4},
                                   .only = {TESS_STUDY_TILED, TESS_STUDY_FACTORED},
                                   .num_only = 2},
};

enum { LISTS = 7 };

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

static bool is_of_sets(const table *of)
{
    return of->order.count > 0 && of->order.value[0] >= TESS_BENCH_GCF_SETS;
}

/* Can a strategy do a case, with its switches? */
static bool is_there(const tess_bench_gcf_case *what, tess_study_strategy strategy)
{
    tess_study_opts opts = what->opts;
    opts.strategy = strategy;
    if (!tess_study_there(opts.backend, strategy, what->degrid)) return false;
    if (tess_study_check_probes(&opts, what->degrid) == TESS_OK) return true;
    tess_error_clear();
    return false;
}

static void list_strategies(const table *of, const tess_bench_gcf_args *args,
                            tess_study_strategy *strategy, tess_bench_gcf_case *what)
{
    what->num_strategies = 0;
    for (int k = 0; k < TESS_STUDY_NUM_STRATEGIES; ++k) {
        bool asked = args->strategy.count == 0, meant = of->num_only == 0;
        for (int s = 0; s < args->strategy.count; ++s)
            asked = asked || args->strategy.value[s] == k;
        for (int s = 0; s < of->num_only; ++s)
            meant = meant || of->only[s] == (tess_study_strategy)k;
        if (!of->is_formula && k == TESS_STUDY_COMPUTED) meant = false;
        if (args->strategy.count == 0 &&
            (k == TESS_STUDY_SERIAL || k == TESS_STUDY_PRIVATE))
            meant = false;
        if (asked && meant && is_there(what, (tess_study_strategy)k))
            strategy[what->num_strategies++] = (tess_study_strategy)k;
    }
}

static const tess_bench_gcf_set *set_of(const tess_bench_gcf_case *what)
{
    return what->order < TESS_BENCH_GCF_SETS
               ? NULL
               : &tess_bench_gcf_sets[what->order - TESS_BENCH_GCF_SETS];
}

static int64_t points_of(const tess_bench_gcf_set *set)
{
    return (int64_t)set->num_stations * (set->num_stations - 1) / 2 * set->num_times;
}

/* As a set has them, or the figures published of degridding on a GPU. */
static void set_points_and_size(const table *of, const tess_bench_gcf_args *args,
                                tess_bench_gcf_case *what)
{
    const tess_bench_gcf_set *set = set_of(what);
    if (set) {
        if (!args->given.vis) what->num_points = points_of(set);
        what->size = set->size;
    } else if (what->degrid && what->opts.backend == TESS_GCF_DEVICE) {
        if (of->degrid_vis > 0 && !args->given.vis)
            what->num_points = (int64_t)of->degrid_vis;
        if (of->degrid_size > 0 && !args->given.size)
            what->size = (int64_t)of->degrid_size;
    }
}

/* Case number k of a table, with its strategies, and the way that it is done. */
static const variant *make_case(const table *of, const tess_bench_gcf_args *args, int k,
                                tess_study_strategy *strategy,
                                tess_bench_gcf_case *what)
{
    static const variant usual = {"", NULL};
    const int variants = of->num_variants > 0 ? of->num_variants : 1;
    const variant *as = of->num_variants > 0 ? &of->variant[k % variants] : &usual;
    tess_bench_list list[LISTS];
    const tess_bench_list *pointer[LISTS];
    double value[LISTS];
    lists_of(of, args, list);
    for (int n = 0; n < LISTS; ++n)
        pointer[n] = &list[n];
    tess_bench_combination(pointer, LISTS, k / variants, value);
    tess_bench_gcf_case_of(args, value, strategy, what);
    what->is_formula = of->is_formula;
    set_points_and_size(of, args, what);
    if (set_of(what) && what->opts.backend == TESS_GCF_DEVICE)
        what->opts.probes.active_box = true;
    if (as->apply) as->apply(what);
    list_strategies(of, args, strategy, what);
    return as;
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

/* Cells that a case updates; of a set roughly: most kernels are narrow. */
static double cells_of(const tess_bench_gcf_case *what)
{
    const tess_bench_gcf_set *set = set_of(what);
    const double width = set ? 2 * set->half_support + 1 : what->support;
    const double share = set ? 0.05 : 1;
    return share * width * width * (double)what->num_points * what->num_pol;
}

/* Cells a second of a strategy on the case's machine. */
static double rate_of(const tess_bench_gcf_case *what, tess_study_strategy strategy)
{
    if (what->opts.backend == TESS_GCF_CPU)
        return cpu_rate[strategy] *
               (strategy == TESS_STUDY_SERIAL ? 1 : what->opts.threads);
    return gpu_rate[what->degrid][strategy] / (what->is_double ? DOUBLE_TIMES : 1) /
           (what->opts.probes.atomics == TESS_STUDY_CAS ? CAS_TIMES : 1);
}

/* Seconds that all strategies and runs of a case take, about. */
static double seconds_of(const tess_bench_gcf_case *what, int64_t repeat)
{
    double each = 0;
    for (int s = 0; s < what->num_strategies; ++s)
        each += 1 / rate_of(what, what->strategy[s]);
    return (double)(repeat + 1) * cells_of(what) * each;
}

/* Is the number of points what a case is about? */
static bool is_whole(const table *of, const tess_bench_gcf_case *what)
{
    return set_of(what) || of->vis.count > 1;
}

/* Fewer points where the case would take longer than `seconds`; false: it has none
 * left, or must have all, or does not fit into memory. */
static bool fit(const table *of, tess_bench_gcf_study *study, double seconds,
                tess_bench_gcf_case *what, const char **why)
{
    const tess_bench_gcf_args *args = study->args;
    const double all = seconds_of(what, args->repeat);
    *why = "--within";
    if (!args->given.vis && all > seconds) {
        if (is_whole(of, what)) return false;
        what->num_points = (int64_t)((double)what->num_points * seconds / all);
        if (what->num_points < LEAST_POINTS) return false;
    }
    *why = "memory";
    return bytes_of(what) < 0.7 * (double)tess_mem_node_limit_bytes();
}

/* ---- the time of a study ---- */

/* Some cases may take longer than others: sets, and of numbers of points the last,
 * which takes nearly all the time. */
static double weight_of(const table *of)
{
    return is_of_sets(of) ? SET_WEIGHT : of->vis.count > 1 ? of->vis.count : 1;
}

/* Lines of all tables, and the seconds that they take if no case takes longer than
 * `most`, times its weight. */
static double seconds_of_all(const tess_bench_gcf_args *args, double most, int *lines)
{
    double seconds = 0;
    *lines = 0;
    for (int t = 0; t < args->study.tables.count; ++t) {
        const table *of = &tables[(int)args->study.tables.value[t]];
        const int cases = count_cases(of, args);
        for (int k = 0; k < cases; ++k) {
            tess_study_strategy strategy[TESS_STUDY_NUM_STRATEGIES];
            tess_bench_gcf_case what;
            make_case(of, args, k, strategy, &what);
            const double longest = most * weight_of(of);
            const double wanted = seconds_of(&what, args->repeat);
            *lines += what.num_strategies;
            if (wanted <= longest || !is_whole(of, &what))
                seconds += fmin(wanted, longest);
        }
    }
    return seconds;
}

/* How long each line is repeated to read its joules: for each at least as long as a
 * meter needs. 0: there is none, or they are not asked for. */
static double energy_seconds(const tess_bench_gcf_args *args, int lines)
{
    const double share = ENERGY_SHARE * 60 * args->study.within_min / fmax(lines, 1);
    return tess_bench_gcf_has_meter(args->opts.backend)
               ? fmin(args->energy_s, fmax(LEAST_ENERGY_S, share))
               : 0;
}

/* The longest that a case may take, so that all of them together, and joules, take what
 * was asked for: what short ones leave is that of the others. Joules take no more than
 * half of it, or longer than that. */
static double longest_case(const tess_bench_gcf_args *args, double *energy_s)
{
    enum { HALVINGS = 50 };
    const double all = 60 * args->study.within_min;
    double low = 0, high = all;
    int lines;
    seconds_of_all(args, all, &lines);
    *energy_s = energy_seconds(args, lines);
    const double left = fmax(all - lines * *energy_s, 0.5 * all);
    for (int k = 0; k < HALVINGS; ++k) {
        const double most = 0.5 * (low + high);
        if (seconds_of_all(args, most, &lines) > left)
            high = most;
        else
            low = most;
    }
    tess_log_info("a study of %d lines: cases of up to %.3g s, or for sets and numbers "
                  "of points more, and %.2g s a line to read joules",
                  lines, low, *energy_s);
    return low;
}

/* ---- running ---- */

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

/* Times a case. If memory does not suffice, which is no error, the case is noted as
 * left out, and `done` is false. */
static tess_status time_case(tess_bench_gcf_study *study, const char *table_name,
                             const char *text, tess_bench_gcf_case *what,
                             tess_bench_gcf_result *found, bool *done)
{
    tess_log_info("%s: %s", table_name, text);
    what->energy_s = study->energy_s;
    const tess_status status = tess_bench_gcf_run(what, study->args->repeat, found);
    *done = status == TESS_OK;
    if (status != TESS_ERR_ALLOC) return status;
    leave_out(study, "%s: %s: %s", table_name, text, tess_error_message());
    tess_error_clear();
    return TESS_OK;
}

static tess_status run_case(tess_bench_gcf_study *study, int table_number, int number)
{
    tess_status status = TESS_OK;
    const table *of = &tables[table_number];
    const char *table_name = tess_bench_gcf_table_name[table_number];
    const tess_bench_gcf_args *args = study->args;
    tess_study_strategy strategy[TESS_STUDY_NUM_STRATEGIES];
    tess_bench_gcf_result found[TESS_STUDY_NUM_STRATEGIES];
    const char *why;
    char text[160];
    bool done;
    tess_bench_gcf_case what;
    const variant *as = make_case(of, args, number, strategy, &what);
    const tess_bench_gcf_set *set = set_of(&what);
    if (what.num_strategies == 0) return TESS_OK;
    describe(&what, as->name, text, sizeof text);
    if (what.size < what.support + 4) {
        leave_out(study, "%s: %s: the grid is too small", table_name, text);
        return TESS_OK;
    }
    if (!fit(of, study, study->case_s * weight_of(of), &what, &why)) {
        leave_out(study, "%s: %s: %s", table_name, text, why);
        return TESS_OK;
    }
    describe(&what, as->name, text, sizeof text);
    TESS_TRY(time_case(study, table_name, text, &what, found, &done));
    if (!done) return TESS_OK;
    const tess_bench_gcf_row row = {
        .table = table_number,
        .number = number,
        .variant = as->name,
        .whole = !set || (args->shrink >= 1 && found[0].num_points == points_of(set)),
        .what = what,
        .joules = NAN};
    TESS_TRY(add_rows(study, &row, found));
cleanup:
    return status;
}

static tess_status run_table(tess_bench_gcf_study *study, int number)
{
    tess_status status = TESS_OK;
    const int cases = count_cases(&tables[number], study->args);
    for (int k = 0; k < cases; ++k) {
        TESS_TRY(run_case(study, number, k));
        /* a study that is interrupted leaves what it has */
        TESS_TRY(tess_bench_gcf_write_csv(study, number));
    }
    TESS_TRY(tess_bench_gcf_write_report(study));
cleanup:
    return status;
}

/* Files of a study have names that others' may have, too. */
static tess_status check_empty(const char *folder)
{
    tess_status status = TESS_OK;
    DIR *list = opendir(folder);
    if (!list) TESS_FAIL(TESS_ERR_IO, "%s: %s", folder, strerror(errno));
    for (const struct dirent *entry; (entry = readdir(list));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            TESS_FAIL(TESS_ERR_IO,
                      "%s: is not empty; give --overwrite or another folder", folder);
cleanup:
    if (list) closedir(list);
    return status;
}

static tess_status make_folder(const char *folder, bool overwrite)
{
    tess_status status = TESS_OK;
    if (mkdir(folder, 0777) == 0) return TESS_OK;
    if (errno != EEXIST) TESS_FAIL(TESS_ERR_IO, "%s: %s", folder, strerror(errno));
    if (!overwrite) TESS_TRY(check_empty(folder));
cleanup:
    return status;
}

tess_status tess_bench_gcf_study_run(const tess_bench_gcf_args *args)
{
    tess_status status = TESS_OK;
    tess_bench_gcf_study study = {.args = args};
    if (!args->study.out) TESS_FAIL(TESS_ERR_USAGE, "--study wants --out FOLDER");
    TESS_TRY(make_folder(args->study.out, args->overwrite));
    study.row = tess_alloc(MOST_ROWS, sizeof *study.row);
    study.note = tess_alloc(MOST_NOTES, sizeof *study.note);
    if (!study.row || !study.note) TESS_FAIL(TESS_ERR_ALLOC, "tables of a study");
    study.case_s = longest_case(args, &study.energy_s);
    for (int k = 0; k < args->study.tables.count; ++k)
        TESS_TRY(run_table(&study, (int)args->study.tables.value[k]));
    TESS_TRY(tess_bench_gcf_plot(args->study.out));
    /* with the plots */
    TESS_TRY(tess_bench_gcf_write_report(&study));
    printf("%s/report.md\n", args->study.out);
cleanup:
    tess_free(study.row);
    tess_free(study.note);
    return status;
}
