/* Plans for a GPU in a build without one. */
#include "gcf_cuda.h"

bool gcf_cuda_has(tess_gcf_strategy strategy, bool degrid)
{
    (void)strategy;
    (void)degrid;
    return false;
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

bool tess_gcf_lock(void *memory, int64_t bytes)
{
    (void)memory;
    (void)bytes;
    return false;
}

void tess_gcf_unlock(void *memory)
{
    (void)memory;
}

tess_status gcf_cuda_run(const gcf_cuda *with, const tess_gcf_points *points,
                         const tess_gcf_cells *cells, bool degrid,
                         tess_gcf_report *report)
{
    (void)with;
    (void)points;
    (void)cells;
    (void)degrid;
    (void)report;
    return TESS_ERR_INTERNAL;
}
