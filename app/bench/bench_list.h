/** @file bench_list.h  (private to app/)
 *  Lists of numbers that benchmarks sweep, and medians of what they time.
 */
#ifndef TESS_BENCH_LIST_H
#define TESS_BENCH_LIST_H

#include "tess_status.h"

enum { TESS_BENCH_MOST = 32 };

typedef struct tess_bench_list {
    double value[TESS_BENCH_MOST];
    int count;
} tess_bench_list;

/** The words of a list, separated by commas; `parse` makes a number of each.
 *  TESS_ERR_USAGE for too many, and what `parse` fails with. */
tess_status tess_bench_list_parse(const char *text,
                                  tess_status (*parse)(const char *, double *),
                                  tess_bench_list *list);

/** The k-th combination of lists, the last one changing fastest: value[i] of list i. */
void tess_bench_combination(const tess_bench_list *const *list, int num_lists, int k,
                            double *value);

/** Upper median; sorts the values. */
double tess_bench_median(double *values, int count);

#endif
