/** @file bench_gcf_options.h  (private to app/cli/)
 *  Parses the options of `tessera bench gcf`.
 */
#ifndef TESS_BENCH_GCF_OPTIONS_H
#define TESS_BENCH_GCF_OPTIONS_H

#include <argp.h>

#include "tess_bench_gcf_args.h"

/** The options. The parser's input is a tess_bench_gcf_args. */
extern const struct argp tess_bench_gcf_argp;

/** Those that change how a strategy works (tess_study_probes), to compare with what
 *  studies have published. The input is the same. */
extern const struct argp tess_bench_gcf_probes_argp;

#endif
