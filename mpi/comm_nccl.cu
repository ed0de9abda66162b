/* Sums and exchanges over devices by NCCL. The library is opened when it is needed, so
 * that a program built with it runs where it is not. */
#include "device_comm_ways.h"

#include <dlfcn.h>
#include <nccl.h>
#include <string.h>

#include "tess_cuda.h"
#include "tess_device.h"
#include "tess_mem.h"

/* The functions of the library that are used. */
struct nccl_library {
    void *handle;
    decltype(&ncclGetUniqueId) get_unique_id;
    decltype(&ncclCommInitRank) init_rank;
    decltype(&ncclCommDestroy) destroy;
    decltype(&ncclCommAbort) abort;
    decltype(&ncclReduce) reduce;
    decltype(&ncclSend) send;
    decltype(&ncclRecv) recv;
    decltype(&ncclGroupStart) group_start;
    decltype(&ncclGroupEnd) group_end;
    decltype(&ncclGetErrorString) error_string;
};

struct nccl_ranks {
    ncclComm_t comm;
    tess_comm *ranks; /* borrowed */
    int rank, size;
    bool failed;
    void *buffer;   /* that is sent from */
    void *received; /* what came, before it goes to its rows */
    int64_t received_bytes;
    tess_status pending; /* a failure that other ranks do not know yet */
};

/* A process loads the library once. */
static nccl_library library;

#define TESS_NCCL(call)                                                                \
    do {                                                                               \
        const ncclResult_t tess_nccl_result = (call);                                  \
        if (tess_nccl_result != ncclSuccess)                                           \
            TESS_FAIL(TESS_ERR_RESOURCE, "NCCL: %s",                                   \
                      library.error_string(tess_nccl_result));                         \
    } while (0)

template <typename function> static bool find(const char *name, function *out)
{
    *out = (function)dlsym(library.handle, name);
    return *out != NULL;
}

/* Whether the library is there, with all functions that are used. */
static bool open_library(void)
{
    if (library.handle) return true;
    library.handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library.handle) return false;
    if (find("ncclGetUniqueId", &library.get_unique_id) &&
        find("ncclCommInitRank", &library.init_rank) &&
        find("ncclCommDestroy", &library.destroy) &&
        find("ncclCommAbort", &library.abort) && find("ncclReduce", &library.reduce) &&
        find("ncclSend", &library.send) && find("ncclRecv", &library.recv) &&
        find("ncclGroupStart", &library.group_start) &&
        find("ncclGroupEnd", &library.group_end) &&
        find("ncclGetErrorString", &library.error_string))
        return true;
    dlclose(library.handle);
    library.handle = NULL;
    return false;
}

/* Whether all ranks have the library, and each rank has a device of its own.
 * Collective. */
static tess_status may_connect(tess_comm *comm, bool *may)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(comm);
    int64_t good = open_library();
    cudaDeviceProp properties;
    cudaUUID_t *all = (cudaUUID_t *)tess_alloc(size, sizeof *all);
    if (cudaGetDeviceProperties(&properties, tess_device_number()) != cudaSuccess) {
        (void)cudaGetLastError();
        good = 0;
    }
    TESS_TRY(tess_comm_agree(comm, all ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_comm_allgather(comm, &properties.uuid, sizeof properties.uuid, all));
    for (int a = 0; a < size; ++a)
        for (int b = 0; b < a; ++b)
            if (memcmp(&all[a], &all[b], sizeof all[a]) == 0) good = 0;
    TESS_TRY(tess_comm_allreduce_i64(comm, &good, 1, TESS_MIN));
    *may = good != 0;
cleanup:
    tess_free(all);
    return status;
}

static tess_status get_id(int rank, ncclUniqueId *id)
{
    tess_status status = TESS_OK;
    if (rank == 0) TESS_NCCL(library.get_unique_id(id));
cleanup:
    return status;
}

static tess_status connect(nccl_ranks *made, ncclUniqueId id)
{
    tess_status status = TESS_OK;
    TESS_NCCL(library.init_rank(&made->comm, made->size, id, made->rank));
cleanup:
    return status;
}

static tess_status reduce_scatter(void *state, const void *values, void *out,
                                  const int64_t *counts, bool is_double)
{
    tess_status status = TESS_OK;
    nccl_ranks *ranks = (nccl_ranks *)state;
    const size_t element = is_double ? sizeof(double) : sizeof(float);
    const char *from = (const char *)values;
    TESS_NCCL(library.group_start());
    for (int k = 0; k < ranks->size; ++k) {
        TESS_NCCL(library.reduce(from, out, (size_t)counts[k],
                                 is_double ? ncclDouble : ncclFloat, ncclSum, k,
                                 ranks->comm, tess_device_stream()));
        from += (size_t)counts[k] * element;
    }
    TESS_NCCL(library.group_end());
cleanup:
    ranks->failed = ranks->failed || status != TESS_OK;
    return status;
}

/* The first use connects the devices, which takes tenths of a second. */
static tess_status first_sum(nccl_ranks *made)
{
    tess_status status = TESS_OK;
    const int64_t count = 1 << 16;
    void *values = NULL, *out = NULL;
    int64_t *counts = (int64_t *)tess_alloc(made->size, sizeof *counts);
    if (!counts) TESS_FAIL(TESS_ERR_ALLOC, "communicator");
    for (int k = 0; k < made->size; ++k)
        counts[k] = count;
    TESS_TRY(tess_device_alloc(count * made->size * 4, "sums over ranks", &values));
    TESS_TRY(tess_device_alloc(count * 4, "sums over ranks", &out));
    TESS_TRY(tess_device_zero(values, count * made->size * 4));
    TESS_TRY(reduce_scatter(made, values, out, counts, false));
    TESS_TRY(tess_device_wait());
cleanup:
    tess_free(counts);
    tess_device_free(values);
    tess_device_free(out);
    return status;
}

/* If a sum failed or the device is lost, other ranks may wait for this rank on their
 * devices. An orderly end of NCCL could then wait for these ranks for ever. */
static bool is_sound(const nccl_ranks *ranks)
{
    if (ranks->failed) return false;
    const bool sound = cudaStreamSynchronize(tess_device_stream()) == cudaSuccess;
    if (!sound) (void)cudaGetLastError();
    return sound;
}

static void destroy(void *state)
{
    nccl_ranks *ranks = (nccl_ranks *)state;
    if (!ranks) return;
    if (ranks->comm)
        (void)(is_sound(ranks) ? library.destroy : library.abort)(ranks->comm);
    tess_device_free(ranks->buffer);
    tess_device_free(ranks->received);
    tess_free(ranks);
}

static tess_status create(tess_comm *comm, const tess_device_comm_opts *opts,
                          void **state)
{
    tess_status status = TESS_OK;
    nccl_ranks *made = NULL;
    ncclUniqueId id;
    bool may = false;
    TESS_TRY(may_connect(comm, &may));
    if (!may) return TESS_OK;
    made = (nccl_ranks *)tess_alloc_zero(1, sizeof *made);
    status = made ? get_id(tess_comm_rank(comm), &id) : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_bcast(comm, &id, sizeof id, 0));
    made->rank = tess_comm_rank(comm);
    made->size = tess_comm_size(comm);
    made->ranks = comm;
    status = connect(made, id);
    if (status == TESS_OK && opts->exchange_bytes > 0)
        status = tess_device_alloc(opts->exchange_bytes, "exchange over ranks",
                                   &made->buffer);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_agree(comm, first_sum(made)));
    *state = made;
    made = NULL;
cleanup:
    destroy(made);
    return status;
}

/* ---- exchange ---- */

/* All work is in one stream, so the buffer is free when it is filled again. */
static tess_status buffer(void *state, void **buffer_out)
{
    *buffer_out = ((nccl_ranks *)state)->buffer;
    return TESS_OK;
}

static tess_status make_room(nccl_ranks *ranks, const tess_device_rows *take)
{
    tess_status status = TESS_OK;
    int64_t bytes = 0;
    for (int k = 0; k < ranks->size; ++k)
        bytes += take[k].bytes * take[k].count;
    if (bytes <= ranks->received_bytes) return TESS_OK;
    tess_device_free(ranks->received);
    ranks->received = NULL;
    ranks->received_bytes = 0;
    TESS_TRY(tess_device_alloc(bytes, "exchange over ranks", &ranks->received));
    ranks->received_bytes = bytes;
cleanup:
    return status;
}

static tess_status send_parts(nccl_ranks *ranks, const tess_device_part *send,
                              const tess_device_rows *take)
{
    tess_status status = TESS_OK;
    char *to = (char *)ranks->received;
    TESS_NCCL(library.group_start());
    for (int k = 0; k < ranks->size; ++k) {
        const int64_t bytes = take[k].bytes * take[k].count;
        if (send[k].bytes > 0)
            TESS_NCCL(library.send((const char *)ranks->buffer + send[k].first,
                                   (size_t)send[k].bytes, ncclChar, k, ranks->comm,
                                   tess_device_stream()));
        if (bytes > 0)
            TESS_NCCL(library.recv(to, (size_t)bytes, ncclChar, k, ranks->comm,
                                   tess_device_stream()));
        to += bytes;
    }
    TESS_NCCL(library.group_end());
cleanup:
    return status;
}

static tess_status take_parts(nccl_ranks *ranks, const tess_device_rows *take)
{
    tess_status status = TESS_OK;
    const char *from = (const char *)ranks->received;
    for (int k = 0; k < ranks->size; ++k) {
        if (take[k].bytes > 0 && take[k].count > 0)
            TESS_CUDA(cudaMemcpy2DAsync(take[k].to, (size_t)take[k].stride, from,
                                        (size_t)take[k].bytes, (size_t)take[k].bytes,
                                        (size_t)take[k].count, cudaMemcpyDeviceToDevice,
                                        tess_device_stream()));
        from += take[k].bytes * take[k].count;
    }
cleanup:
    return status;
}

/* All ranks return the same status: the next exchange, or `arrive`, reports a failure
 * to enqueue. */
static tess_status exchange(void *state, tess_status status,
                            const tess_device_part *send, const tess_device_rows *take)
{
    nccl_ranks *ranks = (nccl_ranks *)state;
    if (status == TESS_OK) status = ranks->pending;
    if (status == TESS_OK) status = make_room(ranks, take);
    TESS_TRY(tess_comm_agree(ranks->ranks, status));
    ranks->pending = send_parts(ranks, send, take);
    if (ranks->pending == TESS_OK) ranks->pending = take_parts(ranks, take);
    ranks->failed = ranks->failed || ranks->pending != TESS_OK;
cleanup:
    return status;
}

static tess_status arrive(void *state)
{
    return ((nccl_ranks *)state)->pending;
}

const device_comm_way device_comm_nccl = {"by NCCL", create, reduce_scatter, buffer,
                                          exchange,  arrive, destroy};
