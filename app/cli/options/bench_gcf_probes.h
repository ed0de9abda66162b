/** @file bench_gcf_probes.h  (private to app/cli/)
 *  Parses those options of `tessera bench gcf` that change how a strategy works
 *  (tess_study_probes), to compare with what studies have published.
 */
#ifndef TESS_BENCH_GCF_PROBES_H
#define TESS_BENCH_GCF_PROBES_H

#include <argp.h>

/** The options. The parser's input is a tess_bench_gcf_args. */
extern const struct argp tess_bench_gcf_probes_argp;

#endif
