/* atomic: points shared by threads that add to the grid atomically, as a gridder's loop
 * is made parallel first: the plain GPU version that Romein 2012
 * (doi:10.1145/2304576.2304620) starts from and replaces. */
#include "gcf_batch.h"
#include "gcf_strategies.h"

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
