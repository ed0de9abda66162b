/** @file tess_device_comm.h
 *  Sums over ranks of arrays in device memory, which do not pass through host memory.
 *  Devices of one node read each other's memory. NCCL connects devices of several
 * nodes; the program looks for its library when it runs. device_comm.c.
 */
#ifndef TESS_DEVICE_COMM_H
#define TESS_DEVICE_COMM_H

#include "tess_comm.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tess_device_comm tess_device_comm;

/** Ways of summing that may be chosen, the first before the second. */
enum { TESS_SUM_BY_PEERS = 1, TESS_SUM_BY_NCCL = 2 };

/** Connect the devices of the ranks in one of the ways `allowed` (bits), for arrays of
 *  at most `bytes`. Each device holds a buffer of that size. Every rank has taken its
 *  device before. `*device_comm` stays NULL on all ranks when no way is possible: a
 * rank is alone; by peers, ranks are on several nodes or a device cannot read another's
 *  memory; by NCCL, there is no library or two ranks share a device. TESS_ERR_RESOURCE
 *  when the library fails. Collective. */
tess_status tess_device_comm_create(tess_comm *comm, int64_t bytes, unsigned allowed,
                                    tess_device_comm **device_comm);

/** As tess_comm_reduce_scatter, from device memory to device memory. NCCL only enqueues
 *  the sums in the device's stream. Collective. */
tess_status tess_device_comm_reduce_scatter(tess_device_comm *device_comm,
                                            const void *values, void *out,
                                            const int64_t *counts, bool is_double);

/** "by NCCL"; for NULL "through host memory". */
const char *tess_device_comm_text(const tess_device_comm *device_comm);

void tess_device_comm_destroy(
    tess_device_comm *device_comm); /**< NULL is fine. Local. */

#ifdef __cplusplus
}
#endif
#endif
