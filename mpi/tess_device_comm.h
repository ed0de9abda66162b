/** @file tess_device_comm.h
 *  Sums over ranks of arrays in device memory, and exchanges of parts of them, which do
 *  not pass through host memory. Devices of one node read each other's memory. NCCL
 *  connects devices of several nodes; the program looks for its library when it runs.
 *  device_comm.c.
 */
#ifndef TESS_DEVICE_COMM_H
#define TESS_DEVICE_COMM_H

#include "tess_comm.h"
#include "tess_place.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tess_device_comm tess_device_comm;

/** Ways of summing that may be chosen, the first before the second. */
enum { TESS_SUM_BY_PEERS = 1, TESS_SUM_BY_NCCL = 2 };

/** What a connection is for. */
typedef struct tess_device_comm_opts {
    int64_t sum_bytes;      /**< most bytes of an array that is summed */
    int64_t exchange_bytes; /**< most bytes that a rank sends in one exchange; the
                               buffer is rounded up to whole 256 bytes */
    unsigned allowed;       /**< ways (bits) */
} tess_device_comm_opts;

/** Connect the devices of the ranks. Each device holds a buffer for the larger of an
 *  array that is summed and twice what is exchanged. Every rank has taken its device
 *  before. `*device_comm` stays NULL on all ranks when no way is possible: a
 * rank is alone; by peers, ranks are on several nodes or a device cannot read another's
 *  memory; by NCCL, there is no library or two ranks share a device. TESS_ERR_RESOURCE
 *  when the library fails. Collective. */
tess_status tess_device_comm_create(tess_comm *comm, const tess_device_comm_opts *opts,
                                    tess_device_comm **device_comm);

/** As tess_comm_reduce_scatter, from device memory to device memory. NCCL only enqueues
 *  the sums in the device's stream. Collective. */
tess_status tess_device_comm_reduce_scatter(tess_device_comm *device_comm,
                                            const void *values, void *out,
                                            const int64_t *counts, bool is_double);

/** Part of a buffer that is sent to a rank. */
typedef struct tess_device_part {
    int64_t first, bytes;
} tess_device_part;

/** Device memory that receives `count` rows of `bytes` bytes, `stride` bytes apart. */
typedef struct tess_device_rows {
    void *to;
    int64_t stride, bytes, count;
} tess_device_rows;

/** Most bytes that a rank sends in one exchange. Local. */
int64_t tess_device_comm_room(const tess_device_comm *device_comm);

/** The buffer, of so many bytes, from which the next exchange sends. It is filled by
 *  what is enqueued in tess_device_stream() from here on, while what was sent before
 * may still be on its way. Local. */
tess_status tess_device_comm_buffer(tess_device_comm *device_comm, void **buffer);

/** Send parts of that buffer, send[P], one to each rank; what rank k sends goes to
 *  take[k], dense, as many bytes as rank k has for this rank. `status` is what has
 * become of this rank's preparations, on which the ranks agree. Only enqueues, after
 * what is in tess_device_stream() by now and beside what follows there. Collective. */
tess_status tess_device_comm_exchange(tess_device_comm *device_comm, tess_status status,
                                      const tess_device_part *send,
                                      const tess_device_rows *take);

/** What is enqueued in tess_device_stream() from here on comes after everything that
 * was received. Local. */
tess_status tess_device_comm_arrive(tess_device_comm *device_comm);

/** Bytes of device memory, one behind the other. */
typedef struct tess_device_span {
    void *at;
    int64_t bytes;
} tess_device_span;

/** Whether the ranks of `device_comm`, which may be NULL, can move arrays: the buffer
 * has a part for each rank. Local. */
bool tess_device_comm_moves(const tess_device_comm *device_comm);

/** As tess_comm_alltoallv, from device memory to device memory, in as many exchanges as
 * the buffer needs: send[P] are this rank's arrays for each rank, and take[P] is where
 * those of each rank go, of as many bytes as that rank sends here. `place` is that
 * memory. What is enqueued in tess_device_stream() after the call comes after what was
 * received. Counts the bytes that other ranks send. TESS_ERR_ALLOC. Collective. */
tess_status tess_device_comm_move(tess_device_comm *device_comm,
                                  const tess_place *place, const tess_device_span *send,
                                  const tess_device_span *take);

/** Bytes that this rank has got from others by tess_device_comm_move. Local. */
int64_t tess_device_comm_moved(const tess_device_comm *device_comm);

/** "by NCCL"; for NULL "through host memory". */
const char *tess_device_comm_text(const tess_device_comm *device_comm);

void tess_device_comm_destroy(
    tess_device_comm *device_comm); /**< NULL is fine. Local. */

#ifdef __cplusplus
}
#endif
#endif
