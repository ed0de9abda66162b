/** @file tess_bench_gcf_args.h
 *  The values of the options of `tessera bench gcf`, and what they ask for.
 */
#ifndef TESS_BENCH_GCF_ARGS_H
#define TESS_BENCH_GCF_ARGS_H

#include "tess_bench_gcf.h"
#include "tess_bench_list.h"

/** The benchmark times every combination of the lists' values. A word of a list is kept
 *  as its index among the names of tess_bench_gcf_names.h. */
typedef struct tess_bench_gcf_args {
    tess_bench_list operation, strategy, gcf, vis, size, pol, precision, order;
    int repeat;
    int planes, oversampling;
    double field_rad, energy_s;
    bool markdown, tune, formula, normalise;
    double shrink;
    struct {
        bool operation, gcf, vis, size;
    } given; /**< options that the user gave: their defaults depend on other options */
    struct {
        tess_bench_list tables; /**< --study: indices of the tables; none: no study */
        const char *out;        /**< --out */
        double within_min;      /**< --within */
    } study;
    bool overwrite;
    int extra;             /**< as in tess_bench_gcf_case */
    const char *intensity; /**< --intensity, or NULL */
    tess_study_opts opts;  /**< threads 0: none given; the strategy is not set */
} tess_bench_gcf_args;

/** The case that has one value of each list. The values are in this order: operation,
 *  order, visibilities, size, polarisations, precision, width. The caller fills
 *  `strategy` and sets their number. */
void tess_bench_gcf_case_of(const tess_bench_gcf_args *args, const double *value,
                            const tess_study_strategy *strategy,
                            tess_bench_gcf_case *what);

/** Print the result of strategy number `k` of a case as a line of the table on standard
 *  output or, with `head`, the names of the table's columns. */
void tess_bench_gcf_print(const tess_bench_gcf_case *what, int k,
                          const tess_bench_gcf_result *found, bool markdown, bool head);

/** Measure the tables that the options name, and write a CSV file for each, report.md,
 *  and, if Python has matplotlib, plots to the folder of --out, which is made.
 *  TESS_ERR_IO, and errors as of tess_bench_gcf_run(). Local. */
tess_status tess_bench_gcf_study_run(const tess_bench_gcf_args *args);

/** Time every strategy that the backend has for images or predictions, on a GPU in all
 *  shapes of its blocks, on tracks of kernels of several widths, in both precisions;
 *  keep the fastest of each class (tess_gcf_tuning_write()) and print a line for each
 *  that was timed. Errors of timing and of writing. Local. */
tess_status tess_bench_gcf_tune(const tess_bench_gcf_args *args);

#endif
