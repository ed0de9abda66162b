/** @file bench_gcf_report.h  (private to app/bench/)
 *  What `tessera bench gcf --study` has measured so far, and writes: tables as CSV, a
 *  report, and plots.
 */
#ifndef TESS_BENCH_GCF_REPORT_H
#define TESS_BENCH_GCF_REPORT_H

#include "tess_bench_gcf_args.h"

/** One line of a table. */
typedef struct tess_bench_gcf_row {
    int table, number;   /**< of the table, and of the case in it */
    const char *variant; /**< how the case differs from the usual way, or "" */
    bool whole;          /**< of a data set: all its visibilities were gridded */
    tess_bench_gcf_case what;
    tess_study_strategy strategy;
    tess_bench_gcf_result found;
    double joules; /**< of one run; NAN: there is no meter */
} tess_bench_gcf_row;

/** All lines. */
typedef struct tess_bench_gcf_study {
    const tess_bench_gcf_args *args;
    tess_bench_gcf_row *row;
    int num_rows;
    char (*note)[200]; /**< which cases were left out, and why */
    int num_notes;
    double case_s;   /**< the longest time that a case of weight 1 may take */
    double energy_s; /**< as in tess_bench_gcf_case, for each line */
} tess_bench_gcf_study;

/* ---- bench_gcf_published.c: figures that studies have published ---- */

/** A published figure. */
typedef struct tess_bench_gcf_published {
    const char *table;                          /**< the name of its table */
    int order;                                  /**< of the case, −1: any, or … */
    int operation, is_double, support, num_pol; /**< … of its lines, −1: any … */
    int points, size;                           /**< … and asked for, −1: any */
    double value;
    const char *unit; /**< "GFLOP/s", "ms", or "times" */
    const char *what, *source;
} tess_bench_gcf_published;

/** The figure of this number; NULL past the end. */
const tess_bench_gcf_published *tess_bench_gcf_published_at(int k);

/** The first figure that belongs to a line of a table, or NULL. */
const tess_bench_gcf_published *
tess_bench_gcf_published_for(const tess_bench_gcf_row *row);

/* ---- bench_gcf_report.c ---- */

/** Write NAME.csv of a table, report.md, or the plots. TESS_ERR_IO. Local. */
tess_status tess_bench_gcf_write_csv(const tess_bench_gcf_study *study, int table);
tess_status tess_bench_gcf_write_report(const tess_bench_gcf_study *study);
tess_status tess_bench_gcf_plot(const char *folder);

/** The text of bench_gcf_plots.py. */
extern const char tess_bench_gcf_plots[];

#endif
