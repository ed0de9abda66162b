/* computed: kernels of a formula (tess_gcf_formula) are computed for each visibility
 * and cell instead of read, line by line, for all polarisations together: no table
 * streams from memory, but an exponential, a sine, a cosine and two square roots take
 * the place of 8 bytes. Studies of degridding on GPUs for the SKA measured kernels of
 * this form (github.com/NVIDIA/SKA-gpu-grid, __COMPUTE_GCF), with a GPU's fast
 * functions and without. Processors have no such functions: the fast ones here are
 * short series that compilers make vectors of. Points are shared by threads, as
 * `atomic` has them. */
#include "gcf_batch.h"
#include "gcf_strategies.h"

tess_status gcf_run_computed(const tess_gcf_plan *plan, const tess_gcf_points *points,
                             const tess_gcf_cells *cells, bool degrid,
                             tess_gcf_report *report)
{
    const gcf_table *table = gcf_table_best();
    const bool is_double = plan->gcf->layout.is_double, fast = plan->opts.fast_math;
    return gcf_run_shared(plan, points, cells, degrid,
                          degrid ? table->degrid_computed[is_double][fast]
                          : plan->opts.threads > 1
                              ? table->grid_computed_atomic[is_double][fast]
                              : table->grid_computed[is_double][fast],
                          report);
}
