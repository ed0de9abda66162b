/** @file tess_bench_list.h
 *  Lists of numbers that benchmarks sweep, and medians of what they time.
 */
#ifndef TESS_BENCH_LIST_H
#define TESS_BENCH_LIST_H

enum { TESS_BENCH_MOST = 32 };

typedef struct tess_bench_list {
    double value[TESS_BENCH_MOST];
    int count;
} tess_bench_list;

/** The k-th combination of lists, the last one changing fastest: value[i] of list i. */
void tess_bench_combination(const tess_bench_list *const *list, int num_lists, int k,
                            double *value);

/** Upper median; sorts the values. */
double tess_bench_median(double *values, int count);

#endif
