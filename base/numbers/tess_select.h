/** @file tess_select.h
 *  Finds values of a given rank without sorting all values, and the distinct values of
 *  a list.
 */
#ifndef TESS_SELECT_H
#define TESS_SELECT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The k-th smallest of value[count], counted from 0. Smaller values are moved before
 * it, and larger ones behind it (C. A. R. Hoare, 1961, CACM 4, 321). No value may be
 * NaN, and k < count. Local. */
double tess_select_smallest(double *value, int64_t count, int64_t k);

/** Compares two doubles, for qsort() and bsearch(). Local. */
int tess_select_order(const void *a, const void *b);

/** Sort value[count]. Of values that are at most `apart` above the last one that was
 * kept, keep none. Returns the number of values that are left. Local. */
int64_t tess_select_distinct(double *value, int64_t count, double apart);

#ifdef __cplusplus
}
#endif
#endif
