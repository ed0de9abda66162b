/* tess_device.h in host memory, so that what the cuda backend does on the host is
 * tested without a GPU, under sanitizers and on several ranks (-DTESS_CUDA=EMULATED).
 * The sanitizers then also see reads and writes beyond "device" memory.
 *
 * There is a device when TESS_EMULATED is set in the environment: BYTES that it has, or
 * BYTES:ROOM, where tess_device_room() never reports more than ROOM, so that samples
 * are cut into sets. A list, separated by commas, is of the devices of a node, which
 * its ranks take in turn. Each rank has the memory of its device for itself, unless
 * TESS_EMULATED_SHARED is set: ranks with the same device divide it then.
 *
 * TESS_EMULATED_FAIL=RANK:N loses the device of that rank of the node at its N-th
 * operation (allocation, copy, launch or wait; counted from 1): that one and all after
 * it fail, as on a CUDA device after an error that it does not recover from. With
 * RANK:N:late only those that wait do: what is enqueued is not done, which is found out
 * afterwards. TESS_EMULATED_LOG=PATH makes each rank write, at its end, its number of
 * operations into PATH.RANK, and when it loses its device an empty PATH.RANK.lost. */
#include "device_emulated.h"

#include "tess_device.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tess_mem.h"

/* Bytes in front of every allocation, which hold its size. */
enum { HEAD = 256 };

static struct {
    bool started;
    int number, place; /* of the rank on its node, and of its device in the list */
    int ranks;         /* that divide the memory of the device */
    int64_t limit, room;
    _Atomic int64_t outside;    /* bytes that tess_device_alloc did not allocate */
    _Atomic int64_t used, most; /* all lanes allocate side by side */
    int num_lanes;
} device = {.num_lanes = 1, .ranks = 1};

/* Operations so far, the one that is the first to fail (0: none), and whether failures
 * show late. */
static struct {
    _Atomic int64_t count;
    int64_t first;
    bool late;
    atomic_bool told;
} operations;

/* What a device could not do side by side, or would do too early: the last upload's
 * place, and whether the work on it was told of. */
static _Thread_local const void *last_target;
static _Thread_local bool is_worked = true;

bool tess_device_present(void)
{
    return getenv("TESS_EMULATED") != NULL;
}

/* The place of a rank's device in a list of devices. */
static int place_of(const char *list, int local_rank)
{
    int count = 1;
    for (const char *at = list; *at; ++at)
        count += *at == ',';
    return local_rank % count;
}

static const char *text_of(const char *list, int place)
{
    for (int k = place; k > 0; --k)
        list = strchr(list, ',') + 1;
    return list;
}

/* ---- failures ---- */

/* Opens the log of this rank; NULL if the environment names none. */
static FILE *open_log(const char *suffix)
{
    const char *prefix = getenv("TESS_EMULATED_LOG");
    char path[4096];
    if (!prefix) return NULL;
    snprintf(path, sizeof path, "%s.%d%s", prefix, device.number, suffix);
    return fopen(path, "w");
}

static void log_count(void)
{
    FILE *log = open_log("");
    if (!log) return;
    fprintf(log, "%lld\n", (long long)atomic_load(&operations.count));
    fclose(log);
}

static void read_failure(int local_rank)
{
    const char *text = getenv("TESS_EMULATED_FAIL");
    char *end;
    atexit(log_count);
    if (!text || strtol(text, &end, 10) != local_rank || *end != ':') return;
    operations.first = strtoll(end + 1, &end, 10);
    operations.late = strcmp(end, ":late") == 0;
}

static bool is_lost(void)
{
    return operations.first > 0 && operations.count >= operations.first;
}

static bool does(tess_status *status, bool silent)
{
    ++operations.count;
    if (!is_lost()) return true;
    if (!atomic_exchange(&operations.told, true)) {
        FILE *log = open_log(".lost");
        if (log) fclose(log);
    }
    *status = silent ? TESS_OK
                     : tess_error_record(TESS_ERR_RESOURCE, __FILE__, __LINE__,
                                         __func__, "CUDA: unspecified launch failure");
    return false;
}

bool device_emulated_enqueues(tess_status *status)
{
    return does(status, operations.late);
}

bool device_emulated_waits(tess_status *status)
{
    return does(status, false);
}

bool device_emulated_says_lost(void)
{
    return is_lost() && !operations.late;
}

tess_status tess_device_start(const int *numa_node, int local_rank, int local_size)
{
    const char *list = getenv("TESS_EMULATED") ? getenv("TESS_EMULATED") : "0";
    const int place = place_of(list, local_rank);
    const char *text = text_of(list, place);
    char *end;
    (void)numa_node;
    (void)local_size;
    if (device.started) return TESS_OK;
    device.started = true;
    device.number = local_rank;
    device.place = place;
    read_failure(local_rank);
    device.limit = strtoll(text, &end, 10);
    device.room = *end == ':' ? strtoll(end + 1, NULL, 10) : INT64_MAX;
    return TESS_OK;
}

static bool is_shared(void)
{
    return getenv("TESS_EMULATED_SHARED") != NULL;
}

tess_status tess_device_share(int ranks)
{
    if (is_shared()) device.ranks = ranks;
    return TESS_OK;
}

int tess_device_number(void)
{
    return device.number;
}

void tess_device_text(char *text, int size)
{
    snprintf(text, (size_t)size, "emulated");
}

void tess_device_bus_id(char *text, int size)
{
    if (is_shared())
        snprintf(text, (size_t)size, "emulated %d", device.place);
    else
        text[0] = '\0';
}

struct CUstream_st *tess_device_stream(void)
{
    return NULL;
}

void tess_device_threads(int threads)
{
    (void)threads;
}

/* What this rank may still take of its part. */
static int64_t left_of_part(void)
{
    return device.limit / device.ranks - device.outside - device.used;
}

int64_t tess_device_room(void)
{
    const int64_t room = device_emulated_says_lost() ? device.limit : left_of_part();
    return (room < device.room ? room : device.room) / device.num_lanes;
}

/* ---- lanes ---- */

static atomic_bool is_taken[TESS_DEVICE_LANES];
static _Thread_local int own_lane;

tess_status tess_device_split(int num_lanes)
{
    device.num_lanes = num_lanes;
    return tess_device_wait();
}

tess_status tess_device_enter(int lane)
{
    tess_status status = TESS_OK;
    if (lane >= device.num_lanes || own_lane != 0 ||
        atomic_exchange(&is_taken[lane], true))
        TESS_FAIL(TESS_ERR_INTERNAL, "lane %d is not to be entered", lane);
    own_lane = lane;
cleanup:
    return status;
}

tess_status tess_device_leave(void)
{
    const tess_status status = tess_device_wait();
    atomic_store(&is_taken[own_lane], false);
    own_lane = 0;
    return status;
}

/* ---- memory ---- */

void tess_device_holds(int64_t bytes)
{
    device.outside = bytes;
}

/* Without buffers of links, which are large beside small images. */
int64_t tess_device_held(void)
{
    return device.most;
}

static void note_used(int64_t bytes)
{
    const int64_t used = device.used += bytes;
    int64_t most = device.most;
    while (used > most && !atomic_compare_exchange_weak(&device.most, &most, used))
        continue;
}

tess_status tess_device_alloc(int64_t bytes, const char *what, void **memory)
{
    tess_status status = TESS_OK;
    if (!device_emulated_enqueues(&status) && status != TESS_OK) goto cleanup;
    if (bytes > left_of_part())
        TESS_FAIL(TESS_ERR_ALLOC, "no device memory for %s: %s wanted, %s there", what,
                  tess_mem_text((double)bytes), tess_mem_text((double)left_of_part()));
    char *made = tess_alloc(bytes + HEAD, 1);
    if (!made) TESS_FAIL(TESS_ERR_ALLOC, "no memory for %s", what);
    memcpy(made, &bytes, sizeof bytes);
    memset(made + HEAD, 0xff, (size_t)bytes); /* NaN: nothing may count on zeros */
    note_used(bytes);
    *memory = made + HEAD;
    last_target = NULL; /* uploads wait for memory that is new */
    is_worked = true;
cleanup:
    return status;
}

void tess_device_free(void *memory)
{
    int64_t bytes;
    if (!memory) return;
    char *made = (char *)memory - HEAD;
    memcpy(&bytes, made, sizeof bytes);
    device.used -= bytes;
    tess_free(made);
}

tess_status tess_device_zero(void *memory, int64_t bytes)
{
    tess_status status = TESS_OK;
    if (device_emulated_enqueues(&status) && bytes > 0)
        memset(memory, 0, (size_t)bytes);
    return status;
}

tess_status tess_device_upload(void *to, const void *from, int64_t bytes)
{
    tess_status status = TESS_OK;
    if (device_emulated_enqueues(&status) && bytes > 0) memcpy(to, from, (size_t)bytes);
    return status;
}

tess_status tess_device_download(void *to, const void *from, int64_t bytes)
{
    tess_status status = TESS_OK;
    if (device_emulated_waits(&status) && bytes > 0) memcpy(to, from, (size_t)bytes);
    return status;
}

/* Copies of rows wait in both directions. */
tess_status tess_device_upload_rows(void *to, int64_t to_stride, const void *from,
                                    int64_t from_stride, int64_t bytes, int64_t count)
{
    tess_status status = TESS_OK;
    if (!device_emulated_waits(&status)) return status;
    for (int64_t k = 0; k < count && bytes > 0; ++k)
        memcpy((char *)to + k * to_stride, (const char *)from + k * from_stride,
               (size_t)bytes);
    return TESS_OK;
}

tess_status tess_device_download_rows(void *to, int64_t to_stride, const void *from,
                                      int64_t from_stride, int64_t bytes, int64_t count)
{
    return tess_device_upload_rows(to, to_stride, from, from_stride, bytes, count);
}

tess_status tess_device_copy_rows(void *to, int64_t to_stride, const void *from,
                                  int64_t from_stride, int64_t bytes, int64_t count)
{
    return tess_device_upload_rows(to, to_stride, from, from_stride, bytes, count);
}

/* Small, so that small files take several. */
enum { STAGE_BYTES = 3000, STAGES = 4 };
static _Thread_local char staging[STAGES][STAGE_BYTES];
static _Thread_local int next_stage, first_fetched;

int64_t tess_device_stage_bytes(void)
{
    return STAGE_BYTES;
}

tess_status tess_device_stage(void **buffer)
{
    tess_status status = TESS_OK;
    if (device_emulated_waits(&status)) *buffer = staging[next_stage];
    return status;
}

tess_status tess_device_upload_staged(void *to, const void *buffer, int64_t bytes)
{
    tess_status status = TESS_OK;
    if (!is_worked)
        TESS_FAIL(TESS_ERR_INTERNAL, "the work on the upload before was not told of");
    if (to == last_target)
        TESS_FAIL(TESS_ERR_INTERNAL, "two uploads, one after the other, to one place");
    last_target = to;
    is_worked = false;
    TESS_TRY(tess_device_upload(to, buffer, bytes));
    memset(staging[next_stage], 0xff, STAGE_BYTES);
    first_fetched = next_stage = (next_stage + 1) % STAGES;
cleanup:
    return status;
}

tess_status tess_device_staged_worked(void)
{
    tess_status status = TESS_OK;
    (void)device_emulated_enqueues(&status);
    is_worked = true;
    return status;
}

tess_status tess_device_fetch(const void *from, int64_t bytes)
{
    const int k = next_stage;
    next_stage = (next_stage + 1) % STAGES;
    return tess_device_upload(staging[k], from, bytes);
}

tess_status tess_device_fetched(void **buffer)
{
    tess_status status = TESS_OK;
    if (!device_emulated_waits(&status)) return status;
    *buffer = staging[first_fetched];
    first_fetched = (first_fetched + 1) % STAGES;
    return TESS_OK;
}

void tess_device_busy(double *link_s, double *device_s)
{
    *link_s = *device_s = 0;
}

tess_status tess_device_turn(void)
{
    return TESS_OK;
}

tess_status tess_device_wait(void)
{
    tess_status status = TESS_OK;
    (void)device_emulated_waits(&status);
    return status;
}
