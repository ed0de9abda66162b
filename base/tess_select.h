/** @file tess_select.h
 *  Values of a given rank, without sorting all of them; values in order, each once.
 */
#ifndef TESS_SELECT_H
#define TESS_SELECT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The k-th smallest of value[count], counted from 0; puts those below before it and
 *  those above behind it (C. A. R. Hoare, 1961). No value is NaN, and k < count.
 *  Local. */
double tess_select_smallest(double *value, int64_t count, int64_t k);

/** The order of two doubles, for qsort() and bsearch(). Local. */
int tess_select_order(const void *a, const void *b);

/** Sort value[count], and keep the first of those that are not more than `apart` above
 *  the last one kept; returns how many are left. Local. */
int64_t tess_select_distinct(double *value, int64_t count, double apart);

#ifdef __cplusplus
}
#endif
#endif
