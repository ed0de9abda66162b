/* The strategies for comparison on a GPU, in a build without one. */
#include "study_plan.h"

const struct gcf_device_method *study_device_method(tess_study_strategy strategy,
                                                    bool degrid)
{
    (void)strategy;
    (void)degrid;
    return NULL;
}

const struct gcf_device_method *study_device_probed(bool degrid)
{
    (void)degrid;
    return NULL;
}

tess_status study_device_run(const tess_gcf_plan *core, const tess_gcf_points *points,
                             const tess_gcf_cells *cells, bool degrid,
                             tess_gcf_report *report)
{
    (void)core;
    (void)points;
    (void)cells;
    (void)degrid;
    (void)report;
    return TESS_ERR_INTERNAL;
}

bool tess_study_lock(void *memory, int64_t bytes)
{
    (void)memory;
    (void)bytes;
    return false;
}

void tess_study_unlock(void *memory)
{
    (void)memory;
}
