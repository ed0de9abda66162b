/** @file bench_gcf_study.h  (private to app/)
 *  The tables of the field's studies of gridding with tabulated convolution functions,
 *  measured anew: `tessera bench gcf --study`.
 */
#ifndef TESS_BENCH_GCF_STUDY_H
#define TESS_BENCH_GCF_STUDY_H

#include "bench_gcf_options.h"

/** One line of a table. */
typedef struct tess_bench_gcf_row {
    int table, number;   /**< of the table, and of the case in it */
    const char *variant; /**< what is unlike the other cases, "" */
    bool whole;          /**< of a set: nothing was left out */
    tess_bench_gcf_case what;
    tess_gcf_strategy strategy;
    tess_bench_gcf_result found;
    double joules; /**< of one run; NAN: cannot be read */
} tess_bench_gcf_row;

/** Everything that was measured. */
typedef struct tess_bench_gcf_study {
    const tess_bench_gcf_args *args;
    tess_bench_gcf_row *row;
    int num_rows;
    char (*note)[200]; /**< what was left out, and why */
    int num_notes;
    double case_s;   /**< the longest that a case may take, of weight 1 */
    double energy_s; /**< as of tess_bench_gcf_case, for each line */
} tess_bench_gcf_study;

/** Name ("size") and title of a table; NULL past the end. */
const char *tess_bench_gcf_table_name(int table);
const char *tess_bench_gcf_table_title(int table);

/** Measure the tables of args->study, and write to the folder args->out, which is made:
 *  a CSV file for each, report.md, and plots where Python has matplotlib. TESS_ERR_IO,
 *  and errors as of tess_bench_gcf_run(). Local. */
tess_status tess_bench_gcf_study_run(const tess_bench_gcf_args *args);

/* ---- the files: bench_gcf_report.c ---- */

/** Seconds of all stages: placing, sorting, gridding and the grid's copies. */
double tess_bench_gcf_all_s(const tess_bench_gcf_row *row);

/** NAME.csv of a table, report.md, and the plots. TESS_ERR_IO. Local. */
tess_status tess_bench_gcf_write_csv(const tess_bench_gcf_study *study, int table);
tess_status tess_bench_gcf_write_report(const tess_bench_gcf_study *study);
tess_status tess_bench_gcf_plot(const char *folder);

/** The text of bench_gcf_plots.py. */
extern const char tess_bench_gcf_plots[];

/* ---- published figures: bench_gcf_published.c ---- */

/** A figure that somebody has published. */
typedef struct tess_bench_gcf_published {
    const char *table;                          /**< that it belongs to */
    int order;                                  /**< of a case, −1: any, or … */
    int operation, is_double, support, num_pol; /**< … of its lines, −1: any … */
    int points, size;                           /**< … and asked for, −1: any */
    double value;
    const char *unit; /**< "GFLOP/s", "ms", or "times" */
    const char *what, *source;
} tess_bench_gcf_published;

/** By number; NULL past the end. */
const tess_bench_gcf_published *tess_bench_gcf_published_at(int k);

/** The first one for a line of a table; NULL: there is none. */
const tess_bench_gcf_published *
tess_bench_gcf_published_for(const tess_bench_gcf_row *row);

#endif
