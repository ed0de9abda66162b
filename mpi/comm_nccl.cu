/* tess_device_comm.h by NCCL. The library is opened when it is needed, so that a program
 * built with it runs where it is not. */
#include "tess_device_comm.h"

#include <dlfcn.h>
#include <nccl.h>
#include <string.h>

#include "tess_cuda.h"
#include "tess_device.h"
#include "tess_mem.h"

/* What is used of the library. */
struct nccl_library {
    void *handle;
    decltype(&ncclGetUniqueId) get_unique_id;
    decltype(&ncclCommInitRank) init_rank;
    decltype(&ncclCommDestroy) destroy;
    decltype(&ncclReduce) reduce;
    decltype(&ncclGroupStart) group_start;
    decltype(&ncclGroupEnd) group_end;
    decltype(&ncclGetErrorString) error_string;
};

struct tess_device_comm {
    ncclComm_t comm;
    int rank, size;
};

/* A library lives in a process once. */
static nccl_library library;

#define TESS_NCCL(call)                                                              \
    do {                                                                             \
        const ncclResult_t tess_nccl_result = (call);                                \
        if (tess_nccl_result != ncclSuccess)                                         \
            TESS_FAIL(TESS_ERR_RESOURCE, "NCCL: %s",                                 \
                      library.error_string(tess_nccl_result));                       \
    } while (0)

template <typename function>
static bool find(const char *name, function *out)
{
    *out = (function)dlsym(library.handle, name);
    return *out != NULL;
}

/* Is it there, with all that is used? */
static bool open_library(void)
{
    if (library.handle) return true;
    library.handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library.handle) return false;
    if (find("ncclGetUniqueId", &library.get_unique_id) &&
        find("ncclCommInitRank", &library.init_rank) &&
        find("ncclCommDestroy", &library.destroy) && find("ncclReduce", &library.reduce) &&
        find("ncclGroupStart", &library.group_start) &&
        find("ncclGroupEnd", &library.group_end) &&
        find("ncclGetErrorString", &library.error_string))
        return true;
    dlclose(library.handle);
    library.handle = NULL;
    return false;
}

/* Do all ranks have the library, and a device each? Collective. */
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

static tess_status connect(tess_device_comm *made, ncclUniqueId id)
{
    tess_status status = TESS_OK;
    TESS_NCCL(library.init_rank(&made->comm, made->size, id, made->rank));
cleanup:
    return status;
}

tess_status tess_device_comm_reduce_scatter(tess_device_comm *device_comm,
                                            const void *values, void *out,
                                            const int64_t *counts, bool is_double)
{
    tess_status status = TESS_OK;
    const size_t element = is_double ? sizeof(double) : sizeof(float);
    const char *from = (const char *)values;
    TESS_NCCL(library.group_start());
    for (int k = 0; k < device_comm->size; ++k) {
        TESS_NCCL(library.reduce(from, out, (size_t)counts[k],
                                          is_double ? ncclDouble : ncclFloat, ncclSum, k,
                                          device_comm->comm, tess_device_stream()));
        from += (size_t)counts[k] * element;
    }
    TESS_NCCL(library.group_end());
cleanup:
    return status;
}

/* The first use makes the connections, for tenths of a second. */
static tess_status first_sum(tess_device_comm *made)
{
    tess_status status = TESS_OK;
    const int64_t count = 1 << 16;
    void *values = NULL, *out = NULL;
    int64_t *counts = (int64_t *)tess_alloc(made->size, sizeof *counts);
    if (!counts) TESS_FAIL(TESS_ERR_ALLOC, "communicator");
    for (int k = 0; k < made->size; ++k) counts[k] = count;
    TESS_TRY(tess_device_alloc(count * made->size * 4, "sums over ranks", &values));
    TESS_TRY(tess_device_alloc(count * 4, "sums over ranks", &out));
    TESS_TRY(tess_device_zero(values, count * made->size * 4));
    TESS_TRY(tess_device_comm_reduce_scatter(made, values, out, counts, false));
    TESS_TRY(tess_device_wait());
cleanup:
    tess_free(counts);
    tess_device_free(values);
    tess_device_free(out);
    return status;
}

tess_status tess_device_comm_create(tess_comm *comm, tess_device_comm **device_comm)
{
    tess_status status = TESS_OK;
    tess_device_comm *made = NULL;
    ncclUniqueId id;
    bool may = false;
    if (tess_comm_size(comm) == 1) return TESS_OK;
    TESS_TRY(may_connect(comm, &may));
    if (!may) return TESS_OK;
    made = (tess_device_comm *)tess_alloc_zero(1, sizeof *made);
    status = made ? get_id(tess_comm_rank(comm), &id) : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_bcast(comm, &id, sizeof id, 0));
    made->rank = tess_comm_rank(comm);
    made->size = tess_comm_size(comm);
    status = connect(made, id);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_agree(comm, first_sum(made)));
    *device_comm = made;
    made = NULL;
cleanup:
    tess_device_comm_destroy(made);
    return status;
}

void tess_device_comm_destroy(tess_device_comm *device_comm)
{
    if (!device_comm) return;
    if (device_comm->comm) (void)library.destroy(device_comm->comm);
    tess_free(device_comm);
}
