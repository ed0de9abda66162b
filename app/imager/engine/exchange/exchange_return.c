/* Returns predicted visibilities from the owners of bricks to the ranks that have sent
 * the positions, round by round as they came. */
#include <string.h>

#include "exchange_parcels.h"
#include "tess_mem.h"

/* Values of a round on their way back to the ranks that asked for them. */
typedef struct reply {
    const round_log *log;
    tess_flight *flight;
    int64_t *bytes; /* [3][P] bytes sent to each rank, bytes received from it, and where
                       these begin */
} reply;

static tess_status reply_create(tess_comm *comm, reply *out)
{
    tess_status status = TESS_OK;
    out->bytes = tess_alloc(3 * (int64_t)tess_comm_size(comm), sizeof *out->bytes);
    if (!out->bytes) TESS_FAIL(TESS_ERR_ALLOC, "exchange of predicted visibilities");
    TESS_TRY(tess_flight_create(comm, &out->flight));
cleanup:
    return status;
}

static void reply_free(reply *in)
{
    tess_flight_free(in->flight);
    tess_free(in->bytes);
}

/* Starts to return a round; values are sent from where they were predicted. Collective.
 */
static tess_status reply_start(tess_exchange *exchange, const round_log *log,
                               int64_t vis, reply *out)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(exchange->comm),
              own = tess_comm_rank(exchange->comm);
    int64_t *begin = out->bytes + 2 * size;
    out->log = log;
    for (int rank = 0; rank < size; ++rank) {
        out->bytes[rank] = rank == own ? 0 : log->received[rank].samples * vis;
        begin[rank] = log->place[rank].samples * vis;
    }
    TESS_TRY(tess_flight_start(out->flight, TESS_OK, NULL, exchange->samples.vis, begin,
                               out->bytes, out->bytes + size));
    TESS_TRY(tess_flight_settle(out->flight));
cleanup:
    return status;
}

/* Puts a round's values where they were asked for: parcels are listed by rank. */
static tess_status reply_finish(tess_exchange *exchange, int64_t vis, reply *in,
                                tess_samples *samples)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(exchange->comm),
              own = tess_comm_rank(exchange->comm);
    void *received = NULL;
    TESS_TRY(tess_flight_finish(in->flight, &received));
    const char *arrived = received;
    const char *here = (const char *)exchange->samples.vis + in->bytes[2 * size + own];
    for (int64_t k = 0; k < in->log->num_parcels; ++k) {
        const parcel *item = &exchange->sent[in->log->first_parcel + k];
        const char **from = item->rank == own ? &here : &arrived;
        const int64_t bytes = item->count * vis;
        memcpy((char *)samples->vis + item->first * vis, *from, (size_t)bytes);
        *from += bytes;
    }
cleanup:
    tess_free(received);
    return status;
}

tess_status tess_exchange_return(tess_exchange *exchange, tess_samples *samples)
{
    tess_status status = TESS_OK;
    const int64_t vis = (samples->is_double ? 16 : 8) * samples->num_pol;
    reply flying[2] = {{0}, {0}};
    for (int k = 0; k < 2 && status == TESS_OK; ++k)
        status = reply_create(exchange->comm, &flying[k]);
    TESS_TRY(tess_comm_agree(exchange->comm, status));
    for (int64_t k = 0; k <= exchange->num_rounds; ++k) {
        if (k < exchange->num_rounds)
            TESS_TRY(reply_start(exchange, &exchange->rounds[k], vis, &flying[k % 2]));
        if (k > 0) TESS_TRY(reply_finish(exchange, vis, &flying[(k - 1) % 2], samples));
    }
cleanup:
    for (int k = 0; k < 2; ++k)
        reply_free(&flying[k]);
    return status;
}
