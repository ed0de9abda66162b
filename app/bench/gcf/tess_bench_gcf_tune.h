/** @file tess_bench_gcf_tune.h
 *  `tessera bench gcf --tune`: which strategy `--w projection` is to take.
 */
#ifndef TESS_BENCH_GCF_TUNE_H
#define TESS_BENCH_GCF_TUNE_H

#include "tess_bench_gcf_args.h"

/** Time every strategy that the backend has for images or predictions, on a GPU in all
 *  shapes of its blocks, on tracks of kernels of several widths, in both precisions;
 *  keep the fastest of each class (tess_gcf_tuning_write()) and print a line for each
 *  that was timed. Errors of timing and of writing. Local. */
tess_status tess_bench_gcf_tune(const tess_bench_gcf_args *args);

#endif
