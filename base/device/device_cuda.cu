/* tess_device.h on CUDA. Device memory comes from the device's pool in stream order, which
 * keeps what is given back, so that allocating costs microseconds after the first time.
 * Copies from pageable memory go through a ring of pinned buffers that threads fill while
 * the link empties others. Rows that are streamed are copied in a stream of their own, so
 * that some are on the link while the device works on those before; events order the two
 * streams. */
#include "tess_device.h"

#include <stdio.h>
#include <string.h>

#include "tess_cuda.h"
#include "tess_mem.h"
#include "tess_numa.h"

/* The ring has 4 × 16 MiB. On a link of 55 GB/s, 16 MiB take 0.3 ms, which is long
 * against the launch of a copy. To pin 64 MiB takes about 20 ms. */
enum { RING_BUFFERS = 4 };
static const int64_t RING_BYTES = 16 << 20;

/* Copies of at most this size lie one after the other in a pinned buffer. So a table of
 * some kB does not take a buffer of the ring, and does not wait until the stream has
 * done the buffer's earlier copy. The driver would stage such a copy from pageable
 * memory itself, and would wait for the stream if it has more than 64 kB. */
static const int64_t SMALL_BYTES = 2 << 20;
enum { TABLE_BUFFERS = 2 };
static const int64_t TABLE_BYTES = 8 << 20;

/* The tensor-core kernels' cp.async and their mma shapes need it. */
enum { LEAST_COMPUTE_MAJOR = 8, MOST_DEVICES = 64 };

/* Share of the memory free at the start that ranks may take; the rest is for libraries'
 * work space and the pool's rounding. */
static const double MEMORY_SHARE = 0.92;

/* The device of the process. CUDA keeps its state per process, too, so no caller could
 * have two devices. */
static struct {
    bool started;
    int number;
    cudaStream_t stream, copies; /* `copies`: for staged uploads, beside `stream` */
    cudaEvent_t allocated;       /* in `stream`, behind all allocations so far */
    cudaMemPool_t pool;
    int64_t allowed;            /* bytes that all ranks with this device may take */
    int64_t limit;              /* bytes this process may take */
    int64_t outside;            /* bytes that do not come from the pool */
    char *ring[RING_BUFFERS];   /* pinned */
    cudaEvent_t ring_free[RING_BUFFERS];
    int next_buffer, threads;
    /* for the copy of each buffer by tess_device_upload_staged or tess_device_fetch:
     * when it began and ended, and when the work on the uploaded bytes began and ended
     */
    cudaEvent_t began[RING_BUFFERS], copied[RING_BUFFERS];
    cudaEvent_t work_began[RING_BUFFERS], worked[RING_BUFFERS];
    bool timed[RING_BUFFERS], worked_on[RING_BUFFERS];
    const void *target[RING_BUFFERS]; /* device memory to which the buffer was uploaded */
    int last_staged;
    int fetched_first, num_fetched; /* buffers that tess_device_fetch fills */
    double link_busy_s, device_busy_s;
} device;

/* Buffers of small copies, in which the bytes stay until the stream has copied them. */
static struct {
    char *buffer[TABLE_BUFFERS]; /* pinned */
    cudaEvent_t done[TABLE_BUFFERS];
    int now;
    int64_t used;
} table;

/* Ends of the last two turns of work. */
static struct {
    cudaEvent_t end[2];
    int last;
} turn;

/* Lists the numbers of the visible devices that can be used, and returns how many there
 * are; 0 if there is no driver. */
static int list_devices(int number[MOST_DEVICES])
{
    int count = 0, usable = 0, major = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0;
    for (int k = 0; k < count && usable < MOST_DEVICES; ++k)
        if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, k) ==
                cudaSuccess &&
            major >= LEAST_COMPUTE_MAJOR)
            number[usable++] = k;
    (void)cudaGetLastError();
    return usable;
}

bool tess_device_present(void)
{
    int number[MOST_DEVICES];
    return list_devices(number) > 0;
}

static tess_status make_ring(void)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < RING_BUFFERS; ++k) {
        TESS_CUDA(cudaHostAlloc((void **)&device.ring[k], RING_BYTES,
                                cudaHostAllocPortable));
        TESS_CUDA(cudaEventCreateWithFlags(&device.ring_free[k], cudaEventDisableTiming));
        TESS_CUDA(cudaEventCreate(&device.began[k]));
        TESS_CUDA(cudaEventCreate(&device.copied[k]));
        TESS_CUDA(cudaEventCreate(&device.work_began[k]));
        TESS_CUDA(cudaEventCreate(&device.worked[k]));
    }
    for (int k = 0; k < TABLE_BUFFERS; ++k) {
        TESS_CUDA(cudaHostAlloc((void **)&table.buffer[k], TABLE_BYTES,
                                cudaHostAllocPortable));
        TESS_CUDA(cudaEventCreateWithFlags(&table.done[k], cudaEventDisableTiming));
    }
    for (int k = 0; k < 2; ++k)
        TESS_CUDA(cudaEventCreateWithFlags(&turn.end[k], cudaEventDisableTiming));
cleanup:
    return status;
}

/* One of the usable devices, near this rank's processors if there is one. */
static int choose_device(const int *numa_node, int local_rank, int local_size,
                         const int *number, int count)
{
    int near[MOST_DEVICES], own = local_rank % count;
    int *dealt = (int *)tess_alloc(local_size, sizeof *dealt);
    for (int d = 0; d < count; ++d) {
        char bus_id[32] = "";
        (void)cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, number[d]);
        near[d] = tess_numa_of_pci("/sys", bus_id);
    }
    (void)cudaGetLastError();
    if (dealt) {
        tess_numa_deal(numa_node, local_size, near, count, dealt);
        own = dealt[local_rank];
    }
    tess_free(dealt);
    return number[own];
}

tess_status tess_device_start(const int *numa_node, int local_rank, int local_size)
{
    tess_status status = TESS_OK;
    int number[MOST_DEVICES], count = 0;
    size_t free_bytes = 0, total_bytes = 0;
    uint64_t keep = UINT64_MAX;
    if (device.started) return TESS_OK;
    count = list_devices(number);
    if (count == 0) TESS_FAIL(TESS_ERR_RESOURCE, "there is no GPU that will do");
    device.number = choose_device(numa_node, local_rank, local_size, number, count);
    TESS_CUDA(cudaSetDevice(device.number));
    TESS_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
    device.limit = device.allowed = (int64_t)(MEMORY_SHARE * (double)free_bytes);
    TESS_CUDA(cudaStreamCreateWithFlags(&device.stream, cudaStreamNonBlocking));
    TESS_CUDA(cudaStreamCreateWithFlags(&device.copies, cudaStreamNonBlocking));
    TESS_CUDA(cudaEventCreateWithFlags(&device.allocated, cudaEventDisableTiming));
    TESS_CUDA(cudaDeviceGetDefaultMemPool(&device.pool, device.number));
    TESS_CUDA(cudaMemPoolSetAttribute(device.pool, cudaMemPoolAttrReleaseThreshold, &keep));
    TESS_TRY(make_ring());
    if (device.threads < 1) device.threads = 1;
    device.started = true;
cleanup:
    return status;
}

void tess_device_share(int ranks)
{
    device.limit = device.allowed / ranks;
}

int tess_device_number(void)
{
    return device.number;
}

void tess_device_text(char *text, int size)
{
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, device.number) != cudaSuccess) {
        (void)cudaGetLastError();
        snprintf(text, (size_t)size, "device %d", device.number);
        return;
    }
    snprintf(text, (size_t)size, "%s, %s may be used", properties.name,
             tess_mem_text((double)device.limit));
}

void tess_device_bus_id(char *text, int size)
{
    if (cudaDeviceGetPCIBusId(text, size, device.number) == cudaSuccess) return;
    (void)cudaGetLastError();
    text[0] = '\0';
}

struct CUstream_st *tess_device_stream(void)
{
    return device.stream;
}

void tess_device_threads(int threads)
{
    device.threads = tess_device_movers(threads);
}

/* ---- memory ---- */

static int64_t pool_attribute(cudaMemPoolAttr attribute)
{
    uint64_t value = 0;
    if (cudaMemPoolGetAttribute(device.pool, attribute, &value) != cudaSuccess)
        (void)cudaGetLastError();
    return (int64_t)value;
}

int64_t tess_device_room(void)
{
    size_t free_bytes = 0, total_bytes = 0;
    const int64_t used = pool_attribute(cudaMemPoolAttrUsedMemCurrent);
    const int64_t reserved = pool_attribute(cudaMemPoolAttrReservedMemCurrent);
    /* A working device always answers. A lost device must not look like a full one: the
     * next call that uses it reports the failure. */
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) {
        (void)cudaGetLastError();
        return device.limit;
    }
    const int64_t there = (int64_t)free_bytes + reserved - used;
    const int64_t allowed = device.limit - used;
    return allowed < there ? allowed : there;
}

void tess_device_holds(int64_t bytes)
{
    device.outside = bytes;
}

int64_t tess_device_held(void)
{
    return pool_attribute(cudaMemPoolAttrUsedMemHigh) + device.outside;
}

/* Memory that the pool has got from the driver and that is not in use. To ask the
 * driver takes longer than to take memory from the pool. */
static int64_t spare_bytes(void)
{
    const int64_t used = pool_attribute(cudaMemPoolAttrUsedMemCurrent);
    const int64_t spare = pool_attribute(cudaMemPoolAttrReservedMemCurrent) - used;
    const int64_t allowed = device.limit - used;
    return allowed < spare ? allowed : spare;
}

tess_status tess_device_alloc(int64_t bytes, const char *what, void **memory)
{
    tess_status status = TESS_OK;
    void *made = NULL;
    const int64_t wanted = bytes > 0 ? bytes : 1;
    if (wanted > spare_bytes() && wanted > tess_device_room())
        TESS_FAIL(TESS_ERR_ALLOC,
                  "no device memory for %s: %s wanted, %s there; use more GPUs, a smaller "
                  "--size, or --backend cpu",
                  what, tess_mem_text((double)wanted),
                  tess_mem_text((double)tess_device_room()));
    TESS_CUDA(cudaMallocAsync(&made, (size_t)wanted, device.stream));
    TESS_CUDA(cudaEventRecord(device.allocated, device.stream));
    *memory = made;
    made = NULL;
cleanup:
    tess_device_free(made);
    return status;
}

void tess_device_free(void *memory)
{
    if (!memory) return;
    if (cudaFreeAsync(memory, device.stream) != cudaSuccess) (void)cudaGetLastError();
}

tess_status tess_device_zero(void *memory, int64_t bytes)
{
    tess_status status = TESS_OK;
    if (bytes > 0) TESS_CUDA(cudaMemsetAsync(memory, 0, (size_t)bytes, device.stream));
cleanup:
    return status;
}

tess_status tess_device_wait(void)
{
    tess_status status = TESS_OK;
    TESS_CUDA(cudaStreamSynchronize(device.stream));
cleanup:
    return status;
}

tess_status tess_device_turn(void)
{
    tess_status status = TESS_OK;
    const int former = turn.last, now = 1 - former;
    TESS_CUDA(cudaEventRecord(turn.end[now], device.stream));
    turn.last = now;
    TESS_CUDA(cudaEventSynchronize(turn.end[former]));
cleanup:
    return status;
}

/* ---- copies ---- */

/* memcpy by several threads: one alone is slower than the link. */
static void copy_in_parallel(char *to, const char *from, int64_t bytes)
{
    const int threads = bytes < (1 << 20) ? 1 : device.threads;
    #pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; ++t) {
        const int64_t first = bytes * t / threads, end = bytes * (t + 1) / threads;
        memcpy(to + first, from + first, (size_t)(end - first));
    }
}

static int take_buffer(void)
{
    const int k = device.next_buffer;
    device.next_buffer = (k + 1) % RING_BUFFERS;
    return k;
}

/* Finds room for a small copy. The call waits until the earlier copies in that place
 * are done. */
static tess_status take_table(int64_t bytes, char **room)
{
    tess_status status = TESS_OK;
    if (table.used + bytes > TABLE_BYTES) {
        table.now = (table.now + 1) % TABLE_BUFFERS;
        table.used = 0;
        TESS_CUDA(cudaEventSynchronize(table.done[table.now]));
    }
    *room = table.buffer[table.now] + table.used;
    table.used += (bytes + 255) / 256 * 256;
cleanup:
    return status;
}

static tess_status upload_small(void *to, const void *from, int64_t bytes)
{
    tess_status status = TESS_OK;
    char *room = NULL;
    TESS_TRY(take_table(bytes, &room));
    memcpy(room, from, (size_t)bytes);
    TESS_CUDA(
        cudaMemcpyAsync(to, room, (size_t)bytes, cudaMemcpyHostToDevice, device.stream));
    TESS_CUDA(cudaEventRecord(table.done[table.now], device.stream));
cleanup:
    return status;
}

tess_status tess_device_upload(void *to, const void *from, int64_t bytes)
{
    tess_status status = TESS_OK;
    if (bytes <= 0) return TESS_OK;
    if (bytes <= SMALL_BYTES) return upload_small(to, from, bytes);
    for (int64_t done = 0; done < bytes; done += RING_BYTES) {
        const int64_t count = bytes - done < RING_BYTES ? bytes - done : RING_BYTES;
        const int k = take_buffer();
        TESS_CUDA(cudaEventSynchronize(device.ring_free[k]));
        copy_in_parallel(device.ring[k], (const char *)from + done, count);
        TESS_CUDA(cudaMemcpyAsync((char *)to + done, device.ring[k], (size_t)count,
                                  cudaMemcpyHostToDevice, device.stream));
        TESS_CUDA(cudaEventRecord(device.ring_free[k], device.stream));
    }
cleanup:
    return status;
}

/* ---- rows that are streamed ---- */

/* Count the last timed copy of a buffer, and the work on it, when they are done. */
static tess_status settle(int k)
{
    tess_status status = TESS_OK;
    float copy_ms = 0, work_ms = 0;
    if (!device.timed[k]) return TESS_OK;
    device.timed[k] = false;
    TESS_CUDA(cudaEventSynchronize(device.worked_on[k] ? device.worked[k]
                                                       : device.copied[k]));
    TESS_CUDA(cudaEventElapsedTime(&copy_ms, device.began[k], device.copied[k]));
    if (device.worked_on[k])
        TESS_CUDA(cudaEventElapsedTime(&work_ms, device.work_began[k], device.worked[k]));
    device.link_busy_s += 1e-3 * (double)copy_ms;
    device.device_busy_s += 1e-3 * (double)work_ms;
cleanup:
    return status;
}

/* Enqueues a copy between a buffer and the device, and measures its time. */
static tess_status copy_timed(int k, void *to, const void *from, int64_t bytes,
                              cudaMemcpyKind kind, cudaStream_t stream)
{
    tess_status status = TESS_OK;
    TESS_CUDA(cudaEventRecord(device.began[k], stream));
    TESS_CUDA(cudaMemcpyAsync(to, from, (size_t)bytes, kind, stream));
    TESS_CUDA(cudaEventRecord(device.copied[k], stream));
    TESS_CUDA(cudaEventRecord(device.ring_free[k], stream));
    device.timed[k] = true;
    device.worked_on[k] = false;
cleanup:
    return status;
}

int64_t tess_device_stage_bytes(void)
{
    return RING_BYTES;
}

tess_status tess_device_stage(void **buffer)
{
    tess_status status = TESS_OK;
    const int k = device.next_buffer;
    TESS_TRY(settle(k));
    TESS_CUDA(cudaEventSynchronize(device.ring_free[k]));
    *buffer = device.ring[k];
cleanup:
    return status;
}

/* Lets later copies wait until `to` may be written: the other stream has allocated it,
 * and work on its earlier content may still go on. */
static tess_status copies_wait_for(const void *to)
{
    tess_status status = TESS_OK;
    TESS_CUDA(cudaStreamWaitEvent(device.copies, device.allocated, 0));
    for (int k = 0; k < RING_BUFFERS; ++k)
        if (device.timed[k] && device.worked_on[k] && device.target[k] == to)
            TESS_CUDA(cudaStreamWaitEvent(device.copies, device.worked[k], 0));
cleanup:
    return status;
}

tess_status tess_device_upload_staged(void *to, const void *buffer, int64_t bytes)
{
    tess_status status = TESS_OK;
    const int k = take_buffer();
    TESS_TRY(copies_wait_for(to));
    TESS_TRY(copy_timed(k, to, buffer, bytes, cudaMemcpyHostToDevice, device.copies));
    TESS_CUDA(cudaStreamWaitEvent(device.stream, device.copied[k], 0));
    TESS_CUDA(cudaEventRecord(device.work_began[k], device.stream));
    device.target[k] = to;
    device.last_staged = k;
cleanup:
    return status;
}

tess_status tess_device_staged_worked(void)
{
    tess_status status = TESS_OK;
    TESS_CUDA(cudaEventRecord(device.worked[device.last_staged], device.stream));
    device.worked_on[device.last_staged] = true;
cleanup:
    return status;
}

tess_status tess_device_fetch(const void *from, int64_t bytes)
{
    tess_status status = TESS_OK;
    void *buffer;
    int k;
    TESS_TRY(tess_device_stage(&buffer));
    k = take_buffer();
    if (device.num_fetched++ == 0) device.fetched_first = k;
    TESS_TRY(copy_timed(k, buffer, from, bytes, cudaMemcpyDeviceToHost, device.stream));
cleanup:
    return status;
}

tess_status tess_device_fetched(void **buffer)
{
    tess_status status = TESS_OK;
    const int k = device.fetched_first;
    device.fetched_first = (k + 1) % RING_BUFFERS;
    --device.num_fetched;
    TESS_CUDA(cudaEventSynchronize(device.ring_free[k]));
    *buffer = device.ring[k];
cleanup:
    return status;
}

void tess_device_busy(double *link_s, double *device_s)
{
    for (int k = 0; k < RING_BUFFERS; ++k)
        if (settle(k) != TESS_OK) tess_error_clear(); /* times only */
    *link_s = device.link_busy_s;
    *device_s = device.device_busy_s;
}

/* ---- other copies ---- */

/* While threads empty one buffer, the next ones are on their way. */
tess_status tess_device_download(void *to, const void *from, int64_t bytes)
{
    tess_status status = TESS_OK;
    int buffer[RING_BUFFERS];
    const int64_t parts = (bytes + RING_BYTES - 1) / RING_BYTES;
    for (int64_t k = 0; k < parts + RING_BUFFERS - 1; ++k) {
        const int64_t arrived = k - (RING_BUFFERS - 1);
        if (k < parts) {
            const int64_t at = k * RING_BYTES;
            const int64_t count = bytes - at < RING_BYTES ? bytes - at : RING_BYTES;
            const int b = buffer[k % RING_BUFFERS] = take_buffer();
            TESS_CUDA(cudaEventSynchronize(device.ring_free[b]));
            TESS_CUDA(cudaMemcpyAsync(device.ring[b], (const char *)from + at, (size_t)count,
                                      cudaMemcpyDeviceToHost, device.stream));
            TESS_CUDA(cudaEventRecord(device.ring_free[b], device.stream));
        }
        if (arrived >= 0 && arrived < parts) {
            const int64_t at = arrived * RING_BYTES;
            const int64_t count = bytes - at < RING_BYTES ? bytes - at : RING_BYTES;
            const int b = buffer[arrived % RING_BUFFERS];
            TESS_CUDA(cudaEventSynchronize(device.ring_free[b]));
            copy_in_parallel((char *)to + at, device.ring[b], count);
        }
    }
    TESS_TRY(tess_device_wait());
cleanup:
    return status;
}

static tess_status copy_rows(void *to, int64_t to_stride, const void *from,
                             int64_t from_stride, int64_t bytes, int64_t count,
                             cudaMemcpyKind kind)
{
    tess_status status = TESS_OK;
    if (bytes > 0 && count > 0)
        TESS_CUDA(cudaMemcpy2DAsync(to, (size_t)to_stride, from, (size_t)from_stride,
                                    (size_t)bytes, (size_t)count, kind, device.stream));
    TESS_TRY(tess_device_wait());
cleanup:
    return status;
}

tess_status tess_device_upload_rows(void *to, int64_t to_stride, const void *from,
                                    int64_t from_stride, int64_t bytes, int64_t count)
{
    return copy_rows(to, to_stride, from, from_stride, bytes, count,
                     cudaMemcpyHostToDevice);
}

tess_status tess_device_download_rows(void *to, int64_t to_stride, const void *from,
                                      int64_t from_stride, int64_t bytes, int64_t count)
{
    return copy_rows(to, to_stride, from, from_stride, bytes, count,
                     cudaMemcpyDeviceToHost);
}

tess_status tess_device_copy_rows(void *to, int64_t to_stride, const void *from,
                                  int64_t from_stride, int64_t bytes, int64_t count)
{
    tess_status status = TESS_OK;
    if (count > 0 && bytes > 0)
        TESS_CUDA(cudaMemcpy2DAsync(to, (size_t)to_stride, from, (size_t)from_stride,
                                    (size_t)bytes, (size_t)count,
                                    cudaMemcpyDeviceToDevice, device.stream));
cleanup:
    return status;
}
