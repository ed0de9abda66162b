/** @file bench_gcf_rows.h  (private to app/bench/)
 *  What `tessera bench gcf --study` has measured so far.
 */
#ifndef TESS_BENCH_GCF_ROWS_H
#define TESS_BENCH_GCF_ROWS_H

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

#endif
