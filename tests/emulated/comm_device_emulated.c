/* Both ways of summing over devices on memory that is a device's only by name
 * (device_emulated.c). */
#include "device_comm_ways.h"

#include "tess_device.h"
#include "tess_mem.h"

static tess_status create(tess_comm *comm, int64_t bytes, void **state)
{
    (void)bytes;
    *state = comm;
    return TESS_OK;
}

static tess_status reduce_scatter(void *state, const void *values, void *out,
                                  const int64_t *counts, bool is_double)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_comm_agree(state, tess_device_wait()));
    TESS_TRY(tess_comm_reduce_scatter(state, values, out, counts, is_double));
cleanup:
    return status;
}

static void destroy(void *state)
{
    (void)state;
}

const device_comm_way device_comm_peers = {"by peers", create, reduce_scatter, destroy};
const device_comm_way device_comm_nccl = {"by NCCL", create, reduce_scatter, destroy};
