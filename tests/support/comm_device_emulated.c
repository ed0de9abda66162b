/* tess_device_comm.h on memory that is a device's only by name (device_emulated.c). */
#include "tess_device_comm.h"

#include "tess_mem.h"

struct tess_device_comm {
    tess_comm *comm;
};

tess_status tess_device_comm_create(tess_comm *comm, tess_device_comm **device_comm)
{
    tess_status status = TESS_OK;
    if (tess_comm_size(comm) == 1) return TESS_OK;
    *device_comm = tess_alloc(1, sizeof **device_comm);
    if (!*device_comm) TESS_FAIL(TESS_ERR_ALLOC, "communicator");
    (*device_comm)->comm = comm;
cleanup:
    return status;
}

tess_status tess_device_comm_reduce_scatter(tess_device_comm *device_comm,
                                            const void *values, void *out,
                                            const int64_t *counts, bool is_double)
{
    return tess_comm_reduce_scatter(device_comm->comm, values, out, counts, is_double);
}

void tess_device_comm_destroy(tess_device_comm *device_comm)
{
    tess_free(device_comm);
}
