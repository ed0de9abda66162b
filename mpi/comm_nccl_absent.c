/* Without NCCL: sums go through host memory. */
#include "tess_device_comm.h"

tess_status tess_device_comm_create(tess_comm *comm, tess_device_comm **device_comm)
{
    (void)comm;
    (void)device_comm;
    return TESS_OK;
}

tess_status tess_device_comm_reduce_scatter(tess_device_comm *device_comm,
                                            const void *values, void *out,
                                            const int64_t *counts, bool is_double)
{
    tess_status status = TESS_OK;
    (void)device_comm;
    (void)values;
    (void)out;
    (void)counts;
    (void)is_double;
    TESS_FAIL(TESS_ERR_INTERNAL, "built without NCCL");
cleanup:
    return status;
}

void tess_device_comm_destroy(tess_device_comm *device_comm)
{
    (void)device_comm;
}
