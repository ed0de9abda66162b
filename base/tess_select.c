/* Selection by Hoare's partitions. */
#include "tess_select.h"

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
