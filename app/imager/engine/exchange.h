/** @file exchange.h  (private to app/imager/)
 *  Visibilities on their way from the ranks that read them to the owners of their
 * bricks, and predicted ones on their way back.
 */
#ifndef TESS_EXCHANGE_H
#define TESS_EXCHANGE_H

#include "tess_grid.h"
#include "tess_mover.h"
#include "tess_partition.h"

typedef struct tess_exchange tess_exchange;

/** Which part of the bricks takes part in a pass over the data. NULL: all of them. */
typedef bool tess_exchange_filter(const void *context, int64_t key);

/** Begin to collect the samples of owned bricks. `with_data`: visibilities and weights
 *  travel (imaging); else only positions do (prediction). `round_bytes`: what a rank
 *  sends in a round, 0 for the default. Local. */
tess_status tess_exchange_create(tess_comm *comm, const tess_grid_plan *plan,
                                 const tess_partition *partition, bool with_data,
                                 const tess_samples *like, int64_t round_bytes,
                                 tess_exchange **exchange);

/** Bytes that samples on their way take, of each of so many ranks. Local. */
int64_t tess_exchange_flight_bytes(int ranks);

/** NULL is fine. Collective when samples were sent and not completed, else Local. */
void tess_exchange_destroy(tess_exchange *exchange);

/** What this rank is going to receive: make room for it at once. Without, arrays grow,
 *  and are copied, as it comes. Local. */
tess_status tess_exchange_expect(tess_exchange *exchange, int64_t num_rows,
                                 int64_t num_runs, int64_t num_vis);

/** Cut the samples' rows into runs, less ignored samples at their ends if
 *  `skip_ignored`, and send these to the owners of their bricks, by the plan's threads.
 *  They go in rounds of bounded size, the last two of which are still in flight on
 *  return; the samples may be changed then. Runs that are received are put in the order
 * of ranks and rows, so that the owner's order of work does not depend on how many
 * ranks sent. On one rank samples are copied once, to where they are wanted.
 * Collective. */
tess_status tess_exchange_send(tess_exchange *exchange, const tess_samples *samples,
                               bool skip_ignored, tess_exchange_filter *filter,
                               const void *context);

/** Let rounds in flight move on while something else is done. Local. */
void tess_exchange_progress(tess_exchange *exchange);

/** Nothing more will be sent: sort what was received. The samples and bricks belong to
 *  the exchange. Collective. */
tess_status tess_exchange_complete(tess_exchange *exchange, int num_threads,
                                   tess_samples **samples, tess_brick_list **bricks);

/** Have what is in flight arrive, so that all that was sent so far has been received;
 *  more may be sent after it. Collective. */
tess_status tess_exchange_drain(tess_exchange *exchange);

/** Write what was received so far, drained and perhaps complete, or have it become what
 *  was written by as many ranks. `num_chan`: of the channel table. Imaging; not for
 *  backends that sort by themselves. TESS_ERR_ALLOC, TESS_ERR_INPUT for what no
 * exchange has received, and the mover's errors. Local. */
tess_status tess_exchange_move(tess_exchange *exchange, int64_t num_chan,
                               tess_mover *mover);

/** Bytes that this writes. Local. */
int64_t tess_exchange_bytes(const tess_exchange *exchange);

/** Forget what was received and sent, for the next pass. Local. */
void tess_exchange_reset(tess_exchange *exchange);

/** Prediction: bring the owners' visibilities back to `samples` of the one
 *  tess_exchange_send. Collective. */
tess_status tess_exchange_return(tess_exchange *exchange, tess_samples *samples);

#endif
