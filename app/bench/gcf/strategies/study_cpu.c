/* The strategies for comparison on a CPU that do one point after another. */
#include "study_plan.h"
#include "tess_isa.h"
#include "tess_log.h"

const study_table *study_table_best(void)
{
    static const study_table *const table[TESS_NUM_ISA] = TESS_ISA_TABLES(study_table);
    return table[tess_isa_best()];
}

/* Runs a loop over all points, by threads that share the batches. To grid, the loop
 * adds to cells atomically if there is more than one thread. */
static tess_status run_shared(const tess_gcf_plan *plan, const tess_gcf_points *points,
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

/* serial: the loop of a program that nobody has made faster: ours is timed against it.
 * With taps from a cube it is the one of NAG's study of tiles for OSKAR
 * (github.com/OxfordSKA/GPU-gridding, oskar_grid_wproj.cpp), less its sum of taps, and
 * the choice of conjugates made once a point. */
tess_status study_run_serial(const tess_gcf_plan *plan, const tess_gcf_points *points,
                             const tess_gcf_cells *cells, bool degrid,
                             tess_gcf_report *report)
{
    const study_table *table = study_table_best();
    const int precision = gcf_precision(plan);
    return gcf_run_in_order(plan, points, cells, degrid,
                            degrid ? table->degrid_plain[precision]
                            : study_probes_in(plan->opts.context)->cube
                                ? table->grid_cube[plan->gcf->layout.is_double]
                                : table->grid_plain[precision],
                            report);
}

/* atomic: points shared by threads that add to the grid atomically, as a gridder's loop
 * is made parallel first: the plain GPU version that Romein 2012
 * (doi:10.1145/2304576.2304620) starts from and replaces. */
tess_status study_run_atomic(const tess_gcf_plan *plan, const tess_gcf_points *points,
                             const tess_gcf_cells *cells, bool degrid,
                             tess_gcf_report *report)
{
    const study_table *table = study_table_best();
    const int precision = gcf_precision(plan);
    const bool plain = study_probes_in(plan->opts.context)->atomics == TESS_STUDY_PLAIN;
    return run_shared(plan, points, cells, degrid,
                      degrid  ? table->degrid_plain[precision]
                      : plain ? table->grid_plain[precision]
                              : table->grid_atomic[precision],
                      report);
}

/* computed: kernels of a formula (tess_gcf_formula) are computed for each visibility
 * and cell instead of read, line by line, for all polarisations together: no table
 * streams from memory, but an exponential, a sine, a cosine and two square roots take
 * the place of 8 bytes. Studies of degridding on GPUs for the SKA measured kernels of
 * this form (github.com/NVIDIA/SKA-gpu-grid, __COMPUTE_GCF), with a GPU's fast
 * functions and without. Processors have no such functions: the fast ones here are
 * short series that compilers make vectors of. Points are shared by threads, as
 * `atomic` has them. */
tess_status study_run_computed(const tess_gcf_plan *plan, const tess_gcf_points *points,
                               const tess_gcf_cells *cells, bool degrid,
                               tess_gcf_report *report)
{
    const study_table *table = study_table_best();
    const bool is_double = plan->gcf->layout.is_double,
               fast = study_is_fast(plan->opts.context);
    return run_shared(plan, points, cells, degrid,
                      degrid ? table->degrid_computed[is_double][fast]
                      : plan->opts.threads > 1
                          ? table->grid_computed_atomic[is_double][fast]
                          : table->grid_computed[is_double][fast],
                      report);
}
