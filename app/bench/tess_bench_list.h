/** @file tess_bench_list.h
 *  Lists of numbers that benchmarks sweep, and medians of what they time.
 */
#ifndef TESS_BENCH_LIST_H
#define TESS_BENCH_LIST_H

#include "option_rules.h"
#include "tess_status.h"

enum { TESS_BENCH_MOST = 32 };

typedef struct tess_bench_list {
    double value[TESS_BENCH_MOST];
    int count;
} tess_bench_list;

/** Rules of options (option_rules.h) whose value is a list, separated by commas, at
 *  most TESS_BENCH_MOST items long: whole numbers, numbers, or words, which become
 * their indices. TESS_ERR_USAGE. */
tess_status tess_bench_take_integers(const tess_option_rule *rule, const char *text,
                                     void *list);
tess_status tess_bench_take_numbers(const tess_option_rule *rule, const char *text,
                                    void *list);
tess_status tess_bench_take_words(const tess_option_rule *rule, const char *text,
                                  void *list);

/** The k-th combination of lists, the last one changing fastest: value[i] of list i. */
void tess_bench_combination(const tess_bench_list *const *list, int num_lists, int k,
                            double *value);

/** Upper median; sorts the values. */
double tess_bench_median(double *values, int count);

#endif
