/* Exchanges messages between ranks; those of one node read them where they lie. */
#include "tess_outbox.h"

#include "tess_mem.h"

/* A window that is too small is replaced by one that is larger by at least this factor.
 */
static const double GROWTH = 1.5;

/* Smallest window. Messages of a few planes are smaller, so that their box seldom
 * grows.
 */
enum { LEAST_BYTES = 256 << 10 };

/* Largest window that a rank keeps while the box rests. To make a window takes a dozen
 * collective calls. */
enum { REST_BYTES = 1 << 20 };

struct tess_outbox {
    tess_comm *comm;
    tess_window *window;
    tess_flight *flight;
    int64_t bytes; /* of the window, on each rank */
    bool shared;
    int64_t *send_at, *send_bytes, *recv_bytes; /* [size] of the flight */
};

tess_status tess_outbox_create(tess_comm *comm, tess_outbox **box_out)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(comm);
    tess_outbox *box = tess_alloc_zero(1, sizeof *box);
    if (!box) TESS_FAIL(TESS_ERR_ALLOC, "exchange between ranks");
    box->comm = comm;
    box->send_at = tess_alloc_zero(size, sizeof *box->send_at);
    box->send_bytes = tess_alloc_zero(size, sizeof *box->send_bytes);
    box->recv_bytes = tess_alloc_zero(size, sizeof *box->recv_bytes);
    if (!box->send_at || !box->send_bytes || !box->recv_bytes)
        TESS_FAIL(TESS_ERR_ALLOC, "exchange between ranks");
    TESS_TRY(tess_flight_create(comm, &box->flight));
    *box_out = box;
    box = NULL;
cleanup:
    tess_outbox_free(box);
    return status;
}

void tess_outbox_free(tess_outbox *box)
{
    if (!box) return;
    if (box->flight) tess_outbox_empty(box);
    tess_flight_free(box->flight);
    tess_free(box->send_at);
    tess_free(box->send_bytes);
    tess_free(box->recv_bytes);
    tess_free(box);
}

void tess_outbox_empty(tess_outbox *box)
{
    tess_flight_finish(box->flight, NULL);
    tess_window_free(box->window);
    box->window = NULL;
    box->bytes = 0;
    box->shared = false;
}

void tess_outbox_rest(tess_outbox *box)
{
    if (box->bytes > REST_BYTES) tess_outbox_empty(box);
}

/* Whether all ranks can read all windows. Collective. */
static tess_status find_shared(tess_outbox *box)
{
    int64_t shared = true;
    for (int k = 0; k < tess_comm_size(box->comm); ++k)
        shared = shared && tess_window_of(box->window, k);
    const tess_status status = tess_comm_allreduce_i64(box->comm, &shared, 1, TESS_MIN);
    box->shared = shared != 0;
    return status;
}

tess_status tess_outbox_room(tess_outbox *box, tess_status status, int64_t bytes,
                             void **room)
{
    int64_t most[2] = {bytes};
    /* no rank passes this call before all ranks have reached it, so all have read the
     * earlier messages */
    TESS_TRY(tess_comm_agree_on(box->comm, status, most, 1, TESS_MAX));
    TESS_TRY(tess_outbox_same_room(box, most[0], room));
cleanup:
    return status;
}

tess_status tess_outbox_same_room(tess_outbox *box, int64_t bytes, void **room)
{
    tess_status status = TESS_OK;
    tess_flight_finish(box->flight, NULL);
    if (!box->window || bytes > box->bytes) {
        const int64_t grown = (int64_t)(GROWTH * (double)box->bytes);
        int64_t wanted = bytes > grown ? bytes : grown;
        if (wanted < LEAST_BYTES) wanted = LEAST_BYTES;
        tess_outbox_empty(box);
        TESS_TRY(tess_window_create(box->comm, wanted, &box->window));
        box->bytes = wanted;
        TESS_TRY(find_shared(box));
    }
    *room = tess_window_own(box->window);
cleanup:
    return status;
}

tess_status tess_outbox_send(tess_outbox *box, tess_status status,
                             const int64_t *send_bytes, int64_t *recv_bytes,
                             void **part)
{
    const int rank = tess_comm_rank(box->comm), size = tess_comm_size(box->comm);
    /* without a window, which no rank could make then, `status` is a failure */
    char *own = box->window ? tess_window_own(box->window) : NULL;
    int64_t total = 0;
    for (int k = 0; k < size && status == TESS_OK; ++k) {
        box->send_at[k] = total;
        total += send_bytes[k];
        box->send_bytes[k] = k == rank ? 0 : send_bytes[k]; /* stays where it is */
    }
    TESS_TRY(tess_flight_start(box->flight, status, box->window, own, box->send_at,
                               box->send_bytes, box->recv_bytes));
    TESS_TRY(tess_flight_wait(box->flight, part));
    for (int k = 0; k < size; ++k)
        recv_bytes[k] = k == rank ? send_bytes[k] : box->recv_bytes[k];
    part[rank] = own + box->send_at[rank];
cleanup:
    return status;
}

void tess_outbox_drop(tess_outbox *box)
{
    tess_flight_finish(box->flight, NULL);
}

bool tess_outbox_is_shared(const tess_outbox *box)
{
    return box->shared;
}

void *tess_outbox_of(const tess_outbox *box, int rank)
{
    return tess_window_of(box->window, rank);
}

tess_status tess_outbox_meet(const tess_outbox *box, tess_status status, int64_t bytes)
{
    return tess_window_meet(box->window, status, bytes);
}
