/** @file bench_gcf_options.h
 *  Parses the options of `tessera bench gcf`.
 */
#ifndef TESS_BENCH_GCF_OPTIONS_H
#define TESS_BENCH_GCF_OPTIONS_H

#include <argp.h>

#include "tess_bench_gcf_args.h"

/** The options. The parser's input is a tess_bench_gcf_args. */
extern const struct argp tess_bench_gcf_argp;

/** The case that has one value of each list. The values are in this order: operation,
 *  order, visibilities, size, polarisations, precision, width. The caller fills
 *  `strategy` and sets their number. */
void tess_bench_gcf_case_of(const tess_bench_gcf_args *args, const double *value,
                            const tess_gcf_strategy *strategy,
                            tess_bench_gcf_case *what);

#endif
