/** @file tess_select.h
 *  Values of a given rank, without sorting all of them.
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

#ifdef __cplusplus
}
#endif
#endif
