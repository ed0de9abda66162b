/** @file gcf_place.h  (private to grid/gcf/)
 *  Where a point lies on the grid: the cells of its footprint, and which taps of the
 *  table belong to them.
 */
#ifndef TESS_GCF_PLACE_H
#define TESS_GCF_PLACE_H

#include "tess_gcf_grid.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A point on its cells. */
typedef struct gcf_place {
    int64_t point; /**< index in the points */
    int32_t u, v;  /**< first cell of the footprint */
    uint16_t plane;
    uint8_t offset_u, offset_v; /**< of the table read: below half_offsets */
    bool flip_u, flip_v;        /**< it is read backwards */
    bool conjugate;             /**< w < 0 */
} gcf_place;

/** Place a point. The result is false if the footprint leaves the grid. */
bool gcf_place_point(const tess_gcf *gcf, const tess_gcf_points *points, int64_t point,
                     int64_t nu, int64_t nv, gcf_place *place);

#ifdef __cplusplus
}
#endif
#endif
