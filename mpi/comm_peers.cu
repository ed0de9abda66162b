/* Sums and exchanges over the devices of one node: every rank puts its array where the
 * others may read it (CUDA's interprocess memory). In a sum it adds up its share of all
 * of them, rank by rank, over the link between the devices. In an exchange it copies
 * its parts of them, in a stream of its own. Nothing has to be started for it, where
 * NCCL takes half a second to connect; ranks may share devices. */
#include <string.h>

#include "device_comm_ways.h"
#include "tess_cuda.h"
#include "tess_device.h"
#include "tess_mem.h"
#include "tess_minmax.h"

enum { THREADS = 256, BLOCKS = 132 * 8 };

/* Ranks send in turn from the two halves of a buffer. */
enum { HALVES = 2 };

struct peers {
    tess_comm *comm; /* borrowed */
    int rank, size;
    int64_t bytes;
    void **peer;                /* [size] host: the arrays of all ranks, or NULL */
    void **peer_list;           /* device copy */
    cudaIpcMemHandle_t *handle; /* [size] */
    /* exchanges */
    int64_t room;        /* bytes of a half; 0: none */
    int half;            /* that is sent next */
    bool sent[HALVES];   /* since all ranks were last known to be idle */
    cudaStream_t copies; /* of what comes */
    cudaEvent_t *filled; /* [size][HALVES] the rank has filled that half */
    cudaEvent_t
        *emptied;  /* [size][HALVES] the rank has taken its parts of those halves */
    int64_t *told; /* [size + 1][1 + size] what ranks tell: status, places of parts */
    tess_status pending; /* a failure that other ranks do not know yet */
};

/* Memory for this rank's array. It does not come from the pool, because memory of the
 * pool cannot be shared with other processes. It may be freed only when no other rank
 * has opened it, and the next create makes sure of that. */
static struct {
    void *memory;
    int64_t bytes;
} lent;

/* Smaller arrays share a block with others, and would be lent with these. */
static const int64_t LEAST_BYTES = 2 << 20;

/* out[k] = Σ over ranks of peer[rank][first + k], in order of rank. */
template <typename real>
__global__ void add_kernel(void *const *peer, int size, int64_t first, int64_t count,
                           real *out)
{
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < count;
         k += (int64_t)gridDim.x * THREADS) {
        real sum = ((const real *)peer[0])[first + k];
        for (int rank = 1; rank < size; ++rank)
            sum += ((const real *)peer[rank])[first + k];
        out[k] = sum;
    }
}

static void close_peers(peers *with)
{
    for (int k = 0; k < with->size; ++k) {
        if (k != with->rank && with->peer[k])
            (void)cudaIpcCloseMemHandle(with->peer[k]);
        with->peer[k] = NULL;
    }
    (void)cudaGetLastError();
}

static tess_status open_peers(peers *with)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < with->size; ++k)
        if (k == with->rank)
            with->peer[k] = lent.memory;
        else
            TESS_CUDA(cudaIpcOpenMemHandle(&with->peer[k], with->handle[k],
                                           cudaIpcMemLazyEnablePeerAccess));
    TESS_TRY(tess_device_upload(with->peer_list, with->peer,
                                with->size * (int64_t)sizeof *with->peer));
cleanup:
    return status;
}

static void destroy_events(peers *with)
{
    for (int k = 0; k < with->size * HALVES; ++k) {
        if (with->filled && with->filled[k]) (void)cudaEventDestroy(with->filled[k]);
        if (with->emptied && with->emptied[k]) (void)cudaEventDestroy(with->emptied[k]);
    }
    if (with->copies) (void)cudaStreamDestroy(with->copies);
    (void)cudaGetLastError();
}

static void destroy(void *state)
{
    peers *with = (peers *)state;
    if (!with) return;
    if (with->copies) (void)cudaStreamSynchronize(with->copies);
    if (with->peer) close_peers(with);
    destroy_events(with);
    tess_free(with->filled);
    tess_free(with->emptied);
    tess_free(with->told);
    tess_device_free(with->peer_list);
    tess_free(with->peer);
    tess_free(with->handle);
    tess_free(with);
}

/* Whether all ranks are on one node. Collective. */
static tess_status on_one_node(tess_comm *comm, bool *one)
{
    tess_status status = TESS_OK;
    tess_comm *node = NULL;
    int64_t together = 0;
    TESS_TRY(tess_comm_node(comm, &node));
    together = tess_comm_size(node) == tess_comm_size(comm);
    TESS_TRY(tess_comm_allreduce_i64(comm, &together, 1, TESS_MIN));
    *one = together != 0;
cleanup:
    tess_comm_free(node);
    return status;
}

/* This rank's part: memory, and its handle. Local. */
static tess_status prepare(peers *with, cudaIpcMemHandle_t *handle)
{
    tess_status status = TESS_OK;
    if (with->bytes > lent.bytes) {
        (void)cudaFree(lent.memory);
        lent.memory = NULL;
        lent.bytes = 0;
        tess_device_holds(0);
        if (with->bytes > tess_device_room())
            TESS_FAIL(TESS_ERR_ALLOC, "no device memory for sums over ranks");
        TESS_CUDA(cudaMalloc(&lent.memory, (size_t)with->bytes));
        lent.bytes = with->bytes;
        tess_device_holds(lent.bytes);
    }
    TESS_CUDA(cudaIpcGetMemHandle(handle, lent.memory));
    TESS_TRY(tess_device_alloc(with->size * (int64_t)sizeof *with->peer,
                               "sums over ranks", (void **)&with->peer_list));
cleanup:
    return status;
}

/* Whether a trial succeeded on all ranks. If it failed, another way is tried.
 * Collective. */
static tess_status everywhere(tess_comm *comm, tess_status trial, bool *good)
{
    tess_status status = TESS_OK;
    int64_t all = trial == TESS_OK;
    if (all == 0) tess_error_clear();
    TESS_TRY(tess_comm_allreduce_i64(comm, &all, 1, TESS_MIN));
    *good = all != 0;
cleanup:
    return status;
}

/* What ranks tell of the events that others wait for. */
struct event_handles {
    cudaIpcEventHandle_t filled[HALVES], emptied[HALVES];
};

static tess_status make_event(cudaEvent_t *event, cudaIpcEventHandle_t *handle)
{
    tess_status status = TESS_OK;
    TESS_CUDA(cudaEventCreateWithFlags(event,
                                       cudaEventDisableTiming | cudaEventInterprocess));
    TESS_CUDA(cudaIpcGetEventHandle(handle, *event));
cleanup:
    return status;
}

static tess_status make_events(peers *with, event_handles *own)
{
    tess_status status = TESS_OK;
    const int first = with->rank * HALVES;
    TESS_CUDA(cudaStreamCreateWithFlags(&with->copies, cudaStreamNonBlocking));
    for (int half = 0; half < HALVES; ++half) {
        TESS_TRY(make_event(&with->filled[first + half], &own->filled[half]));
        TESS_TRY(make_event(&with->emptied[first + half], &own->emptied[half]));
    }
cleanup:
    return status;
}

static tess_status open_events(peers *with, const event_handles *all)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < with->size; ++k) {
        if (k == with->rank) continue;
        for (int half = 0; half < HALVES; ++half) {
            TESS_CUDA(cudaIpcOpenEventHandle(&with->filled[k * HALVES + half],
                                             all[k].filled[half]));
            TESS_CUDA(cudaIpcOpenEventHandle(&with->emptied[k * HALVES + half],
                                             all[k].emptied[half]));
        }
    }
cleanup:
    return status;
}

/* Makes what exchanges need, and finds whether that is possible. Collective. */
static tess_status try_exchange(peers *with, bool *good)
{
    tess_status status = TESS_OK;
    event_handles own;
    const int events = with->size * HALVES;
    event_handles *all = (event_handles *)tess_alloc(with->size, sizeof *all);
    memset(&own, 0, sizeof own);
    with->filled = (cudaEvent_t *)tess_alloc_zero(events, sizeof *with->filled);
    with->emptied = (cudaEvent_t *)tess_alloc_zero(events, sizeof *with->emptied);
    with->told =
        (int64_t *)tess_alloc((with->size + 1) * (with->size + 1), sizeof *with->told);
    TESS_TRY(tess_comm_agree(
        with->comm,
        all && with->filled && with->emptied && with->told ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(everywhere(with->comm, make_events(with, &own), good));
    if (!*good) goto cleanup;
    TESS_TRY(tess_comm_allgather(with->comm, &own, sizeof own, all));
    TESS_TRY(everywhere(with->comm, open_events(with, all), good));
cleanup:
    tess_free(all);
    return status;
}

/* Connects the devices, and finds whether that is possible. Collective. */
static tess_status try_peers(peers *with, bool *good)
{
    tess_status status = TESS_OK;
    cudaIpcMemHandle_t own;
    memset(&own, 0, sizeof own);
    TESS_TRY(everywhere(with->comm, prepare(with, &own), good));
    if (!*good) return TESS_OK;
    TESS_TRY(tess_comm_allgather(with->comm, &own, sizeof own, with->handle));
    TESS_TRY(everywhere(with->comm, open_peers(with), good));
    if (*good && with->room > 0) TESS_TRY(try_exchange(with, good));
cleanup:
    return status;
}

static tess_status create(tess_comm *comm, const tess_device_comm_opts *opts,
                          void **state)
{
    tess_status status = TESS_OK;
    bool good = false;
    peers *with = NULL;
    TESS_TRY(on_one_node(comm, &good));
    if (!good) return TESS_OK;
    with = (peers *)tess_alloc_zero(1, sizeof *with);
    if (with) {
        with->comm = comm;
        with->rank = tess_comm_rank(comm);
        with->size = tess_comm_size(comm);
        with->room = opts->exchange_bytes;
        with->bytes = tess_max_i64(
            LEAST_BYTES, tess_max_i64(opts->sum_bytes, HALVES * with->room));
        with->peer = (void **)tess_alloc_zero(with->size, sizeof *with->peer);
        with->handle =
            (cudaIpcMemHandle_t *)tess_alloc(with->size, sizeof *with->handle);
    }
    TESS_TRY(tess_comm_agree(
        comm, with && with->peer && with->handle ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(try_peers(with, &good));
    if (good) {
        *state = with;
        with = NULL;
    }
cleanup:
    destroy(with);
    return status;
}

template <typename real>
static tess_status add_share(peers *with, const int64_t *counts, void *out)
{
    tess_status status = TESS_OK;
    int64_t first = 0;
    for (int k = 0; k < with->rank; ++k)
        first += counts[k];
    add_kernel<real><<<BLOCKS, THREADS, 0, tess_device_stream()>>>(
        with->peer_list, with->size, first, counts[with->rank], (real *)out);
    TESS_CUDA_LAUNCHED();
    TESS_TRY(tess_device_wait());
cleanup:
    return status;
}

/* Copies this rank's array to where the others read it, and waits for the copy. */
static tess_status lend(const void *values, int64_t bytes)
{
    tess_status status = TESS_OK;
    TESS_CUDA(cudaMemcpyAsync(lent.memory, values, (size_t)bytes,
                              cudaMemcpyDeviceToDevice, tess_device_stream()));
    TESS_TRY(tess_device_wait());
cleanup:
    return status;
}

/* Waits until no rank takes parts of an exchange any more. Collective. */
static tess_status idle(peers *with)
{
    tess_status status = TESS_OK;
    if (!with->sent[0] && !with->sent[1]) return TESS_OK;
    status = tess_cuda_status(cudaStreamSynchronize(with->copies));
    TESS_TRY(tess_comm_agree(with->comm, status));
    with->sent[0] = with->sent[1] = false;
cleanup:
    return status;
}

/* Between the two agreements all ranks may read each other's arrays. */
static tess_status reduce_scatter(void *state, const void *values, void *out,
                                  const int64_t *counts, bool is_double)
{
    tess_status status = TESS_OK;
    peers *with = (peers *)state;
    int64_t bytes = 0;
    for (int k = 0; k < with->size; ++k)
        bytes += counts[k] * (is_double ? 8 : 4);
    if (bytes > with->bytes)
        TESS_FAIL(TESS_ERR_INTERNAL, "an array of %lld bytes where %lld were announced",
                  (long long)bytes, (long long)with->bytes);
    TESS_TRY(idle(with));
    TESS_TRY(tess_comm_agree(with->comm, lend(values, bytes)));
    status = is_double ? add_share<double>(with, counts, out)
                       : add_share<float>(with, counts, out);
    TESS_TRY(tess_comm_agree(with->comm, status));
cleanup:
    return status;
}

/* ---- exchange ---- */

/* A half is filled again when all ranks have taken their parts of it. The ranks have
 * told this in the exchange of the other half, which came in between. */
static tess_status buffer(void *state, void **buffer_out)
{
    tess_status status = TESS_OK;
    peers *with = (peers *)state;
    for (int k = 0; k < with->size && with->sent[with->half]; ++k)
        TESS_CUDA(cudaStreamWaitEvent(tess_device_stream(),
                                      with->emptied[k * HALVES + with->half], 0));
    *buffer_out = (char *)lent.memory + with->half * with->room;
cleanup:
    return status;
}

/* Tell the others where their parts begin in the half that this rank has filled.
 * told[rank][0] is a status. Collective. */
static tess_status tell_places(peers *with, tess_status status,
                               const tess_device_part *send)
{
    int64_t *own = with->told + (int64_t)with->size * (with->size + 1);
    if (status == TESS_OK) status = with->pending;
    if (status == TESS_OK)
        status = tess_cuda_status(cudaEventRecord(
            with->filled[with->rank * HALVES + with->half], tess_device_stream()));
    own[0] = status;
    for (int k = 0; k < with->size; ++k)
        own[1 + k] = send[k].first;
    const tess_status told = tess_comm_allgather(
        with->comm, own, (with->size + 1) * (int64_t)sizeof *own, with->told);
    if (status != TESS_OK) return status;
    for (int k = 0; k < with->size; ++k)
        if (told == TESS_OK && with->told[k * (with->size + 1)] != TESS_OK)
            return TESS_ERR_PEER;
    return told;
}

static tess_status take_part(const peers *with, int rank, const tess_device_rows *take)
{
    tess_status status = TESS_OK;
    const int64_t first = with->told[rank * (with->size + 1) + 1 + with->rank];
    const char *from = (const char *)with->peer[rank] + with->half * with->room + first;
    if (take->bytes == 0 || take->count == 0) return TESS_OK;
    TESS_CUDA(
        cudaStreamWaitEvent(with->copies, with->filled[rank * HALVES + with->half], 0));
    TESS_CUDA(cudaMemcpy2DAsync(
        take->to, (size_t)take->stride, from, (size_t)take->bytes, (size_t)take->bytes,
        (size_t)take->count, cudaMemcpyDeviceToDevice, with->copies));
cleanup:
    return status;
}

static tess_status take_parts(peers *with, const tess_device_rows *take)
{
    tess_status status = TESS_OK;
    /* what is received may have been read by what is enqueued so far */
    TESS_CUDA(cudaStreamWaitEvent(with->copies,
                                  with->filled[with->rank * HALVES + with->half], 0));
    for (int k = 0; k < with->size; ++k) /* not all from the same rank first */
        TESS_TRY(take_part(with, (with->rank + k) % with->size,
                           &take[(with->rank + k) % with->size]));
    TESS_CUDA(
        cudaEventRecord(with->emptied[with->rank * HALVES + with->half], with->copies));
cleanup:
    return status;
}

/* All ranks return the same status: the next exchange, or `arrive`, reports a failure
 * to enqueue. */
static tess_status exchange(void *state, tess_status status,
                            const tess_device_part *send, const tess_device_rows *take)
{
    peers *with = (peers *)state;
    TESS_TRY(tell_places(with, status, send));
    with->pending = take_parts(with, take);
    with->sent[with->half] = true;
    with->half = (with->half + 1) % HALVES;
cleanup:
    return status;
}

static tess_status arrive(void *state)
{
    tess_status status = TESS_OK;
    peers *with = (peers *)state;
    const int last = (with->half + HALVES - 1) % HALVES;
    TESS_TRY(with->pending);
    if (with->sent[last])
        TESS_CUDA(cudaStreamWaitEvent(tess_device_stream(),
                                      with->emptied[with->rank * HALVES + last], 0));
cleanup:
    return status;
}

const device_comm_way device_comm_peers = {"by the devices of the node",
                                           create,
                                           reduce_scatter,
                                           buffer,
                                           exchange,
                                           arrive,
                                           destroy};
