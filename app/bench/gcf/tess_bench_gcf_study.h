/** @file tess_bench_gcf_study.h
 *  `tessera bench gcf --study`: measures again what studies of gridding with tables of
 *  convolution functions have published.
 */
#ifndef TESS_BENCH_GCF_STUDY_H
#define TESS_BENCH_GCF_STUDY_H

#include "tess_bench_gcf_args.h"

/** Measure the tables that the options name, and write a CSV file for each, report.md,
 *  and, if Python has matplotlib, plots to the folder of --out, which is made.
 *  TESS_ERR_IO, and errors as of tess_bench_gcf_run(). Local. */
tess_status tess_bench_gcf_study_run(const tess_bench_gcf_args *args);

#endif
