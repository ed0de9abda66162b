/* Sums over the devices of one node: every rank puts its array where the others may
 * read it (CUDA's interprocess memory), and adds up its share of all of them, rank by
 * rank, over the link between the devices. Nothing has to be started for it, where NCCL
 * takes half a second to connect; ranks may share devices. */
#include <string.h>

#include "device_comm_ways.h"
#include "tess_cuda.h"
#include "tess_device.h"
#include "tess_mem.h"

enum { THREADS = 256, BLOCKS = 132 * 8 };

struct peers {
    tess_comm *comm; /* borrowed */
    int rank, size;
    int64_t bytes;
    void **peer;                /* [size] host: the arrays of all ranks, or NULL */
    void **peer_list;           /* device copy */
    cudaIpcMemHandle_t *handle; /* [size] */
};

/* This rank's array, which is not of the pool, as that cannot be lent. It may be given
 * back only when no other rank has it open, of which the next create can be sure. */
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

static void destroy(void *state)
{
    peers *with = (peers *)state;
    if (!with) return;
    if (with->peer) close_peers(with);
    tess_device_free(with->peer_list);
    tess_free(with->peer);
    tess_free(with->handle);
    tess_free(with);
}

/* Are all ranks on one node? Collective. */
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
        if (with->bytes > tess_device_room())
            TESS_FAIL(TESS_ERR_ALLOC, "no device memory for sums over ranks");
        TESS_CUDA(cudaMalloc(&lent.memory, (size_t)with->bytes));
        lent.bytes = with->bytes;
    }
    TESS_CUDA(cudaIpcGetMemHandle(handle, lent.memory));
    TESS_TRY(tess_device_alloc(with->size * (int64_t)sizeof *with->peer,
                               "sums over ranks", (void **)&with->peer_list));
cleanup:
    return status;
}

/* Whether a trial succeeded everywhere; what failed is another way's to do. Collective.
 */
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

/* Connect, and see whether that can be done. Collective. */
static tess_status try_peers(peers *with, bool *good)
{
    tess_status status = TESS_OK;
    cudaIpcMemHandle_t own;
    memset(&own, 0, sizeof own);
    TESS_TRY(everywhere(with->comm, prepare(with, &own), good));
    if (!*good) return TESS_OK;
    TESS_TRY(tess_comm_allgather(with->comm, &own, sizeof own, with->handle));
    TESS_TRY(everywhere(with->comm, open_peers(with), good));
cleanup:
    return status;
}

static tess_status create(tess_comm *comm, int64_t bytes, void **state)
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
        with->bytes = bytes > LEAST_BYTES ? bytes : LEAST_BYTES;
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

/* Put this rank's array where the others read it; waits. */
static tess_status lend(const void *values, int64_t bytes)
{
    tess_status status = TESS_OK;
    TESS_CUDA(cudaMemcpyAsync(lent.memory, values, (size_t)bytes,
                              cudaMemcpyDeviceToDevice, tess_device_stream()));
    TESS_TRY(tess_device_wait());
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
    TESS_TRY(tess_comm_agree(with->comm, lend(values, bytes)));
    status = is_double ? add_share<double>(with, counts, out)
                       : add_share<float>(with, counts, out);
    TESS_TRY(tess_comm_agree(with->comm, status));
cleanup:
    return status;
}

const device_comm_way device_comm_peers = {"by the devices of the node", create,
                                           reduce_scatter, destroy};
