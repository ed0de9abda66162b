/** @file mean_sources.h  (private to app/imager/run/)
 *  The list of sources of a mean over channels that are cleaned one by one: the
 *  components of all of them, each with its channel's share of the weights.
 */
#ifndef TESS_MEAN_SOURCES_H
#define TESS_MEAN_SOURCES_H

#include "image_run.h"
#include "tess_source_list.h"

/** Sums of the current interval, on the first rank. Zeroed is empty. */
typedef struct mean_sources {
    tess_source_list list; /**< fluxes are times weights */
    double weights, weighted_hz;
} mean_sources;

/** Note behind a channel's list what it weighs in the mean, as a comment. `*text` is
 *  replaced. TESS_ERR_ALLOC. Local. */
tess_status mean_sources_note(double weight, double freq_hz, char **text);

/** Take up the lists of the channels [first, end) of an interval, which a run that
 *  continues finds in its files. Collective. */
tess_status mean_sources_continue(image_run *run, int64_t interval, int64_t first,
                                  int64_t end, mean_sources *mean);

/** Add the list of an output, if it has data. One rank has it as its `own` list, which
 * a team of threads may have made. Collective over all ranks. */
tess_status mean_sources_add(image_run *run, const image_source_list *own,
                             int64_t output, mean_sources *mean);

/** Give the list of an interval to the files of the mean, and begin anew. Collective.
 */
tess_status mean_sources_finish(image_run *run, int64_t interval, mean_sources *mean);

void mean_sources_free(mean_sources *mean); /**< Local. */

#endif
