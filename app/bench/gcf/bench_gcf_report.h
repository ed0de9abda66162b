/** @file bench_gcf_report.h  (private to app/bench/)
 *  Writes what a study has measured: tables as CSV, a report, and plots.
 */
#ifndef TESS_BENCH_GCF_REPORT_H
#define TESS_BENCH_GCF_REPORT_H

#include "bench_gcf_rows.h"

/** Write NAME.csv of a table, report.md, or the plots. TESS_ERR_IO. Local. */
tess_status tess_bench_gcf_write_csv(const tess_bench_gcf_study *study, int table);
tess_status tess_bench_gcf_write_report(const tess_bench_gcf_study *study);
tess_status tess_bench_gcf_plot(const char *folder);

/** The text of bench_gcf_plots.py. */
extern const char tess_bench_gcf_plots[];

#endif
