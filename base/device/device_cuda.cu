/* tess_device.h on CUDA. Device memory comes from the device's pool in stream order, which
 * keeps what is given back, so that allocating costs microseconds after the first time.
 * Copies from pageable memory go through a ring of pinned buffers that threads fill while
 * the link empties others. Rows that are streamed are copied in a stream of their own, so
 * that some are on the link while the device works on those before; events order the two
 * streams. Each lane has such streams and buffers. */
#include "tess_device.h"

#include <stdio.h>
#include <string.h>

#include "tess_cuda.h"
#include "tess_mem.h"
#include "tess_numa.h"

/* The ring of the first lane has 4 × 16 MiB. On a link of 55 GB/s, 16 MiB take 0.3 ms,
 * which is long against the launch of a copy. To pin 64 MiB takes about 20 ms. Other lanes
 * copy small images and samples side by side; theirs have a sixteenth of that. */
enum { RING_BUFFERS = 4, PART_OF_OTHERS = 16 };
static const int64_t RING_BYTES = 16 << 20;

/* Copies of at most this size lie one after the other in a pinned buffer. So a table of
 * some kB does not take a buffer of the ring, and does not wait until the stream has
 * done the buffer's earlier copy. The driver would stage such a copy from pageable
 * memory itself, and would wait for the stream if it has more than 64 kB. */
enum { TABLE_BUFFERS = 2, SMALL_PART = 4 };
static const int64_t TABLE_BYTES = 8 << 20; /* of the first lane */

/* The tensor-core kernels' cp.async and their mma shapes need it. */
enum { LEAST_COMPUTE_MAJOR = 8, MOST_DEVICES = 64 };

/* Share of the memory free at the start that ranks may take; the rest is for libraries'
 * work space and the pool's rounding. */
static const double MEMORY_SHARE = 0.92;

/* The device of the process. CUDA keeps its state per process, too, so no caller could
 * have two devices. */
static struct {
    bool started, is_shared; /* is_shared: it is known how many ranks have it */
    int number;
    cudaMemPool_t pool;
    int64_t allowed; /* bytes that all ranks with this device may take */
    int64_t limit;   /* bytes this process may take */
    int64_t outside; /* bytes that do not come from the pool */
    int num_lanes;   /* that work side by side */
} device;

/* Buffers of small copies, in which the bytes stay until the stream has copied them. */
typedef struct device_table {
    int64_t bytes;               /* of a buffer */
    char *buffer[TABLE_BUFFERS]; /* pinned */
    cudaEvent_t done[TABLE_BUFFERS];
    int now;
    int64_t used;
} device_table;

/* Work that is done in order, and the pinned memory through which it goes. */
typedef struct device_lane {
    bool made;
    cudaStream_t stream, copies; /* `copies`: for staged uploads, beside `stream` */
    cudaEvent_t allocated;       /* in `stream`, behind all allocations so far */
    int64_t ring_bytes;          /* of a buffer of the ring */
    char *ring[RING_BUFFERS];    /* pinned */
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
    device_table table;
    cudaEvent_t turn_end[2]; /* ends of the last two turns of work */
    int last_turn;
} device_lane;

static device_lane lanes[TESS_DEVICE_LANES];

/* The lane of this thread. */
static thread_local int own_lane;

static device_lane *lane_here(void)
{
    return &lanes[own_lane];
}

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

static tess_status make_ring(device_lane *lane)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < RING_BUFFERS; ++k) {
        TESS_CUDA(cudaHostAlloc((void **)&lane->ring[k], (size_t)lane->ring_bytes,
                                cudaHostAllocPortable));
        TESS_CUDA(cudaEventCreateWithFlags(&lane->ring_free[k], cudaEventDisableTiming));
        TESS_CUDA(cudaEventCreate(&lane->began[k]));
        TESS_CUDA(cudaEventCreate(&lane->copied[k]));
        TESS_CUDA(cudaEventCreate(&lane->work_began[k]));
        TESS_CUDA(cudaEventCreate(&lane->worked[k]));
    }
    for (int k = 0; k < TABLE_BUFFERS; ++k) {
        TESS_CUDA(cudaHostAlloc((void **)&lane->table.buffer[k], (size_t)lane->table.bytes,
                                cudaHostAllocPortable));
        TESS_CUDA(cudaEventCreateWithFlags(&lane->table.done[k], cudaEventDisableTiming));
    }
    for (int k = 0; k < 2; ++k)
        TESS_CUDA(cudaEventCreateWithFlags(&lane->turn_end[k], cudaEventDisableTiming));
cleanup:
    return status;
}

/* Makes the streams and buffers of a lane, which it keeps. */
static tess_status make_lane(int number)
{
    tess_status status = TESS_OK;
    device_lane *lane = &lanes[number];
    const int part = number == 0 ? 1 : PART_OF_OTHERS;
    if (lane->made) return TESS_OK;
    lane->ring_bytes = RING_BYTES / part;
    lane->table.bytes = TABLE_BYTES / part;
    if (lane->threads < 1) lane->threads = 1;
    TESS_CUDA(cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking));
    TESS_CUDA(cudaStreamCreateWithFlags(&lane->copies, cudaStreamNonBlocking));
    TESS_CUDA(cudaEventCreateWithFlags(&lane->allocated, cudaEventDisableTiming));
    TESS_TRY(make_ring(lane));
    lane->made = true;
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

/* Finds what all ranks with the device may take. */
static tess_status measure_memory(void)
{
    tess_status status = TESS_OK;
    size_t free_bytes = 0, total_bytes = 0;
    TESS_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
    device.limit = device.allowed = (int64_t)(MEMORY_SHARE * (double)free_bytes);
cleanup:
    return status;
}

tess_status tess_device_start(const int *numa_node, int local_rank, int local_size)
{
    tess_status status = TESS_OK;
    int number[MOST_DEVICES], count = 0;
    uint64_t keep = UINT64_MAX;
    if (device.started) return TESS_OK;
    count = list_devices(number);
    if (count == 0) TESS_FAIL(TESS_ERR_RESOURCE, "there is no GPU that will do");
    device.number = choose_device(numa_node, local_rank, local_size, number, count);
    TESS_CUDA(cudaSetDevice(device.number));
    TESS_TRY(measure_memory());
    TESS_CUDA(cudaDeviceGetDefaultMemPool(&device.pool, device.number));
    TESS_CUDA(cudaMemPoolSetAttribute(device.pool, cudaMemPoolAttrReleaseThreshold, &keep));
    TESS_TRY(make_lane(0));
    device.num_lanes = 1;
    device.started = true;
cleanup:
    return status;
}

/* At the first call, all ranks of the node have taken their devices, and none has
 * allocated anything: what is free is what the drivers of all of them leave. A pool
 * gives back what it has beyond its rank's part, which others may want. */
tess_status tess_device_share(int ranks)
{
    tess_status status = TESS_OK;
    uint64_t keep = UINT64_MAX;
    if (!device.is_shared) TESS_TRY(measure_memory());
    device.is_shared = true;
    device.limit = device.allowed / ranks;
    if (ranks > 1) keep = (uint64_t)device.limit;
    TESS_CUDA(cudaMemPoolSetAttribute(device.pool, cudaMemPoolAttrReleaseThreshold, &keep));
cleanup:
    return status;
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
    return lane_here()->stream;
}

void tess_device_threads(int threads)
{
    lane_here()->threads = tess_device_movers(threads);
}

/* ---- lanes ---- */

tess_status tess_device_split(int num_lanes)
{
    device.num_lanes = num_lanes;
    return tess_device_wait();
}

/* Each thread of the host has to be told of the device. */
tess_status tess_device_enter(int number)
{
    tess_status status = TESS_OK;
    TESS_CUDA(cudaSetDevice(device.number));
    TESS_TRY(make_lane(number));
    own_lane = number;
cleanup:
    return status;
}

tess_status tess_device_leave(void)
{
    const tess_status status = tess_device_wait();
    own_lane = 0;
    return status;
}

/* ---- memory ---- */

static int64_t pool_attribute(cudaMemPoolAttr attribute)
{
    uint64_t value = 0;
    if (cudaMemPoolGetAttribute(device.pool, attribute, &value) != cudaSuccess)
        (void)cudaGetLastError();
    return (int64_t)value;
}

/* Bytes that this process may still take of its part. */
static int64_t left_of_part(int64_t used)
{
    return device.limit - device.outside - used;
}

/* Bytes that all lanes may still take. */
static int64_t room_of_all(void)
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
    const int64_t allowed = left_of_part(used);
    return allowed < there ? allowed : there;
}

int64_t tess_device_room(void)
{
    return room_of_all() / device.num_lanes;
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
    const int64_t allowed = left_of_part(used);
    return allowed < spare ? allowed : spare;
}

tess_status tess_device_alloc(int64_t bytes, const char *what, void **memory)
{
    tess_status status = TESS_OK;
    device_lane *lane = lane_here();
    void *made = NULL;
    const int64_t wanted = bytes > 0 ? bytes : 1;
    if (wanted > spare_bytes() && wanted > room_of_all())
        TESS_FAIL(TESS_ERR_ALLOC,
                  "no device memory for %s: %s wanted, %s there; use more GPUs, a smaller "
                  "--size, or --backend cpu",
                  what, tess_mem_text((double)wanted),
                  tess_mem_text((double)room_of_all()));
    TESS_CUDA(cudaMallocAsync(&made, (size_t)wanted, lane->stream));
    TESS_CUDA(cudaEventRecord(lane->allocated, lane->stream));
    *memory = made;
    made = NULL;
cleanup:
    tess_device_free(made);
    return status;
}

void tess_device_free(void *memory)
{
    if (!memory) return;
    if (cudaFreeAsync(memory, lane_here()->stream) != cudaSuccess) (void)cudaGetLastError();
}

tess_status tess_device_zero(void *memory, int64_t bytes)
{
    tess_status status = TESS_OK;
    device_lane *lane = lane_here();
    if (bytes > 0) TESS_CUDA(cudaMemsetAsync(memory, 0, (size_t)bytes, lane->stream));
cleanup:
    return status;
}

tess_status tess_device_wait(void)
{
    tess_status status = TESS_OK;
    TESS_CUDA(cudaStreamSynchronize(lane_here()->stream));
cleanup:
    return status;
}

tess_status tess_device_turn(void)
{
    tess_status status = TESS_OK;
    device_lane *lane = lane_here();
    const int former = lane->last_turn, now = 1 - former;
    TESS_CUDA(cudaEventRecord(lane->turn_end[now], lane->stream));
    lane->last_turn = now;
    TESS_CUDA(cudaEventSynchronize(lane->turn_end[former]));
cleanup:
    return status;
}

/* ---- copies ---- */

/* memcpy by several threads: one alone is slower than the link. */
static void copy_in_parallel(char *to, const char *from, int64_t bytes)
{
    const int threads = bytes < (1 << 20) ? 1 : lane_here()->threads;
    #pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; ++t) {
        const int64_t first = bytes * t / threads, end = bytes * (t + 1) / threads;
        memcpy(to + first, from + first, (size_t)(end - first));
    }
}

static int take_buffer(void)
{
    device_lane *lane = lane_here();
    const int k = lane->next_buffer;
    lane->next_buffer = (k + 1) % RING_BUFFERS;
    return k;
}

/* Finds room for a small copy. The call waits until the earlier copies in that place
 * are done. */
static tess_status take_table(int64_t bytes, char **room)
{
    tess_status status = TESS_OK;
    device_lane *lane = lane_here();
    if (lane->table.used + bytes > lane->table.bytes) {
        lane->table.now = (lane->table.now + 1) % TABLE_BUFFERS;
        lane->table.used = 0;
        TESS_CUDA(cudaEventSynchronize(lane->table.done[lane->table.now]));
    }
    *room = lane->table.buffer[lane->table.now] + lane->table.used;
    lane->table.used += (bytes + 255) / 256 * 256;
cleanup:
    return status;
}

static tess_status upload_small(void *to, const void *from, int64_t bytes)
{
    tess_status status = TESS_OK;
    device_lane *lane = lane_here();
    char *room = NULL;
    TESS_TRY(take_table(bytes, &room));
    memcpy(room, from, (size_t)bytes);
    TESS_CUDA(
        cudaMemcpyAsync(to, room, (size_t)bytes, cudaMemcpyHostToDevice, lane->stream));
    TESS_CUDA(cudaEventRecord(lane->table.done[lane->table.now], lane->stream));
cleanup:
    return status;
}

tess_status tess_device_upload(void *to, const void *from, int64_t bytes)
{
    tess_status status = TESS_OK;
    device_lane *lane = lane_here();
    const int64_t part = lane->ring_bytes;
    if (bytes <= 0) return TESS_OK;
    if (bytes <= lane->table.bytes / SMALL_PART) return upload_small(to, from, bytes);
    for (int64_t done = 0; done < bytes; done += part) {
        const int64_t count = bytes - done < part ? bytes - done : part;
        const int k = take_buffer();
        TESS_CUDA(cudaEventSynchronize(lane->ring_free[k]));
        copy_in_parallel(lane->ring[k], (const char *)from + done, count);
        TESS_CUDA(cudaMemcpyAsync((char *)to + done, lane->ring[k], (size_t)count,
                                  cudaMemcpyHostToDevice, lane->stream));
        TESS_CUDA(cudaEventRecord(lane->ring_free[k], lane->stream));
    }
cleanup:
    return status;
}

/* ---- rows that are streamed ---- */

/* Count the last timed copy of a buffer, and the work on it, when they are done. */
static tess_status settle(int k)
{
    tess_status status = TESS_OK;
    device_lane *lane = lane_here();
    float copy_ms = 0, work_ms = 0;
    if (!lane->timed[k]) return TESS_OK;
    lane->timed[k] = false;
    TESS_CUDA(cudaEventSynchronize(lane->worked_on[k] ? lane->worked[k]
                                                       : lane->copied[k]));
    TESS_CUDA(cudaEventElapsedTime(&copy_ms, lane->began[k], lane->copied[k]));
    if (lane->worked_on[k])
        TESS_CUDA(cudaEventElapsedTime(&work_ms, lane->work_began[k], lane->worked[k]));
    lane->link_busy_s += 1e-3 * (double)copy_ms;
    lane->device_busy_s += 1e-3 * (double)work_ms;
cleanup:
    return status;
}

/* Enqueues a copy between a buffer and the device, and measures its time. */
static tess_status copy_timed(int k, void *to, const void *from, int64_t bytes,
                              cudaMemcpyKind kind, cudaStream_t stream)
{
    tess_status status = TESS_OK;
    device_lane *lane = lane_here();
    TESS_CUDA(cudaEventRecord(lane->began[k], stream));
    TESS_CUDA(cudaMemcpyAsync(to, from, (size_t)bytes, kind, stream));
    TESS_CUDA(cudaEventRecord(lane->copied[k], stream));
    TESS_CUDA(cudaEventRecord(lane->ring_free[k], stream));
    lane->timed[k] = true;
    lane->worked_on[k] = false;
cleanup:
    return status;
}

int64_t tess_device_stage_bytes(void)
{
    return lane_here()->ring_bytes;
}

tess_status tess_device_stage(void **buffer)
{
    tess_status status = TESS_OK;
    device_lane *lane = lane_here();
    const int k = lane->next_buffer;
    TESS_TRY(settle(k));
    TESS_CUDA(cudaEventSynchronize(lane->ring_free[k]));
    *buffer = lane->ring[k];
cleanup:
    return status;
}

/* Lets later copies wait until `to` may be written: the other stream has allocated it,
 * and work on its earlier content may still go on. */
static tess_status copies_wait_for(const void *to)
{
    tess_status status = TESS_OK;
    device_lane *lane = lane_here();
    TESS_CUDA(cudaStreamWaitEvent(lane->copies, lane->allocated, 0));
    for (int k = 0; k < RING_BUFFERS; ++k)
        if (lane->timed[k] && lane->worked_on[k] && lane->target[k] == to)
            TESS_CUDA(cudaStreamWaitEvent(lane->copies, lane->worked[k], 0));
cleanup:
    return status;
}

tess_status tess_device_upload_staged(void *to, const void *buffer, int64_t bytes)
{
    tess_status status = TESS_OK;
    device_lane *lane = lane_here();
    const int k = take_buffer();
    TESS_TRY(copies_wait_for(to));
    TESS_TRY(copy_timed(k, to, buffer, bytes, cudaMemcpyHostToDevice, lane->copies));
    TESS_CUDA(cudaStreamWaitEvent(lane->stream, lane->copied[k], 0));
    TESS_CUDA(cudaEventRecord(lane->work_began[k], lane->stream));
    lane->target[k] = to;
    lane->last_staged = k;
cleanup:
    return status;
}

tess_status tess_device_staged_worked(void)
{
    tess_status status = TESS_OK;
    device_lane *lane = lane_here();
    TESS_CUDA(cudaEventRecord(lane->worked[lane->last_staged], lane->stream));
    lane->worked_on[lane->last_staged] = true;
cleanup:
    return status;
}

tess_status tess_device_fetch(const void *from, int64_t bytes)
{
    tess_status status = TESS_OK;
    device_lane *lane = lane_here();
    void *buffer;
    int k;
    TESS_TRY(tess_device_stage(&buffer));
    k = take_buffer();
    if (lane->num_fetched++ == 0) lane->fetched_first = k;
    TESS_TRY(copy_timed(k, buffer, from, bytes, cudaMemcpyDeviceToHost, lane->stream));
cleanup:
    return status;
}

tess_status tess_device_fetched(void **buffer)
{
    tess_status status = TESS_OK;
    device_lane *lane = lane_here();
    const int k = lane->fetched_first;
    lane->fetched_first = (k + 1) % RING_BUFFERS;
    --lane->num_fetched;
    TESS_CUDA(cudaEventSynchronize(lane->ring_free[k]));
    *buffer = lane->ring[k];
cleanup:
    return status;
}

void tess_device_busy(double *link_s, double *device_s)
{
    device_lane *lane = lane_here();
    for (int k = 0; k < RING_BUFFERS; ++k)
        if (settle(k) != TESS_OK) tess_error_clear(); /* times only */
    *link_s = lane->link_busy_s;
    *device_s = lane->device_busy_s;
}

/* ---- other copies ---- */

/* While threads empty one buffer, the next ones are on their way. */
tess_status tess_device_download(void *to, const void *from, int64_t bytes)
{
    tess_status status = TESS_OK;
    device_lane *lane = lane_here();
    int buffer[RING_BUFFERS];
    const int64_t part = lane->ring_bytes, parts = (bytes + part - 1) / part;
    for (int64_t k = 0; k < parts + RING_BUFFERS - 1; ++k) {
        const int64_t arrived = k - (RING_BUFFERS - 1);
        if (k < parts) {
            const int64_t at = k * part;
            const int64_t count = bytes - at < part ? bytes - at : part;
            const int b = buffer[k % RING_BUFFERS] = take_buffer();
            TESS_CUDA(cudaEventSynchronize(lane->ring_free[b]));
            TESS_CUDA(cudaMemcpyAsync(lane->ring[b], (const char *)from + at, (size_t)count,
                                      cudaMemcpyDeviceToHost, lane->stream));
            TESS_CUDA(cudaEventRecord(lane->ring_free[b], lane->stream));
        }
        if (arrived >= 0 && arrived < parts) {
            const int64_t at = arrived * part;
            const int64_t count = bytes - at < part ? bytes - at : part;
            const int b = buffer[arrived % RING_BUFFERS];
            TESS_CUDA(cudaEventSynchronize(lane->ring_free[b]));
            copy_in_parallel((char *)to + at, lane->ring[b], count);
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
    device_lane *lane = lane_here();
    if (bytes > 0 && count > 0)
        TESS_CUDA(cudaMemcpy2DAsync(to, (size_t)to_stride, from, (size_t)from_stride,
                                    (size_t)bytes, (size_t)count, kind, lane->stream));
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
                                    cudaMemcpyDeviceToDevice, lane_here()->stream));
cleanup:
    return status;
}
