/** @file tess_device_comm.h
 *  Sums over ranks of arrays in device memory, without host memory between: by NCCL,
 *  which is looked for when the program runs. comm_nccl.cu; comm_nccl_absent.c where
 *  its header was not found.
 */
#ifndef TESS_DEVICE_COMM_H
#define TESS_DEVICE_COMM_H

#include "tess_comm.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tess_device_comm tess_device_comm;

/** Connect the ranks' devices; `*device_comm` stays NULL on all of them where that
 *  cannot be: no library, one rank alone, or ranks that share a device. Every rank has
 *  taken its device. TESS_ERR_RESOURCE when the library fails. Collective. */
tess_status tess_device_comm_create(tess_comm *comm, tess_device_comm **device_comm);

/** As tess_comm_reduce_scatter, from device memory to device memory; enqueued.
 *  Collective. */
tess_status tess_device_comm_reduce_scatter(tess_device_comm *device_comm,
                                            const void *values, void *out,
                                            const int64_t *counts, bool is_double);

void tess_device_comm_destroy(
    tess_device_comm *device_comm); /**< NULL is fine. Collective. */

#ifdef __cplusplus
}
#endif
#endif
