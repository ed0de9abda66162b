/* Plans for a GPU in a build without one. */
#include "gcf_cuda.h"

const struct gcf_cuda_method *gcf_cuda_tiled(bool degrid)
{
    (void)degrid;
    return NULL;
}

const struct gcf_cuda_method *gcf_cuda_factored(bool degrid)
{
    return gcf_cuda_tiled(degrid);
}

double gcf_cuda_factor_error(const tess_gcf *gcf, double error)
{
    (void)gcf;
    return error;
}

void gcf_cuda_device_name(char *name, int size)
{
    if (size > 0) name[0] = '\0';
}

tess_status gcf_cuda_create(const tess_gcf_plan *plan, gcf_cuda **made)
{
    tess_status status = TESS_OK;
    (void)plan;
    (void)made;
    TESS_FAIL(TESS_ERR_RESOURCE, "gridding on a GPU: this tessera is built without");
cleanup:
    return status;
}

void gcf_cuda_destroy(gcf_cuda *made)
{
    (void)made;
}

tess_status gcf_cuda_run(const tess_gcf_plan *plan, const tess_gcf_points *points,
                         const tess_gcf_cells *cells, bool degrid,
                         tess_gcf_report *report)
{
    (void)plan;
    (void)points;
    (void)cells;
    (void)degrid;
    (void)report;
    return TESS_ERR_INTERNAL;
}
