/** @file gcf_strategies.h  (private to grid/gcf/)
 *  The strategies on a CPU, a source each. All work in both directions: to grid, they
 *  read the points' values and add to the cells; to degrid, they read the cells and set
 *  the points' values.
 */
#ifndef TESS_GCF_STRATEGIES_H
#define TESS_GCF_STRATEGIES_H

#include "gcf_plan.h"

tess_status gcf_run_serial(const tess_gcf_plan *plan, const tess_gcf_points *points,
                           const tess_gcf_cells *cells, bool degrid,
                           tess_gcf_report *report);
tess_status gcf_run_atomic(const tess_gcf_plan *plan, const tess_gcf_points *points,
                           const tess_gcf_cells *cells, bool degrid,
                           tess_gcf_report *report);
tess_status gcf_run_private(const tess_gcf_plan *plan, const tess_gcf_points *points,
                            const tess_gcf_cells *cells, bool degrid,
                            tess_gcf_report *report);
tess_status gcf_run_computed(const tess_gcf_plan *plan, const tess_gcf_points *points,
                             const tess_gcf_cells *cells, bool degrid,
                             tess_gcf_report *report);
tess_status gcf_run_tiled(const tess_gcf_plan *plan, const tess_gcf_points *points,
                          const tess_gcf_cells *cells, bool degrid,
                          tess_gcf_report *report);
#endif
