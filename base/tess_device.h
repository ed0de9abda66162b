/** @file tess_device.h
 *  The GPU of this process as code without CUDA headers sees it: which one, its memory,
 *  and copies. Backends that compute elsewhere do without.
 *
 *  All work goes, in order, into one stream, but for staged uploads, which go beside
 *  it; calls return before it is done unless they say that they wait. One thread at a
 *  time. Local throughout.
 *
 *  Errors: TESS_ERR_ALLOC when device memory is short (the message says how much was
 *  wanted and how much there is), TESS_ERR_RESOURCE for whatever else the device
 *  reports.
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

/** Is there a driver with a device of compute capability 8.0 or more? Never fails. */
bool tess_device_present(void);

/** Take one of the visible devices that will do, as tess_numa_deal deals them to the
 *  `local_size` ranks of a computer, of which this is number `local_rank`.
 *  `numa_node[local_size]` are where they are bound to, or −1. Once; further calls do
 *  nothing. */
tess_status tess_device_start(const int *numa_node, int local_rank, int local_size);

/** So many ranks have taken the device of this one, which may use its part of the
 * memory that was free. */
void tess_device_share(int ranks);

/** Number of the device that was taken, among the visible ones. */
int tess_device_number(void);

/** "NVIDIA H200, 139.8 GiB free" for logs. */
void tess_device_text(char *text, int size);

/** Its PCI bus id; "" when it has none. */
void tess_device_bus_id(char *text, int size);

/** The stream everything is enqueued in, for launches. */
struct CUstream_st *tess_device_stream(void);

/** Memory that this process may still take [bytes]. */
int64_t tess_device_room(void);

/** Most memory that this process has held at a time [bytes]. */
int64_t tess_device_held(void);

/** Memory that this process holds outside of tess_device_alloc [bytes], for
 *  tess_device_held. */
void tess_device_holds(int64_t bytes);

/** Device memory, aligned to 256 bytes; `what` it is for goes into the message of a
 *  failure. Free with tess_device_free (NULL is fine), which waits for nothing. */
tess_status tess_device_alloc(int64_t bytes, const char *what, void **memory);
void tess_device_free(void *memory);

/** Set all bytes to zero. */
tess_status tess_device_zero(void *memory, int64_t bytes);

/** Copy from host memory of any kind; afterwards it may be changed. */
tess_status tess_device_upload(void *to, const void *from, int64_t bytes);

/** A device copy of host memory, `what` as for tess_device_alloc; the caller frees it.
 */
tess_status tess_device_copy_of(const void *host, int64_t bytes, const char *what,
                                const void **out);

/** Copy to host memory of any kind; waits until it is there. */
tess_status tess_device_download(void *to, const void *from, int64_t bytes);

/** Pinned memory to fill for tess_device_upload_staged, tess_device_stage_bytes() of
 *  it; waits until what was in it before is on the device. Each buffer must be uploaded
 *  before the next is asked for. */
tess_status tess_device_stage(void **buffer);
int64_t tess_device_stage_bytes(void);

/** Copy a filled buffer to device memory, while the device works on what was uploaded
 *  before: `to` must not be where the upload before went, and nothing else may use it.
 *  Waits, on the device, for the work on what was uploaded to `to` earlier; what is
 *  enqueued from here on waits for the copy. */
tess_status tess_device_upload_staged(void *to, const void *buffer, int64_t bytes);

/** What was enqueued since the last tess_device_upload_staged is the work on its bytes:
 *  to be told of each, before the next, for tess_device_busy and for whoever uploads
 *  there again. */
tess_status tess_device_staged_worked(void);

/** Enqueue a copy of at most tess_device_stage_bytes() into pinned memory. */
tess_status tess_device_fetch(const void *from, int64_t bytes);

/** Wait for the first fetch that was not waited for: `*buffer` is valid until two more
 *  fetches are enqueued. At most two may be under way, and no uploads meanwhile. */
tess_status tess_device_fetched(void **buffer);

/** Seconds so far that staged uploads and fetches kept the link busy, and that the
 *  device worked on what was uploaded. Waits for them. */
void tess_device_busy(double *link_s, double *device_s);

/** `count` rows of `bytes` bytes, which lie `to_stride` and `from_stride` bytes apart:
 *  to the device, and from it (waits). */
tess_status tess_device_upload_rows(void *to, int64_t to_stride, const void *from,
                                    int64_t from_stride, int64_t bytes, int64_t count);
tess_status tess_device_download_rows(void *to, int64_t to_stride, const void *from,
                                      int64_t from_stride, int64_t bytes,
                                      int64_t count);

/** The same from device memory to device memory. */
tess_status tess_device_copy_rows(void *to, int64_t to_stride, const void *from,
                                  int64_t from_stride, int64_t bytes, int64_t count);

/** Wait until everything enqueued is done, and say whether it went well. */
tess_status tess_device_wait(void);

/** End a turn of work: wait until all turns before this one are done. So the device has
 *  work while the host prepares the next turn. */
tess_status tess_device_turn(void);

/** Of `threads` that a rank has, those that move bytes between host memory and the
 * buffers of the link: as many as the link needs, and fewer than all. OpenMP's threads
 * wait for each other at the end of each buffer, and keep their processors busy while
 * they wait. So where there is a thread for each processor, every other thread of the
 * machine (those of MPI and of CUDA) takes the place of one for which all others wait.
 */
int tess_device_movers(int threads);

/** Threads of this rank, whose tess_device_movers() fill and empty the buffers of the
 * link; 1 before the first call. */
void tess_device_threads(int threads);

#ifdef __cplusplus
}
#endif
#endif
