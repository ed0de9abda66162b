/** @file tess_moved.h
 *  Samples and runs that come back from a file, which anybody may have written:
 * gridding relies on what is checked here.
 */
#ifndef TESS_MOVED_H
#define TESS_MOVED_H

#include "tess_bricks.h"

/** Whether all rows lie in the channel table of `num_chan`, and have samples of their
 *  own. Local. */
bool tess_samples_are_sound(const tess_samples *samples, int64_t num_chan);

/** Whether runs [num_runs] are of these rows, which are sound, and their samples in the
 *  run's brick and within the plan's planes. Local. */
bool tess_runs_are_sound(const struct tess_grid_plan *plan, const tess_samples *samples,
                         const tess_run *run, int64_t num_runs);

#endif
