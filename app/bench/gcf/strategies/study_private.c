/* private: threads share the points, and each has a whole grid of its own, which are
 * added up at the end: what a gridder's loop with a reduction clause does, and the
 * baseline of the tiled studies on Xeon and Xeon Phi. Memory and the sums at the end
 * grow with threads × grid. */
#include <string.h>

#include "study_plan.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_omp.h"
#include "tess_real.h"

/* Each thread sums a share of the cells over the grids of all. */
static void add_grids(const tess_gcf *gcf, const char *grids, int64_t count,
                      int64_t values, int64_t first, int64_t end, char *to)
{
    const size_t bytes = gcf_value_bytes(gcf);
    for (int64_t t = 0; t < count; ++t)
        tess_add_reals(gcf->layout.is_double, to + (size_t)first * bytes,
                       grids + (size_t)(t * values + first) * bytes, 2 * (end - first));
}

/* Work that the threads have done. */
typedef struct work_done {
    int64_t left_out, point_cells;
    double busy_s; /* summed over threads */
} work_done;

/* Grids all points, by each thread to a grid of its own, and adds those to `cells`. */
static work_done grid_by_threads(const tess_gcf_plan *plan,
                                 const tess_gcf_points *points,
                                 const tess_gcf_cells *cells, char *grids)
{
    const int64_t threads = plan->opts.threads;
    const int64_t values = cells->nu * cells->nv * points->num_pol;
    const size_t grid_bytes = (size_t)values * gcf_value_bytes(plan->gcf);
    gcf_function *loop = study_table_best()->grid_plain[gcf_precision(plan)];
    int64_t left_out = 0, point_cells = 0;
    double busy = 0;
#pragma omp parallel num_threads(plan->opts.threads) \
    reduction(+ : left_out, point_cells, busy)
    {
        const int64_t thread = tess_omp_thread();
        const tess_gcf_cells own = {.nu = cells->nu,
                                    .nv = cells->nv,
                                    .data = grids + (size_t)thread * grid_bytes};
        tess_gcf_report mine = {0};
        double begin = tess_time_now();
        /* each thread that runs clears one grid: its pages then lie near to it */
#pragma omp for schedule(static, 1) nowait
        for (int64_t t = 0; t < threads; ++t)
            memset(grids + (size_t)t * grid_bytes, 0, grid_bytes);
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t k = 0; k < points->count; k += GCF_BATCH)
            gcf_run_batch(plan, points, &own, k, false, loop, &mine);
        busy += tess_time_now() - begin;
        left_out += mine.left_out;
        point_cells += mine.point_cells;
#pragma omp barrier
        begin = tess_time_now();
#pragma omp for schedule(static, 1) nowait
        for (int64_t t = 0; t < threads; ++t)
            add_grids(plan->gcf, grids, threads, values, values * t / threads,
                      values * (t + 1) / threads, cells->data);
        busy += tess_time_now() - begin;
    }
    return (work_done){left_out, point_cells, busy};
}

tess_status study_run_private(const tess_gcf_plan *plan, const tess_gcf_points *points,
                              const tess_gcf_cells *cells, bool degrid,
                              tess_gcf_report *report)
{
    tess_status status = TESS_OK;
    const int64_t threads = plan->opts.threads;
    const int64_t values = cells->nu * cells->nv * points->num_pol;
    const size_t grid_bytes = (size_t)values * gcf_value_bytes(plan->gcf);
    char *grids = NULL;
    /* degridding adds to no cell that threads have in common */
    if (degrid) return study_run_atomic(plan, points, cells, degrid, report);
    if ((double)threads * (double)grid_bytes < (double)tess_mem_node_limit_bytes())
        grids = tess_alloc(threads, grid_bytes);
    if (!grids)
        TESS_FAIL(TESS_ERR_ALLOC, "'private': no memory for %lld grids of %.3g GB",
                  (long long)threads, 1e-9 * (double)grid_bytes);
    const double start = tess_time_now();
    const work_done done = grid_by_threads(plan, points, cells, grids);
    const double wall = tess_time_now() - start;
    report->busy_share = wall > 0 ? done.busy_s / (wall * (double)threads) : 1;
    report->left_out = done.left_out;
    report->point_cells = done.point_cells;
cleanup:
    tess_free(grids);
    return status;
}
