/* Finds values of a given rank by Hoare's partitions, and distinct values. */
#include "tess_select.h"

#include <stdlib.h>

static void swap(double *a, double *b)
{
    const double kept = *a;
    *a = *b;
    *b = kept;
}

double tess_select_smallest(double *value, int64_t count, int64_t k)
{
    int64_t low = 0, high = count - 1;
    while (low < high) {
        const double pivot = value[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (value[i] < pivot)
                ++i;
            while (value[j] > pivot)
                --j;
            if (i <= j) swap(&value[i++], &value[j--]);
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            break;
    }
    return value[k];
}

int tess_select_order(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int64_t tess_select_distinct(double *value, int64_t count, double apart)
{
    int64_t distinct = 0;
    qsort(value, (size_t)count, sizeof *value, tess_select_order);
    for (int64_t k = 0; k < count; ++k)
        if (distinct == 0 || value[k] - value[distinct - 1] > apart)
            value[distinct++] = value[k];
    return distinct;
}
