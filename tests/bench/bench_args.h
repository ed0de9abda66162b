/** @file bench_args.h  (tests)
 *  The command line that the benchmarks of the gridder share.
 */
#ifndef TESS_BENCH_ARGS_H
#define TESS_BENCH_ARGS_H

#include "bench_set.h"

typedef struct bench_args {
    const char *file; /**< of a workload; NULL: tracks are made up */
    const char *only; /**< step to run; NULL: all */
    int64_t times;    /**< integrations to make up */
    double accuracy;
    int threads, repeat;
    bool psf;
} bench_args;

/** Values that are not on the command line stay as they are in `args`. Ends the program
 *  with a line on stderr when the command line is wrong. */
void bench_args_parse(const char *doc, int argc, char **argv, bench_args *args);

/** The set that they ask for; false, with a line on stderr, when there is none. */
bool bench_args_open(const bench_args *args, bench_set *set);

#endif
