/** @file tess_bench_gcf_print.h
 *  Prints the table of `tessera bench gcf`.
 */
#ifndef TESS_BENCH_GCF_PRINT_H
#define TESS_BENCH_GCF_PRINT_H

#include "tess_bench_gcf.h"

/** Print the result of strategy number `k` of a case as a line of the table on standard
 *  output or, with `head`, the names of the table's columns. */
void tess_bench_gcf_print(const tess_bench_gcf_case *what, int k,
                          const tess_bench_gcf_result *found, bool markdown, bool head);

#endif
