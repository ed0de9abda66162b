/** @file tess_calibrate.h
 *  Measures the costs by which runs are planned (tess_costs.h), and keeps them for
 *  later runs.
 *
 *  Plans depend on costs of one core. They are kept in a file in the cache
 *  (tess_cache.h) for each kind of processor, instruction set and version of the
 *  program. Rates of memory with a number of threads only affect how long work is
 *  expected to take, and are kept in another file. The first run that writes a file
 *  decides: later runs use it, so that the same command makes the same plan. Rank 0
 *  measures or reads, and sends the costs to the other ranks. It is no error if a file
 *  cannot be read or written, or is damaged.
 */
#ifndef TESS_CALIBRATE_H
#define TESS_CALIBRATE_H

#include "tess_comm.h"
#include "tess_costs.h"
#include "tess_status.h"

typedef enum tess_calibrate_mode {
    TESS_CALIBRATE_ONCE, /**< measure what is not known yet, and keep the results */
    TESS_CALIBRATE_ANEW  /**< measure everything, and replace the kept results */
} tess_calibrate_mode;

/** Get the costs of rank 0's machine with this number of threads. Measuring takes about
 * a quarter of a second. Collective. */
tess_status tess_calibrate(tess_comm *comm, tess_calibrate_mode mode, int threads,
                           tess_costs *costs);

/** Get the built-in costs, and the rates of memory that an earlier run has kept, for
 * work that is done before a run is planned. Nothing is measured. Collective. */
tess_status tess_calibrate_kept(tess_comm *comm, int threads, tess_costs *costs);

/** The rate at which the system now gives new memory to this number of threads
 * [bytes/s], which is measured in some milliseconds; `otherwise` if that fails. Local.
 */
double tess_calibrate_touch(int threads, double otherwise);

/** Whether costs may be measured: true unless the environment has TESS_CALIBRATION=off.
 * Local. */
bool tess_calibrate_allowed(void);

/** Measure those members of tess_costs that hold for one core, or those that hold for
 * memory. For each kind of traffic, the latter have the fewest of 1, 2, 4, … and all
 * threads that reach the best rate. Local. */
tess_status tess_calibrate_core(tess_costs *costs);
tess_status tess_calibrate_memory(int threads, tess_costs *costs);

#endif
