/* Lists of numbers that benchmarks sweep: how they are combined. */
#include "tess_bench_list.h"

#include <stdlib.h>

#include "tess_select.h"

void tess_bench_combination(const tess_bench_list *const *list, int num_lists, int k,
                            double *value)
{
    for (int i = num_lists - 1; i >= 0; --i) {
        value[i] = list[i]->value[k % list[i]->count];
        k /= list[i]->count;
    }
}

double tess_bench_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, tess_select_order);
    return values[count / 2];
}
