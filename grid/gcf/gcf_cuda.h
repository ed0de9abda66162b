/** @file gcf_cuda.h  (private to grid/gcf/)
 *  The strategies on a GPU, as plans see them. Where the build has no GPU,
 *  gcf_cuda_absent.c refuses to begin.
 */
#ifndef TESS_GCF_CUDA_H
#define TESS_GCF_CUDA_H

#include "gcf_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The error to factor kernels to, so that what rounding on tensor cores adds keeps
 *  within the error asked for. */
double gcf_cuda_factor_error(const tess_gcf *gcf, double error);

/** Is there a strategy of this name for a GPU, in this direction? */
bool gcf_cuda_has(tess_gcf_strategy strategy, bool degrid);

/** Name of the device that was taken, of letters, digits and '-' alone; "" without. */
void gcf_cuda_device_name(char *name, int size);

/** Copy a plan's table (and its factors, if it has any) to the device, which is taken
 *  unless it was. TESS_ERR_USAGE for a strategy that is not there, TESS_ERR_ALLOC,
 *  TESS_ERR_RESOURCE without a device. End with gcf_cuda_destroy(); NULL is fine. */
tess_status gcf_cuda_create(const tess_gcf_plan *plan, gcf_cuda **made);
void gcf_cuda_destroy(gcf_cuda *made);

/** Points in device memory. A grid may consist of parts, one below the other: a point
 *  then lies on the lines of its part alone. */
typedef struct gcf_cuda_points {
    int64_t count;       /**< at most INT32_MAX */
    const double *u, *v; /**< device [count] grid coordinates [cells], u from the first
                              line of the part */
    const double *w;     /**< device [count] wavelengths; NULL: all 0 */
    const int32_t *line; /**< device [count] first line of the part; NULL: 0 */
    void *vis;           /**< device complex [count][num_pol] */
    int num_pol;         /**< 1, 2 or 4 */
} gcf_cuda_points;

typedef struct gcf_cuda_cells {
    int64_t part_lines; /**< that footprints keep within */
    int64_t nu;         /**< lines of all parts, up to the last that points are on */
    int64_t nv, pol_stride; /**< complex values of a line, and from pol to pol */
    void *data;             /**< device */
} gcf_cuda_cells;

/** Device memory that a call takes for each point, about; cells and points not counted.
 */
int64_t gcf_cuda_point_bytes(const gcf_cuda *with, int num_pol, bool degrid);

/** (De)grid what is on the device. TESS_ERR_USAGE, TESS_ERR_ALLOC, TESS_ERR_RESOURCE.
 *  Waits. */
tess_status gcf_cuda_run_there(const gcf_cuda *with, const gcf_cuda_points *points,
                               const gcf_cuda_cells *cells, bool degrid,
                               tess_gcf_report *report);

/** The same with host arrays: up, (de)gridded, down. Waits. */
tess_status gcf_cuda_run(const gcf_cuda *with, const tess_gcf_points *points,
                         const tess_gcf_cells *cells, bool degrid,
                         tess_gcf_report *report);

#ifdef __cplusplus
}
#endif
#endif
