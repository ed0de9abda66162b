/* What a study leaves behind: tables as CSV and Markdown, and plots. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_gcf_report.h"
#include "tess_backend.h"
#include "tess_bench_gcf_names.h"
#include "tess_cache.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_out_file.h"
#include "tess_version.h"

extern char **environ;

enum { NO_MATPLOTLIB = 3 }; /* of bench_gcf_plots.py */

/* NAME in the folder of a study, while it is written. */
typedef struct study_file {
    char path[TESS_OUT_FILE_NAME], temp[TESS_OUT_FILE_NAME];
    FILE *stream;
} study_file;

static tess_status open_file(const char *folder, const char *name, study_file *file)
{
    tess_status status = TESS_OK;
    int fd = -1;
    *file = (study_file){0};
    snprintf(file->path, sizeof file->path, "%s/%s", folder, name);
    /* the folder was the study's own when it began: each table is written many times */
    TESS_TRY(tess_out_file_begin(file->path, true, file->temp, &fd));
    file->stream = fdopen(fd, "w");
    if (!file->stream) TESS_FAIL(TESS_ERR_IO, "%s: %s", file->path, strerror(errno));
    fd = -1; /* closed with it */
cleanup:
    if (fd >= 0) close(fd);
    if (status != TESS_OK) tess_out_file_discard(file->temp);
    return status;
}

static tess_status close_file(study_file *file)
{
    tess_status status = TESS_OK;
    const bool failed = ferror(file->stream) != 0;
    if (fclose(file->stream) != 0 || failed)
        TESS_FAIL(TESS_ERR_IO, "%s: could not be written: %s", file->path,
                  strerror(errno));
    TESS_TRY(tess_out_file_publish(file->temp, file->path, true));
    file->temp[0] = '\0';
cleanup:
    tess_out_file_discard(file->temp);
    return status;
}

/* Seconds of all stages: placing, sorting, gridding and copies of the grid. */
static double all_seconds(const tess_bench_gcf_row *row)
{
    return row->found.sort_s + row->found.seconds + row->found.cells_s;
}

static double joules_per_vis(const tess_bench_gcf_row *row)
{
    return row->joules / (double)row->found.num_points;
}

/* ---- CSV ---- */

static void csv_line(FILE *file, const tess_bench_gcf_row *row)
{
    const tess_bench_gcf_case *what = &row->what;
    const tess_bench_gcf_result *found = &row->found;
    const tess_bench_gcf_published *published = tess_bench_gcf_published_for(row);
    /* nothing for what cannot be read */
    const double reading[] = {joules_per_vis(row), found->watts, found->mhz,
                              found->celsius};
    fprintf(file, "%s,%s,%s,%s,%d,%s,%lld,%lld,%d,%d,%d,%d,%s,",
            tess_bench_gcf_operation_name[what->degrid],
            tess_bench_gcf_backend_name[what->opts.backend],
            tess_study_name(row->strategy), row->variant, what->opts.threads,
            tess_bench_gcf_order_name[what->order], (long long)found->num_points,
            (long long)what->size, what->support, what->num_planes, what->oversampling,
            what->num_pol, tess_bench_gcf_precision_name[what->is_double]);
    fprintf(file, "%lld,%.3f,%.3f,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.5g,%.5g,%.2e,",
            (long long)found->merged, found->mean_rank,
            (double)found->table_bytes / 1048576, found->sort_s, found->seconds,
            found->copy_s, found->cells_s, all_seconds(row), found->point_cells,
            found->study_cells, found->gflops, found->all_gflops, found->difference);
    for (size_t k = 0; k < sizeof reading / sizeof *reading; ++k) {
        if (isfinite(reading[k])) fprintf(file, "%.4g", reading[k]);
        if (k + 1 < sizeof reading / sizeof *reading) fputc(',', file);
    }
    if (published)
        fprintf(file, ",%g,%s,\"%s\",\"%s\"", published->value, published->unit,
                published->what, published->source);
    else
        fputs(",,,,", file);
    fprintf(file, ",%s\n", tess_version_full());
}

tess_status tess_bench_gcf_write_csv(const tess_bench_gcf_study *study, int table)
{
    tess_status status = TESS_OK;
    study_file out;
    char name[64];
    snprintf(name, sizeof name, "%s.csv", tess_bench_gcf_table_name[table]);
    TESS_TRY(open_file(study->args->study.out, name, &out));
    fputs(
        "operation,backend,strategy,variant,threads,order,visibilities,size,gcf,planes,"
        "oversampling,polarisations,precision,merged,rank,table_mib,sort_s,seconds,"
        "copy_s,cells_s,all_s,cells,study_cells,gflops,all_gflops,difference,"
        "joules_per_vis,watts,mhz,celsius,published,published_unit,published_what,"
        "published_source,version\n",
        out.stream);
    for (int k = 0; k < study->num_rows; ++k)
        if (study->row[k].table == table) csv_line(out.stream, &study->row[k]);
    TESS_TRY(close_file(&out));
cleanup:
    return status;
}

/* ---- Markdown ---- */

/* The strategies of a table, in the order in which they come. */
static int strategies_of(const tess_bench_gcf_study *study, int table,
                         tess_study_strategy *strategy)
{
    int count = 0;
    for (int k = 0; k < study->num_rows; ++k) {
        const tess_bench_gcf_row *row = &study->row[k];
        bool is_new = row->table == table;
        for (int s = 0; s < count; ++s)
            is_new = is_new && strategy[s] != row->strategy;
        if (is_new) strategy[count++] = row->strategy;
    }
    return count;
}

static void published_cell(FILE *file, const tess_bench_gcf_row *row)
{
    const tess_bench_gcf_published *of = tess_bench_gcf_published_for(row);
    if (of && strcmp(of->unit, "times") != 0)
        fprintf(file, " %g %s, %s |\n", of->value, of->unit, of->what);
    else
        fputs(" |\n", file);
}

/* The rates of a case's strategies, rows [first, end). */
static void rate_cells(FILE *file, const tess_bench_gcf_row *first,
                       const tess_bench_gcf_row *end,
                       const tess_study_strategy *strategy, int count)
{
    for (int s = 0; s < count; ++s) {
        const tess_bench_gcf_row *row = first;
        while (row < end && row->strategy != strategy[s])
            ++row;
        if (row == end) {
            fputs(" |", file);
            continue;
        }
        fprintf(file, row->found.gflops < 100 ? " %.2f" : " %.0f", row->found.gflops);
        if (isfinite(row->joules)) fprintf(file, " (%.3g)", 1e6 * joules_per_vis(row));
        fputs(" |", file);
    }
}

static void write_rates(FILE *file, const tess_bench_gcf_study *study, int table)
{
    tess_study_strategy strategy[TESS_STUDY_NUM_STRATEGIES];
    const int count = strategies_of(study, table, strategy);
    const tess_bench_gcf_row *end = study->row + study->num_rows;
    fputs("\nGFLOP/s; in brackets microjoules a visibility, where they can be read.\n\n"
          "| operation | order | visibilities | cells | GCF | pols | precision |",
          file);
    for (int s = 0; s < count; ++s)
        fprintf(file, " %s |", tess_study_name(strategy[s]));
    fputs(" published |\n|---|---|---|---|---|---|---|", file);
    for (int s = 0; s <= count; ++s)
        fputs("---|", file);
    fputc('\n', file);
    for (const tess_bench_gcf_row *row = study->row, *next; row < end; row = next) {
        for (next = row + 1;
             next < end && next->table == row->table && next->number == row->number;)
            ++next;
        if (row->table != table) continue;
        fprintf(file, "| %s%s%s | %s | %lld",
                tess_bench_gcf_operation_name[row->what.degrid],
                *row->variant ? ", " : "", row->variant,
                tess_bench_gcf_order_name[row->what.order],
                (long long)row->found.num_points);
        if (row->what.opts.merge)
            fprintf(file, " as %lld", (long long)row->found.merged);
        fprintf(file, " | %lld² | %d | %d | %s |", (long long)row->what.size,
                row->what.support, row->what.num_pol,
                tess_bench_gcf_precision_name[row->what.is_double]);
        rate_cells(file, row, next, strategy, count);
        published_cell(file, row);
    }
}

/* All published times of a set, and how often ours goes into them. */
static void set_cells(FILE *file, const tess_bench_gcf_row *row)
{
    const double ms = 1e3 * all_seconds(row);
    const tess_bench_gcf_published *of;
    const char *between = " ";
    for (int k = 0; (of = tess_bench_gcf_published_at(k)) != NULL; ++k) {
        if (strcmp(of->table, "sets") != 0 || of->order != (int)row->what.order ||
            !row->whole || row->what.is_double || row->what.num_pol != 1)
            continue;
        fprintf(file, "%s%g (%s; %.1f times ours)", between, of->value, of->what,
                of->value / ms);
        between = ", ";
    }
    fputs(" |\n", file);
}

static void write_sets(FILE *file, const tess_bench_gcf_study *study, int table)
{
    fputs(
        "\nMilliseconds of all stages: points are placed and sorted, gridded and, on a "
        "GPU, the box\nof the grid that they meet is copied there and back; "
        "visibilities lie where they are\ngridded. Cells are the updates of the grid, "
        "here and (in brackets) in the study.\n\n"
        "| set | strategy | visibilities | planes | widest GCF | 10⁹ cells | sort | "
        "grid | copy | all | GFLOP/s | µJ/vis | published, ms |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        file);
    for (int k = 0; k < study->num_rows; ++k) {
        const tess_bench_gcf_row *row = &study->row[k];
        const tess_bench_gcf_result *found = &row->found;
        if (row->table != table) continue;
        fprintf(
            file,
            "| %s | %s | %lld | %d | %d | %.3f (%.3f) | %.1f | %.1f | %.1f | %.1f | "
            "%.0f |",
            tess_bench_gcf_order_name[row->what.order], tess_study_name(row->strategy),
            (long long)found->num_points, row->what.num_planes, row->what.support,
            1e-9 * found->point_cells, 1e-9 * found->study_cells, 1e3 * found->sort_s,
            1e3 * found->seconds, 1e3 * found->cells_s, 1e3 * all_seconds(row),
            found->gflops);
        if (isfinite(row->joules)) fprintf(file, " %.3g", 1e6 * joules_per_vis(row));
        fputs(" |", file);
        set_cells(file, row);
    }
}

/* Where what is published stands. */
static void write_sources(FILE *file, const char *table)
{
    const tess_bench_gcf_published *of, *before;
    for (int k = 0; (of = tess_bench_gcf_published_at(k)) != NULL; ++k) {
        bool is_new = strcmp(of->table, table) == 0;
        for (int b = 0; b < k && is_new; ++b) {
            before = tess_bench_gcf_published_at(b);
            is_new = before->source != of->source || strcmp(before->table, table) != 0;
        }
        if (is_new) fprintf(file, "\nPublished: %s.\n", of->source);
    }
}

/* How much faster the coarsened window is than the window, beside what its study found.
 */
static void write_coarse(FILE *file, const tess_bench_gcf_study *study, int table)
{
    const tess_bench_gcf_row *end = study->row + study->num_rows;
    for (const tess_bench_gcf_row *a = study->row; a < end; ++a)
        for (const tess_bench_gcf_row *b = study->row; b < end; ++b) {
            const tess_bench_gcf_published *of = tess_bench_gcf_published_for(a);
            if (a->table != table || b->table != table || a->number != b->number ||
                a->what.degrid || a->strategy != TESS_STUDY_WINDOW ||
                b->strategy != TESS_STUDY_COARSE)
                continue;
            fprintf(file, "\n`coarse` is %.2f times as fast as `window`: %s, %d pol.",
                    b->found.gflops / a->found.gflops,
                    tess_bench_gcf_order_name[a->what.order], a->what.num_pol);
            if (of) fprintf(file, " Published: %g (%s).", of->value, of->what);
            fputc('\n', file);
        }
}

/* What is lost where kernels are computed: by fast functions, or not. */
static void write_errors(FILE *file, const tess_bench_gcf_study *study, int table)
{
    for (int k = 0; k < study->num_rows; ++k) {
        const tess_bench_gcf_row *row = &study->row[k];
        if (row->table == table && row->strategy == TESS_STUDY_COMPUTED)
            fprintf(file,
                    "\n`computed`%s%s is off by %.1e from the table: GCF %d, %d pol.\n",
                    *row->variant ? ", " : "", row->variant, row->found.difference,
                    row->what.support, row->what.num_pol);
    }
}

/* The plot, where it has been drawn. */
static void write_picture(FILE *file, const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.png", folder, name);
    if (access(path, R_OK) == 0) fprintf(file, "\n![](%s.png)\n", name);
}

static void write_table(FILE *file, const tess_bench_gcf_study *study, int table)
{
    const char *name = tess_bench_gcf_table_name[table];
    fprintf(file, "\n## %s\n", tess_bench_gcf_table_title[table]);
    write_picture(file, study->args->study.out, name);
    if (strcmp(name, "sets") == 0)
        write_sets(file, study, table);
    else
        write_rates(file, study, table);
    if (strcmp(name, "pol") == 0) write_coarse(file, study, table);
    if (strcmp(name, "computed") == 0) write_errors(file, study, table);
    write_sources(file, name);
}

static void write_machine(FILE *file, const tess_bench_gcf_args *args)
{
    char text[128];
    tess_cache_processor(text, sizeof text);
    fprintf(file, "Processor %s, %d threads", text, args->opts.threads);
    const tess_backend *found = NULL;
    if (args->opts.backend == TESS_GCF_DEVICE &&
        tess_backend_find(TESS_BACKEND_DEVICE, &found) == TESS_OK) {
        found->text(text, sizeof text);
        fprintf(file, "; timed on %s", text);
    }
    fprintf(file, ". tessera %s. Medians of %d runs.\n", tess_version_full(),
            args->repeat);
}

tess_status tess_bench_gcf_write_report(const tess_bench_gcf_study *study)
{
    tess_status status = TESS_OK;
    study_file out;
    TESS_TRY(open_file(study->args->study.out, "report.md", &out));
    FILE *file = out.stream;
    fputs("# Gridding with tabulated convolution functions\n\n", file);
    write_machine(file, study->args);
    for (int t = 0; tess_bench_gcf_table_name[t]; ++t)
        for (int k = 0; k < study->num_rows; ++k)
            if (study->row[k].table == t) {
                write_table(file, study, t);
                break;
            }
    if (study->num_notes > 0) fputs("\n## Left out\n\n", file);
    for (int k = 0; k < study->num_notes; ++k)
        fprintf(file, "- %s\n", study->note[k]);
    TESS_TRY(close_file(&out));
cleanup:
    return status;
}

/* ---- plots ---- */

tess_status tess_bench_gcf_plot(const char *folder)
{
    tess_status status = TESS_OK;
    study_file out;
    char script[4096];
    const char *python = getenv("TESS_PYTHON");
    char *arguments[] = {NULL, script, NULL, NULL};
    pid_t child;
    int code = 0;
    TESS_TRY(open_file(folder, "plots.py", &out));
    fputs(tess_bench_gcf_plots, out.stream);
    TESS_TRY(close_file(&out));
    snprintf(script, sizeof script, "%s/plots.py", folder);
    arguments[0] = tess_strdup(python && *python ? python : "python3");
    arguments[2] = tess_strdup(folder);
    if (!arguments[0] || !arguments[2]) TESS_FAIL(TESS_ERR_ALLOC, "plots");
    const int failed =
        posix_spawnp(&child, arguments[0], NULL, NULL, arguments, environ);
    if (failed == 0)
        while (waitpid(child, &code, 0) < 0 && errno == EINTR)
            ;
    if (failed != 0 || (WIFEXITED(code) && WEXITSTATUS(code) == NO_MATPLOTLIB))
        tess_log_warn("no Python with matplotlib (TESS_PYTHON names one): tables come "
                      "without plots; %s makes them later",
                      script);
    else if (code != 0)
        tess_log_warn("%s failed: tables come without plots", script);
cleanup:
    tess_free(arguments[0]);
    tess_free(arguments[2]);
    return status;
}
