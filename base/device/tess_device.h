/** @file tess_device.h
 *  The GPU of this process, for code without its headers: the choice of the device,
 *  its memory, and copies. Backends that compute on processors do not use it.
 *
 *  Work is enqueued in the stream of the calling thread's lane, in order. Only staged
 *  uploads are done beside this stream. Calls return before their work is done, unless
 *  their comment says that they wait. Every thread is in the first lane until it enters
 *  another one. One thread at a time may call these functions in a lane. All are Local.
 *
 *  Errors: TESS_ERR_ALLOC if device memory is short; the message says how much was
 *  asked for and how much is free. TESS_ERR_RESOURCE for any other error of the device.
 */
#ifndef TESS_DEVICE_H
#define TESS_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/** Whether there is a driver, and a device of compute capability 8.0 or more. Never
 * fails. */
bool tess_device_present(void);

/** Take one of the visible devices of that compute capability. tess_numa_deal deals the
 * devices to the `local_size` ranks of a computer; this rank has the number
 * `local_rank`. `numa_node[local_size]` is the NUMA node to which each rank is bound,
 * or −1. Only the first call takes a device; later calls do nothing. */
tess_status tess_device_start(const int *numa_node, int local_rank, int local_size);

/** Say that `ranks` ranks have taken the device of this rank. Each of them may use its
 * part of the memory that was free when all of them had. Local, but no rank of the node
 * allocates anything before all have called it. */
tess_status tess_device_share(int ranks);

/** Number of the device that was taken, counted among the visible devices. */
int tess_device_number(void);

/** A text like "NVIDIA H200, 139.8 GiB free", for logs. */
void tess_device_text(char *text, int size);

/** PCI bus id of the device; "" if it has none. */
void tess_device_bus_id(char *text, int size);

/** The stream in which this thread's work is enqueued, for kernel launches. */
struct CUstream_st *tess_device_stream(void);

/** Number of lanes that there may be. */
enum { TESS_DEVICE_LANES = 32 };

/** Say that `num_lanes` lanes work side by side from here on, each with its part of the
 * memory that is free; 1: the first lane alone. Waits for the work of this lane. No
 * other lane is at work. */
tess_status tess_device_split(int num_lanes);

/** Let this thread work in a lane, 0 … num_lanes − 1, which no other thread is in, and
 * get it back to the first lane, when all the work of its lane is done. What one lane
 * has allocated, others may use and free after that. */
tess_status tess_device_enter(int lane);
tess_status tess_device_leave(void);

/** Device memory that a lane of this process may still take [bytes]. */
int64_t tess_device_room(void);

/** Largest amount of device memory that this process has held at a time [bytes]. */
int64_t tess_device_held(void);

/** Say how much device memory this process holds that tess_device_alloc did not
 * allocate [bytes]; tess_device_held counts it, and tess_device_room leaves it out. */
void tess_device_holds(int64_t bytes);

/** Allocate device memory, aligned to 256 bytes. `what` says what the memory is for, in
 * the message of a failure. Free it with tess_device_free, which waits for nothing and
 * takes NULL, too. */
tess_status tess_device_alloc(int64_t bytes, const char *what, void **memory);
void tess_device_free(void *memory);

/** Set all bytes of device memory to zero. */
tess_status tess_device_zero(void *memory, int64_t bytes);

/** Copy from host memory of any kind. The host memory may be changed as soon as the
 * call returns. */
tess_status tess_device_upload(void *to, const void *from, int64_t bytes);

/** Allocate device memory and copy host memory to it. `what` is as for
 * tess_device_alloc. The caller frees the copy. */
tess_status tess_device_copy_of(const void *host, int64_t bytes, const char *what,
                                const void **out);

/** Copy to host memory of any kind, and wait until the copy is done. */
tess_status tess_device_download(void *to, const void *from, int64_t bytes);

/** Get a buffer of pinned memory, to be filled for tess_device_upload_staged. It has
 * tess_device_stage_bytes(). The call waits until the previous content of the buffer is
 * on the device. Each buffer must be uploaded before the next one is asked for. */
tess_status tess_device_stage(void **buffer);
int64_t tess_device_stage_bytes(void);

/** Copy a filled buffer to device memory, while the device works on what was uploaded
 * before. `to` must not be the target of the previous upload, and no other work may use
 * it. On the device, the copy waits for the work on what was uploaded to `to` earlier.
 * Work that is enqueued after this call waits for the copy. */
tess_status tess_device_upload_staged(void *to, const void *buffer, int64_t bytes);

/** Say that the work on the bytes of the last tess_device_upload_staged has been
 * enqueued. To be called for each upload, before the next upload. tess_device_busy, and
 * later uploads to the same memory, need to know this. */
tess_status tess_device_staged_worked(void);

/** Enqueue a copy of at most tess_device_stage_bytes() to pinned memory. */
tess_status tess_device_fetch(const void *from, int64_t bytes);

/** Wait for the oldest tess_device_fetch that was not waited for yet. `*buffer` is
 * valid until two more fetches are enqueued. At most two fetches may be under way at a
 * time, and no uploads. */
tess_status tess_device_fetched(void **buffer);

/** Get the seconds so far in which staged uploads and fetches used the link, and in
 * which the device worked on what was uploaded. Waits for the uploads and fetches. */
void tess_device_busy(double *link_s, double *device_s);

/** Copy `count` rows of `bytes` bytes, which are `to_stride` and `from_stride` bytes
 * apart, to the device or from it. Copies from the device wait until they are done. */
tess_status tess_device_upload_rows(void *to, int64_t to_stride, const void *from,
                                    int64_t from_stride, int64_t bytes, int64_t count);
tess_status tess_device_download_rows(void *to, int64_t to_stride, const void *from,
                                      int64_t from_stride, int64_t bytes,
                                      int64_t count);

/** Copy such rows from device memory to device memory. */
tess_status tess_device_copy_rows(void *to, int64_t to_stride, const void *from,
                                  int64_t from_stride, int64_t bytes, int64_t count);

/** Wait until all work of this lane is done, and return whether it succeeded. */
tess_status tess_device_wait(void);

/** End a turn of a lane's work: wait until all turns before this one are done. The
 * device then has work while the host prepares the next turn. */
tess_status tess_device_turn(void);

/** How many of the `threads` of a rank copy bytes between host memory and the buffers
 * of the link. They are as many as the link needs, and fewer than all. OpenMP's threads
 * wait for one another at the end of each buffer, and keep their processors busy while
 * they wait. If every processor had such a thread, each other thread of the machine, as
 * MPI and the device's driver have, would take the processor of a thread for which all
 * others wait. */
int tess_device_movers(int threads);

/** Set the number of threads of this rank; tess_device_movers() of them fill and empty
 * the buffers of the link. It is 1 before the first call. */
void tess_device_threads(int threads);

#ifdef __cplusplus
}
#endif
#endif
