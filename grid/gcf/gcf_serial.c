/* serial: the loop of a program that nobody has made faster: ours is timed against it.
 * With taps from a cube it is the one of NAG's study of tiles for OSKAR
 * (github.com/OxfordSKA/GPU-gridding, oskar_grid_wproj.cpp), less its sum of taps, and
 * the choice of conjugates made once a point. */
#include <string.h>

#include "gcf_grid.h"

void gcf_run_batch(const tess_gcf_plan *plan, const tess_gcf_points *points,
                   const tess_gcf_cells *cells, int64_t first, bool degrid,
                   gcf_function *function, tess_gcf_report *report)
{
    const tess_gcf *gcf = plan->gcf;
    const size_t bytes = gcf_value_bytes(gcf) * (size_t)points->num_pol;
    const int64_t end =
        first + GCF_BATCH < points->count ? first + GCF_BATCH : points->count;
    gcf_place place[GCF_BATCH];
    gcf_job job = {.gcf = gcf,
                   .place = place,
                   .taps = gcf_taps_of(plan),
                   .cube = plan->cube,
                   .num_pol = points->num_pol,
                   .vis = points->vis,
                   .cells = cells->data,
                   .stride = cells->nv,
                   .pol_stride = cells->nu * cells->nv};
    for (int64_t k = first; k < end; ++k)
        if (gcf_place_point(gcf, points, k, cells->nu, cells->nv, &place[job.count])) {
            const int64_t support = gcf->plane[place[job.count++].plane].support;
            report->point_cells += support * support;
        } else {
            ++report->left_out;
            if (degrid) memset((char *)points->vis + (size_t)k * bytes, 0, bytes);
        }
    function(&job);
}

tess_status gcf_run_in_order(const tess_gcf_plan *plan, const tess_gcf_points *points,
                             const tess_gcf_cells *cells, bool degrid,
                             gcf_function *function, tess_gcf_report *report)
{
    for (int64_t k = 0; k < points->count; k += GCF_BATCH)
        gcf_run_batch(plan, points, cells, k, degrid, function, report);
    report->busy_share = 1;
    return TESS_OK;
}

tess_status gcf_run_serial(const tess_gcf_plan *plan, const tess_gcf_points *points,
                           const tess_gcf_cells *cells, bool degrid,
                           tess_gcf_report *report)
{
    const gcf_table *table = gcf_table_best();
    const int precision = gcf_precision(plan);
    return gcf_run_in_order(plan, points, cells, degrid,
                            degrid       ? table->degrid_plain[precision]
                            : plan->cube ? table->grid_cube[plan->gcf->layout.is_double]
                                         : table->grid_plain[precision],
                            report);
}
