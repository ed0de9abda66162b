/** @file device_comm_ways.h  (private to mpi/)
 *  The ways in which ranks may sum and exchange arrays of their devices; device_comm.c
 *  chooses.
 */
#ifndef DEVICE_COMM_H
#define DEVICE_COMM_H

#include "tess_device_comm.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct device_comm_way {
    const char *text; /**< "images are summed ..." */
    /** Connect; `*state` stays NULL on all ranks where that cannot be. Collective. */
    tess_status (*create)(tess_comm *comm, const tess_device_comm_opts *opts,
                          void **state);
    /** As tess_device_comm_reduce_scatter. */
    tess_status (*reduce_scatter)(void *state, const void *values, void *out,
                                  const int64_t *counts, bool is_double);
    /** As the tess_device_comm_ functions of their names. */
    tess_status (*buffer)(void *state, void **buffer);
    tess_status (*exchange)(void *state, tess_status status,
                            const tess_device_part *send, const tess_device_rows *take);
    tess_status (*arrive)(void *state);
    void (*destroy)(void *state); /**< Local. */
} device_comm_way;

/** Ranks of one node read each other's device memory. comm_peers.cu */
extern const device_comm_way device_comm_peers;

/** NCCL. comm_nccl.cu, where its header was found. */
extern const device_comm_way device_comm_nccl;

#ifdef __cplusplus
}
#endif
#endif
