/* Prints the table of `tessera bench gcf`, as CSV or Markdown. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "tess_bench_gcf_args.h"
#include "tess_bench_gcf_names.h"
#include "tess_version.h"

typedef struct printer {
    bool markdown, head;
    int columns; /* so far, of this line */
} printer;

/* A column: its name in CSV and in Markdown (NULL: not there), or the value. */
static void column(printer *out, const char *csv, const char *markdown,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));

static void column(printer *out, const char *csv, const char *markdown,
                   const char *format, ...)
{
    const char *name = out->markdown ? markdown : csv;
    va_list values;
    if (!name) return;
    fputs(out->markdown      ? out->columns > 0 ? " | " : "| "
          : out->columns > 0 ? ","
                             : "",
          stdout);
    ++out->columns;
    if (out->head) {
        fputs(name, stdout);
        return;
    }
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
}

static void case_columns(printer *out, const tess_bench_gcf_case *what, int k,
                         const tess_bench_gcf_result *of)
{
    const char *strategy = tess_study_name(what->strategy[k]);
    char switches[256];
    const int threads = what->strategy[k] == TESS_STUDY_SERIAL ? 1 : what->opts.threads;
    column(out, "operation", "operation", "%s",
           tess_bench_gcf_operation_name[what->degrid]);
    column(out, "backend", NULL, "%s", tess_bench_gcf_backend_name[what->opts.backend]);
    column(out, "strategy", NULL, "%s", strategy);
    column(out, "threads", NULL, "%d", threads);
    tess_bench_gcf_switches(what, switches, sizeof switches);
    column(out, "switches", NULL, "%s", switches);
    column(out, NULL, "strategy", "%s, %d%s%s", strategy, threads,
           switches[0] ? ": " : "", switches);
    column(out, "order", "order", "%s", tess_bench_gcf_order_name[what->order]);
    column(out, "visibilities", "visibilities", "%lld", (long long)of->num_points);
    column(out, "size", "grid", "%lld", (long long)what->size);
    column(out, "gcf", "GCF", "%d", what->support);
    column(out, "planes", NULL, "%d", what->num_planes);
    column(out, "oversampling", NULL, "%d", what->oversampling);
    column(out, "polarisations", "pols", "%d", what->num_pol);
    column(out, "precision", "precision", "%s",
           tess_bench_gcf_precision_name[what->is_double]);
}

/* Prints a reading; nothing if it is not available. */
static void reading(printer *out, const char *name, double value)
{
    char text[32] = "";
    if (isfinite(value)) snprintf(text, sizeof text, "%.5g", value);
    column(out, name, NULL, "%s", text);
}

static void result_columns(printer *out, const tess_bench_gcf_result *of, bool merge,
                           double ratio)
{
    column(out, "merged", merge ? "merged" : NULL, "%lld", (long long)of->merged);
    column(out, "table_mib", NULL, "%.3f", (double)of->table_bytes / 1048576);
    column(out, "sort_s", NULL, "%.6g", of->sort_s);
    column(out, "seconds", NULL, "%.6g", of->seconds);
    column(out, "copy_s", NULL, "%.6g", of->copy_s);
    column(out, "cells_s", NULL, "%.6g", of->cells_s);
    column(out, "cells", NULL, "%.6g", of->point_cells);
    column(out, "study_cells", NULL, "%.6g", of->study_cells);
    column(out, "gflops", "GFLOP/s", out->markdown ? "%.1f" : "%.5g", of->gflops);
    column(out, "all_gflops", merge ? "of all" : NULL, out->markdown ? "%.1f" : "%.5g",
           of->all_gflops);
    column(out, "ratio", "ratio", out->markdown ? "%.2f" : "%.4g", ratio);
    column(out, "busy", NULL, "%.3f", of->busy_share);
    reading(out, "joules", of->joules);
    reading(out, "watts", of->watts);
    reading(out, "mhz", of->mhz);
    reading(out, "celsius", of->celsius);
    if (of->box.lines > 0)
        column(out, "box", NULL, "%lldx%lld", (long long)of->box.lines,
               (long long)of->box.cells);
    else
        column(out, "box", NULL, "%s", "");
    reading(out, "saved_s", of->saved_s);
    column(out, "atomic_points", NULL, "%lld", (long long)of->points_atomic);
    column(out, "rank", "rank", out->markdown ? "%.2f" : "%.3f", of->mean_rank);
    column(out, "difference", "difference", out->markdown ? "%.1e" : "%.2e",
           of->difference);
}

void tess_bench_gcf_print(const tess_bench_gcf_case *what, int k,
                          const tess_bench_gcf_result *found, bool markdown, bool head)
{
    printer out = {.markdown = markdown, .head = head};
    case_columns(&out, what, k, &found[k]);
    result_columns(&out, &found[k], what->opts.merge,
                   found[k].gflops / found[0].gflops);
    column(&out, "version", NULL, "%s", tess_version_full());
    puts(markdown ? " |" : "");
    for (int c = 0; head && markdown && c < out.columns; ++c)
        fputs("|---", stdout);
    if (head && markdown) puts("|");
}
