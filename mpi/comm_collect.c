/* Functions that are built from the communicator's primitives, with MPI and without. */
#include "tess_comm.h"

#include <string.h>

#include "tess_mem.h"

int tess_comm_blame(tess_comm *comm, tess_status status, int *exit_status)
{
    enum { INNOCENT = INT32_MAX };
    comm = tess_comm_last(comm);
    /* a rank with a failure of its own comes first; if there is none, a rank that knows
     * a failure from others is named */
    int64_t first = status == TESS_OK         ? INNOCENT
                    : status == TESS_ERR_PEER ? INNOCENT / 2 + tess_comm_rank(comm)
                                              : tess_comm_rank(comm);
    *exit_status = tess_status_exit(status);
    /* A failed rank whose patience is over ends the job inside this call. It never
     * reaches the next lines, so no other rank can print a message. */
    (void)tess_comm_agree(comm, status);
    if (tess_comm_allreduce_i64(comm, &first, 1, TESS_MIN) != TESS_OK)
        return status == TESS_OK ? -1 : tess_comm_rank(comm);
    if (first == INNOCENT) return -1;
    const int blamed = (int)(first >= INNOCENT / 2 ? first - INNOCENT / 2 : first);
    int64_t code = *exit_status;
    tess_comm_bcast(comm, &code, sizeof code, blamed);
    *exit_status = (int)code;
    return blamed;
}

tess_status tess_comm_alltoallv(tess_comm *comm, const void *send,
                                const int64_t *send_bytes, void **recv,
                                int64_t *recv_bytes)
{
    tess_status status = TESS_OK;
    tess_flight *flight = NULL;
    TESS_TRY(tess_comm_agree(comm, tess_flight_create(comm, &flight)));
    TESS_TRY(
        tess_flight_start(flight, TESS_OK, NULL, send, NULL, send_bytes, recv_bytes));
    TESS_TRY(tess_flight_finish(flight, recv));
cleanup:
    tess_flight_free(flight);
    return status;
}

static int64_t total(const int64_t *bytes, int count)
{
    int64_t sum = 0;
    for (int k = 0; k < count; ++k)
        sum += bytes[k];
    return sum;
}

tess_status tess_comm_gatherv(tess_comm *comm, const void *send, int64_t bytes,
                              int root, void **recv, int64_t *recv_bytes)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(comm);
    void *received = NULL;
    int64_t *to = tess_alloc_zero(size, sizeof *to);
    int64_t *from = tess_alloc_zero(size, sizeof *from);
    const bool short_of_memory = !to || !from;
    TESS_TRY(tess_comm_agree(comm, short_of_memory ? TESS_ERR_ALLOC : TESS_OK));
    to[root] = bytes;
    TESS_TRY(tess_comm_alltoallv(comm, send, to, &received, from));
    if (tess_comm_rank(comm) == root) {
        *recv = received;
        received = NULL;
        memcpy(recv_bytes, from, (size_t)size * sizeof *from);
    } else
        *recv = NULL;
cleanup:
    tess_free(received);
    tess_free(to);
    tess_free(from);
    return status;
}

tess_status tess_comm_allgatherv(tess_comm *comm, const void *send, int64_t bytes,
                                 void **recv, int64_t *recv_bytes)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(comm);
    void *gathered = NULL;
    TESS_TRY(tess_comm_allgather(comm, &bytes, sizeof bytes, recv_bytes));
    gathered = tess_alloc(total(recv_bytes, size), 1);
    if (!gathered)
        status = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                   "no memory to gather %lld bytes",
                                   (long long)total(recv_bytes, size));
    TESS_TRY(tess_comm_agree(comm, status));
    char *at = gathered;
    for (int k = 0; k < size; ++k) {
        if (k == tess_comm_rank(comm) && bytes > 0) memcpy(at, send, (size_t)bytes);
        TESS_TRY(tess_comm_bcast(comm, at, recv_bytes[k], k));
        at += recv_bytes[k];
    }
    *recv = gathered;
    gathered = NULL;
cleanup:
    tess_free(gathered);
    return status;
}
