/* serial: the loop of a program that nobody has made faster: ours is timed against it.
 * With taps from a cube it is the one of NAG's study of tiles for OSKAR
 * (github.com/OxfordSKA/GPU-gridding, oskar_grid_wproj.cpp), less its sum of taps, and
 * the choice of conjugates made once a point. */
#include "gcf_batch.h"
#include "gcf_strategies.h"

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
