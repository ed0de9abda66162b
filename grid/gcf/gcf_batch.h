/** @file gcf_batch.h  (private to grid/gcf/)
 *  Runs a loop over all points in the order in which they come, batch after batch: by
 * one thread, or by threads that share the batches.
 */
#ifndef TESS_GCF_BATCH_H
#define TESS_GCF_BATCH_H

#include "gcf_plan.h"

/** Points of a batch. */
enum { GCF_BATCH = 512 };

/** Run `function` over all points, by one thread. What it did is added to the report.
 */
tess_status gcf_run_in_order(const tess_gcf_plan *plan, const tess_gcf_points *points,
                             const tess_gcf_cells *cells, bool degrid,
                             gcf_function *function, tess_gcf_report *report);

/** The same, by threads that share the batches. To grid, `function` must add to cells
 *  atomically if the plan has more than one thread. */
tess_status gcf_run_shared(const tess_gcf_plan *plan, const tess_gcf_points *points,
                           const tess_gcf_cells *cells, bool degrid,
                           gcf_function *function, tess_gcf_report *report);

/** Run `function` over the batch that begins with point `first`. Other threads may add
 *  to the same cells at the same time only if all do so atomically. */
void gcf_run_batch(const tess_gcf_plan *plan, const tess_gcf_points *points,
                   const tess_gcf_cells *cells, int64_t first, bool degrid,
                   gcf_function *function, tess_gcf_report *report);
#endif
