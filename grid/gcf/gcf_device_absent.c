/* Refuses plans for a GPU in a build without one. */
#include "gcf_on_device.h"

const struct gcf_device_method *gcf_device_tiled(bool degrid)
{
    (void)degrid;
    return NULL;
}

const struct gcf_device_method *gcf_device_factored(bool degrid)
{
    return gcf_device_tiled(degrid);
}

double gcf_device_factor_error(const tess_gcf *gcf, double error)
{
    (void)gcf;
    return error;
}

void gcf_device_name(char *name, int size)
{
    if (size > 0) name[0] = '\0';
}

tess_status gcf_device_create(const tess_gcf_plan *plan, gcf_on_device **made)
{
    tess_status status = TESS_OK;
    (void)plan;
    (void)made;
    TESS_FAIL(TESS_ERR_RESOURCE, "gridding on a GPU: this tessera is built without");
cleanup:
    return status;
}

void gcf_device_destroy(gcf_on_device *made)
{
    (void)made;
}

tess_status gcf_device_run(const tess_gcf_plan *plan, const tess_gcf_points *points,
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
