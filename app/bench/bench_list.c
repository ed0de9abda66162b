/* Lists of numbers that benchmarks sweep: how they are combined. */
#include "tess_bench_list.h"

#include <stdlib.h>

void tess_bench_combination(const tess_bench_list *const *list, int num_lists, int k,
                            double *value)
{
    for (int i = num_lists - 1; i >= 0; --i) {
        value[i] = list[i]->value[k % list[i]->count];
        k /= list[i]->count;
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double tess_bench_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}
