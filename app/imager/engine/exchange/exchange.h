/** @file exchange.h  (private to app/imager/)
 *  Visibilities on their way from the ranks that read them to the owners of their
 *  bricks, and predicted ones on their way back.
 */
#ifndef TESS_EXCHANGE_H
#define TESS_EXCHANGE_H

#include "tess_grid.h"
#include "tess_mover.h"
#include "tess_partition.h"

typedef struct tess_exchange tess_exchange;

/** Whether a brick takes part in a pass over the data. NULL: all bricks do. */
typedef bool tess_exchange_filter(const void *context, int64_t key);

/** Begin to collect the samples of owned bricks. `with_data`: visibilities and weights
 * are sent (imaging); otherwise positions alone (prediction). `round_bytes`: what a
 * rank sends in a round; 0: the default. TESS_ERR_ALLOC. Local. */
tess_status tess_exchange_create(tess_comm *comm, const tess_grid_plan *plan,
                                 const tess_partition *partition, bool with_data,
                                 const tess_samples *like, int64_t round_bytes,
                                 tess_exchange **exchange);

/** Memory of a rank for samples in flight among `ranks` ranks [bytes]. Local. */
int64_t tess_exchange_flight_bytes(int ranks);

/** Free an exchange; NULL is fine. Collective if samples were sent and not completed,
 * else Local. */
void tess_exchange_destroy(tess_exchange *exchange);

/** Allocate at once the memory for everything that this rank is going to receive.
 * Otherwise arrays grow, and are copied, as samples arrive. TESS_ERR_ALLOC. Local. */
tess_status tess_exchange_expect(tess_exchange *exchange, int64_t num_rows,
                                 int64_t num_runs, int64_t num_vis);

/** Cut the samples' rows into runs, less ignored samples at their ends if
 * `skip_ignored`, and send these to the owners of their bricks, by the plan's threads.
 * They are sent in rounds of bounded size. On return the last two rounds are still in
 * flight, but the samples may be changed. Runs that are received are put in the order
 * of ranks and rows, so that the owner's order of work does not depend on the number of
 * ranks. On one rank samples are copied once, to their final place. Collective. */
tess_status tess_exchange_send(tess_exchange *exchange, const tess_samples *samples,
                               bool skip_ignored, tess_exchange_filter *filter,
                               const void *context);

/** Advance rounds in flight while other work is done. Local. */
void tess_exchange_progress(tess_exchange *exchange);

/** Sort what was received; nothing more is sent. The samples and bricks belong to the
 * exchange. Collective. */
tess_status tess_exchange_complete(tess_exchange *exchange, int num_threads,
                                   tess_samples **samples, tess_brick_list **bricks);

/** Receive all messages that are in flight, so that everything that was sent so far has
 * arrived. More may be sent afterwards. Collective. */
tess_status tess_exchange_drain(tess_exchange *exchange);

/** Write what was received so far, after tess_exchange_drain or tess_exchange_complete;
 * or restore what an exchange of as many ranks has written. `num_chan`: number of
 * channels of the channel table. It is for imaging, and for backends that do not sort
 * samples. TESS_ERR_ALLOC; TESS_ERR_INPUT: no exchange can have received this; and the
 * mover's errors. Local. */
tess_status tess_exchange_move(tess_exchange *exchange, int64_t num_chan,
                               tess_mover *mover);

/** Bytes that tess_exchange_move writes. Local. */
int64_t tess_exchange_bytes(const tess_exchange *exchange);

/** Forget what was received and sent, for the next pass. Local. */
void tess_exchange_reset(tess_exchange *exchange);

/** For a prediction: return the visibilities from the owners of the bricks to
 * `samples`, which tess_exchange_send has sent, in its only call. Collective. */
tess_status tess_exchange_return(tess_exchange *exchange, tess_samples *samples);

#endif
