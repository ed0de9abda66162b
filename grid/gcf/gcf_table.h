/** @file gcf_table.h  (private to grid/gcf/)
 *  What the table, its filling and its cache share.
 */
#ifndef TESS_GCF_PRIVATE_H
#define TESS_GCF_PRIVATE_H

#include <stdlib.h>

#include "tess_gcf.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Errors of the layout, TESS_ERR_USAGE. */
tess_status gcf_check_layout(const tess_gcf_layout *layout);

/** Error of a plane's support, TESS_ERR_USAGE. */
tess_status gcf_check_support(int support);

/** A table with w of its planes, but without supports and data. */
tess_status gcf_begin(const tess_gcf_layout *layout, tess_gcf **gcf);

/** Allocate the data, once all planes have a support. */
tess_status gcf_reserve(tess_gcf *gcf);

/** Taps of a plane from a quarter of it: quarter[x][y] for 0 ≤ x, y ≤ S·Q/2, complex,
 * in steps of 1/Q cell; of an uneven one for −S·Q/2 ≤ x, y ≤ S·Q/2. */
void gcf_fill_plane(tess_gcf *gcf, int plane, const double *quarter);

/** TESS_ERR_USAGE if an option of w-kernels is outside of its limits. */
tess_status gcf_check_opts(const tess_gcf_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
