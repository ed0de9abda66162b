/* Runs a loop over all points, batch after batch, by one thread or several. */
#include "gcf_batch.h"

#include <string.h>

#include "tess_log.h"

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

tess_status gcf_run_shared(const tess_gcf_plan *plan, const tess_gcf_points *points,
                           const tess_gcf_cells *cells, bool degrid,
                           gcf_function *function, tess_gcf_report *report)
{
    int64_t left_out = 0, point_cells = 0;
    double busy = 0;
    const double start = tess_time_now();
#pragma omp parallel num_threads(plan->opts.threads) reduction(+ : left_out, point_cells, busy)
    {
        tess_gcf_report mine = {0};
        const double begin = tess_time_now();
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t k = 0; k < points->count; k += GCF_BATCH)
            gcf_run_batch(plan, points, cells, k, degrid, function, &mine);
        busy += tess_time_now() - begin;
        left_out += mine.left_out;
        point_cells += mine.point_cells;
    }
    const double wall = tess_time_now() - start;
    report->busy_share = wall > 0 ? busy / (wall * plan->opts.threads) : 1;
    report->left_out = left_out;
    report->point_cells = point_cells;
    return TESS_OK;
}
