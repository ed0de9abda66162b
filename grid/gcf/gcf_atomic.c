/* atomic: points shared by threads that add to the grid atomically, as a gridder's loop
 * is made parallel first: the plain GPU version that Romein 2012
 * (doi:10.1145/2304576.2304620) starts from and replaces. */
#include "gcf_grid.h"
#include "tess_log.h"

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

tess_status gcf_run_atomic(const tess_gcf_plan *plan, const tess_gcf_points *points,
                           const tess_gcf_cells *cells, bool degrid,
                           tess_gcf_report *report)
{
    const gcf_table *table = gcf_table_best();
    const int precision = gcf_precision(plan);
    const bool plain = plan->opts.probes.atomics == TESS_GCF_PLAIN;
    return gcf_run_shared(plan, points, cells, degrid,
                          degrid  ? table->degrid_plain[precision]
                          : plain ? table->grid_plain[precision]
                                  : table->grid_atomic[precision],
                          report);
}
