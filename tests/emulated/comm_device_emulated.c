/* Both ways of summing and exchanging over devices on memory that is a device's only by
 * name (device_emulated.c). */
#include <string.h>

#include "device_comm_ways.h"

#include "tess_device.h"
#include "tess_mem.h"
#include "tess_minmax.h"

/* Halves of the buffer, from which ranks send in turn, as in comm_peers.cu. */
enum { HALVES = 2 };

typedef struct links {
    tess_comm *comm;
    char *buffer; /* [HALVES][half_bytes] */
    int64_t half_bytes, sum_bytes;
    int half; /* that is sent next */
} links;

static void destroy(void *state)
{
    links *with = state;
    if (!with) return;
    tess_free(with->buffer);
    tess_free(with);
}

/* Bytes of the largest buffer so far, which a process keeps (comm_peers.cu). */
static int64_t lent;

/* Whether every device has room for a buffer larger than what is lent, which is freed
 * for it (comm_peers.cu, prepare). Collective. */
static tess_status find_room(tess_comm *comm, int64_t bytes, bool *has_room)
{
    int64_t here = true;
    if (bytes > lent) {
        lent = 0;
        tess_device_holds(0);
        here = bytes <= tess_device_room();
    }
    const tess_status status = tess_comm_allreduce_i64(comm, &here, 1, TESS_MIN);
    *has_room = here != 0;
    return status;
}

static void hold(int64_t bytes)
{
    if (bytes > lent) lent = bytes;
    tess_device_holds(lent);
}

static tess_status create(tess_comm *comm, const tess_device_comm_opts *opts,
                          void **state)
{
    tess_status status = TESS_OK;
    const int64_t bytes = tess_max_i64(HALVES * opts->exchange_bytes, opts->sum_bytes);
    links *with = NULL;
    bool has_room = false;
    TESS_TRY(find_room(comm, bytes, &has_room));
    if (!has_room) return TESS_OK;
    with = tess_alloc_zero(1, sizeof *with);
    if (with) {
        with->comm = comm;
        with->half_bytes = opts->exchange_bytes;
        with->sum_bytes = opts->sum_bytes;
        with->buffer = tess_alloc(HALVES * with->half_bytes, 1);
    }
    TESS_TRY(tess_comm_agree(comm, with && with->buffer ? TESS_OK : TESS_ERR_ALLOC));
    hold(bytes);
    *state = with;
    with = NULL;
cleanup:
    destroy(with);
    return status;
}

static tess_status reduce_scatter(void *state, const void *values, void *out,
                                  const int64_t *counts, bool is_double)
{
    tess_status status = TESS_OK;
    const links *with = state;
    int64_t bytes = 0;
    for (int k = 0; k < tess_comm_size(with->comm); ++k)
        bytes += counts[k] * (is_double ? 8 : 4);
    if (bytes > with->sum_bytes)
        TESS_FAIL(TESS_ERR_INTERNAL, "an array of %lld bytes in a buffer of %lld",
                  (long long)bytes, (long long)with->sum_bytes);
    TESS_TRY(tess_comm_agree(with->comm, tess_device_wait()));
    TESS_TRY(tess_comm_reduce_scatter(with->comm, values, out, counts, is_double));
cleanup:
    return status;
}

static tess_status buffer(void *state, void **buffer_out)
{
    const links *with = state;
    *buffer_out = with->buffer + with->half * with->half_bytes;
    return TESS_OK;
}

/* Dense bytes that came, to the rows that take them. */
static const char *put(const tess_device_rows *take, const char *from)
{
    for (int64_t row = 0; row < take->count; ++row, from += take->bytes)
        memcpy((char *)take->to + row * take->stride, from, (size_t)take->bytes);
    return from;
}

/* What is sent must lie in the buffer. */
static tess_status check_parts(const links *with, const tess_device_part *send)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < tess_comm_size(with->comm); ++k)
        if (send[k].first + send[k].bytes > with->half_bytes)
            TESS_FAIL(TESS_ERR_INTERNAL, "bytes %lld to %lld of a buffer of %lld",
                      (long long)send[k].first,
                      (long long)(send[k].first + send[k].bytes),
                      (long long)with->half_bytes);
cleanup:
    return status;
}

static tess_status exchange(void *state, tess_status status,
                            const tess_device_part *send, const tess_device_rows *take)
{
    links *with = state;
    const int size = tess_comm_size(with->comm);
    const char *filled = with->buffer + with->half * with->half_bytes;
    int64_t total = 0, *bytes = tess_alloc(2 * (int64_t)size, sizeof *bytes);
    char *packed = NULL;
    void *received = NULL;
    for (int k = 0; k < size; ++k)
        total += send[k].bytes;
    packed = tess_alloc(total, 1);
    if (status == TESS_OK) status = check_parts(with, send);
    if (status == TESS_OK && (!bytes || !packed)) status = TESS_ERR_ALLOC;
    if (status == TESS_OK) status = tess_device_wait();
    TESS_TRY(tess_comm_agree(with->comm, status));
    total = 0;
    for (int k = 0; k < size; ++k) {
        bytes[k] = send[k].bytes;
        memcpy(packed + total, filled + send[k].first, (size_t)send[k].bytes);
        total += send[k].bytes;
    }
    TESS_TRY(tess_comm_alltoallv(with->comm, packed, bytes, &received, bytes + size));
    const char *from = received;
    for (int k = 0; k < size; ++k)
        from = put(&take[k], from);
    with->half = (with->half + 1) % HALVES;
cleanup:
    tess_free(bytes);
    tess_free(packed);
    tess_free(received);
    return status;
}

static tess_status arrive(void *state)
{
    (void)state;
    return TESS_OK;
}

const device_comm_way device_comm_peers = {"by peers", create, reduce_scatter, buffer,
                                           exchange,   arrive, destroy};
const device_comm_way device_comm_nccl = {"by NCCL", create, reduce_scatter, buffer,
                                          exchange,  arrive, destroy};
