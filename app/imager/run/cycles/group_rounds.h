/** @file group_rounds.h  (private to app/imager/run/)
 *  All groups of channels of a run, and the means of intervals.
 */
#ifndef TESS_GROUP_ROUNDS_H
#define TESS_GROUP_ROUNDS_H

#include "image_run.h"

/** Make the groups that the checkpoint does not count as complete, round after round:
 *  one group by all ranks, or one by each team. Collective. */
tess_status group_rounds_make(image_run *run);

#endif
