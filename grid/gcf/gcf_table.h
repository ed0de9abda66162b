/** @file gcf_table.h  (private to grid/gcf/)
 *  What the table, its filling and the strategies share.
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

/** First complex value of the taps of a pair of offsets below half_offsets. */
static inline int64_t gcf_table_offset(const tess_gcf *gcf, int plane, int offset_u,
                                       int offset_v)
{
    const tess_gcf_plane *of = &gcf->plane[plane];
    return of->offset + ((int64_t)offset_u * gcf->half_offsets + offset_v) *
                            of->support * of->support;
}

static inline size_t gcf_value_bytes(const tess_gcf *gcf)
{
    return gcf->layout.is_double ? 2 * sizeof(double) : 2 * sizeof(float);
}

#ifdef __cplusplus
}
#endif
#endif
