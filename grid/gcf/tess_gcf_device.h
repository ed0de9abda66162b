/** @file tess_gcf_device.h
 *  A plan's strategy on a GPU, for points and cells that are in device memory.
 */
#ifndef TESS_GCF_DEVICE_H
#define TESS_GCF_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_gcf_grid.h"
#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Tables and factors of a plan on a GPU. */
typedef struct gcf_on_device gcf_on_device;

/** Those of a plan, which owns them; NULL: it is one for the CPU. Local. */
const gcf_on_device *tess_gcf_plan_device(const tess_gcf_plan *plan);

/** Points in device memory. A grid may consist of parts, one below the other: a point
 *  then lies on the lines of its part alone. */
typedef struct gcf_device_points {
    int64_t count;       /**< at most INT32_MAX */
    const double *u, *v; /**< device [count] grid coordinates [cells], u from the first
                              line of the part */
    const double *w;     /**< device [count] wavelengths; NULL: all 0 */
    const int32_t *line; /**< device [count] first line of the part; NULL: 0 */
    void *vis;           /**< device complex [count][num_pol] */
    int num_pol;         /**< 1, 2 or 4 */
    bool planar;         /**< vis are [num_pol][count] */
} gcf_device_points;

typedef struct gcf_device_cells {
    int64_t part_lines; /**< that footprints keep within */
    int64_t nu;         /**< lines of all parts, up to the last that points are on */
    int64_t nv, pol_stride; /**< complex values of a line, and from pol to pol */
    void *data;             /**< device */
} gcf_device_cells;

/** Device memory that a call takes for each point, about; cells and points not counted.
 */
int64_t gcf_device_point_bytes(const gcf_on_device *with, int num_pol, bool degrid);

/** (De)grid what is on the device. TESS_ERR_USAGE, TESS_ERR_ALLOC, TESS_ERR_RESOURCE.
 *  Waits. */
tess_status gcf_device_run_there(const gcf_on_device *with,
                                 const gcf_device_points *points,
                                 const gcf_device_cells *cells, bool degrid,
                                 tess_gcf_report *report);

#ifdef __cplusplus
}
#endif
#endif
