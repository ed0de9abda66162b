/** @file tess_calibrate.h
 *  The costs that the planner goes by (tess_costs.h), measured on this machine and kept
 *  for later runs.
 *
 *  What plans depend on is of one core: a file in the cache (tess_cache.h) for each
 * kind of processor, instruction set and version of the program. What memory does with
 * so many threads only tells how long things take; it is in a file of its own. The
 * first run to write a file decides: others take what is there, so that the same
 * command makes the same plan. Rank 0 measures, or reads, and tells the others. A file
 * that cannot be read or written, or is damaged, is no error.
 */
#ifndef TESS_CALIBRATE_H
#define TESS_CALIBRATE_H

#include "tess_comm.h"
#include "tess_costs.h"
#include "tess_status.h"

typedef enum tess_calibrate_mode {
    TESS_CALIBRATE_ONCE, /**< measure what is not known yet, and keep it */
    TESS_CALIBRATE_ANEW  /**< measure all, and replace what was kept */
} tess_calibrate_mode;

/** The costs of rank 0's machine with this many threads. Measuring takes about a
 *  quarter of a second. Collective. */
tess_status tess_calibrate(tess_comm *comm, tess_calibrate_mode mode, int threads,
                           tess_costs *costs);

/** The built-in costs, with what an earlier run has kept of memory, for work that comes
 *  before a run is planned. Measures nothing. Collective. */
tess_status tess_calibrate_kept(tess_comm *comm, int threads, tess_costs *costs);

/** Bytes of new memory that so many threads get in a second now, seen in some
 *  milliseconds; `otherwise` when there is none. Local. */
double tess_calibrate_touch(int threads, double otherwise);

/** True unless TESS_CALIBRATION=off is in the environment. Local. */
bool tess_calibrate_allowed(void);

/** Measure the members of tess_costs that are of one core, or of memory: for each kind
 *  of traffic the fewest of 1, 2, 4, … and all threads that do as good as the most.
 *  Local. */
tess_status tess_calibrate_core(tess_costs *costs);
tess_status tess_calibrate_memory(int threads, tess_costs *costs);

#endif
