/** @file channel_rounds.h  (private to app/imager/run/)
 *  Rounds in which the images of channels that are cleaned together are made: one
 *  channel after the other by all ranks, or several at a time, one by each team. A
 *  channel stays with its team, which has its visibility set. Between rounds all ranks
 *  have every image by rows.
 */
#ifndef TESS_CHANNEL_ROUNDS_H
#define TESS_CHANNEL_ROUNDS_H

#include "image_kinds.h"
#include "image_run.h"

/** Whether teams make the images of channels that all ranks clean together. Local. */
static inline bool image_shares_channels(const image_run *run)
{
    return run->teams.num > 1 && image_joins_channels(run->opts);
}

typedef struct channel_rounds {
    const image_run *run; /**< borrowed */
    int *channel;       /**< [num] channels with data, in the order of rounds; owned */
    int num, at_once;   /**< channels of a round; the last round may have fewer */
    imager_rows **rows; /**< [at_once] rows of a round's channels, for one call */
} channel_rounds;

/** Divide the channels of an interval into rounds. TESS_ERR_ALLOC: callers agree on it.
 * Local. */
tess_status channel_rounds_create(const image_run *run, int64_t interval,
                                  channel_rounds *rounds);
void channel_rounds_free(channel_rounds *rounds); /**< Zeros are fine. Local. */

/** Number of channels of the round that begins with channel[first]. Local. */
int channel_rounds_size(const channel_rounds *rounds, int first);

/** The channel of that round that this rank makes with others; -1: it makes none.
 * Local. */
int channel_rounds_own(const channel_rounds *rounds, int first);

#endif
