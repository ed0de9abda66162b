/* Gathers the traces of all ranks, and writes them as one file in Chrome's trace
 * format. */
#define _GNU_SOURCE
#include "trace_file.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tess_log.h"
#include "tess_mem.h"
#include "tess_out_file.h"

/* Ranks whose spans are on the first rank at a time: a large run has more than fit. */
enum { RANKS_AT_ONCE = 32 };

/* In front of a rank's spans. */
typedef struct trace_header {
    char host[64];
    int64_t count, lost;
} trace_header;

/* When and where the first rank is. */
typedef struct trace_origin {
    char host[64];
    double start_s, now_s;
} trace_origin;

/* What has to be taken from this rank's times to have those since the first rank's
 * start. Ranks of a host share a clock; others are compared behind a barrier.
 * Collective. */
static tess_status find_origin(tess_comm *comm, const tess_profile *profile,
                               const char *host, double *origin_s)
{
    tess_status status = TESS_OK;
    trace_origin first = {.start_s = profile->start_s};
    TESS_TRY(tess_comm_barrier(comm));
    const double now = first.now_s = tess_time_now();
    snprintf(first.host, sizeof first.host, "%s", host);
    TESS_TRY(tess_comm_bcast(comm, &first, sizeof first, 0));
    *origin_s = first.start_s;
    if (strcmp(first.host, host) != 0) *origin_s += now - first.now_s;
cleanup:
    return status;
}

/* ---- a file of events ---- */

typedef struct trace_file {
    const char *path;
    bool overwrite;
    char temp[TESS_OUT_FILE_NAME];
    FILE *file;
    bool any; /* an event is in it */
    bool bad;
} trace_file;

static tess_status file_open(trace_file *out)
{
    tess_status status = TESS_OK;
    int fd = -1;
    TESS_TRY(tess_out_file_begin(out->path, out->overwrite, out->temp, &fd));
    out->file = fdopen(fd, "w");
    if (!out->file)
        TESS_FAIL(TESS_ERR_IO, "%s: trace cannot be written: %s", out->path,
                  strerror(errno));
    fd = -1; /* closed with it */
    out->bad = fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", out->file) == EOF;
cleanup:
    if (fd >= 0) close(fd);
    return status;
}

/* Append an event, which is given up. */
static void file_add(trace_file *out, json_t *event)
{
    out->bad =
        out->bad || !event || fputs(out->any ? ",\n" : "\n", out->file) == EOF ||
        json_dumpf(event, out->file, JSON_COMPACT | JSON_REAL_PRECISION(15)) != 0;
    out->any = true;
    json_decref(event);
}

static tess_status file_end(trace_file *out)
{
    tess_status status = TESS_OK;
    out->bad = fputs("\n]}\n", out->file) == EOF || out->bad;
    out->bad = fclose(out->file) != 0 || out->bad;
    out->file = NULL;
    if (out->bad)
        TESS_FAIL(TESS_ERR_IO, "%s: trace cannot be written: %s", out->path,
                  strerror(errno));
    TESS_TRY(tess_out_file_publish(out->temp, out->path, out->overwrite));
    out->temp[0] = '\0';
cleanup:
    return status;
}

/* End the file and give it its name, unless something failed before. */
static tess_status file_close(trace_file *out, tess_status status)
{
    if (out->file && status == TESS_OK) status = file_end(out);
    if (out->file) fclose(out->file);
    tess_out_file_discard(out->temp);
    return status;
}

/* ---- a rank's events ---- */

static json_t *name_event(const char *what, int rank, int64_t lane, const char *name)
{
    return json_pack("{s:s, s:s, s:i, s:I, s:{s:s}}", "ph", "M", "name", what, "pid",
                     rank, "tid", (json_int_t)lane, "args", "name", name);
}

static void name_lane(trace_file *out, int rank, int64_t lane)
{
    char name[64];
    if (lane == TESS_LANE_STAGES)
        snprintf(name, sizeof name, "stages");
    else if (lane == TESS_LANE_READER)
        snprintf(name, sizeof name, "reading thread");
    else
        snprintf(name, sizeof name, "gridding thread %lld",
                 (long long)(lane - TESS_LANE_GRID));
    file_add(out, name_event("thread_name", rank, lane, name));
}

/* Microseconds to a thousandth: rounded ends keep their order. */
static double micro(double seconds)
{
    return round(1e9 * seconds) / 1e3;
}

static void add_rank(trace_file *out, int rank, const trace_header *header,
                     const tess_span *span)
{
    char name[128];
    int64_t lanes = 0;
    snprintf(name, sizeof name, "rank %d on %s%s", rank, header->host,
             header->lost ? " (incomplete)" : "");
    file_add(out, name_event("process_name", rank, 0, name));
    for (int64_t k = 0; k < header->count; ++k) {
        const double begin = micro(span[k].begin), end = micro(span[k].end);
        for (; lanes <= span[k].lane; ++lanes)
            name_lane(out, rank, lanes);
        file_add(out,
                 json_pack("{s:s, s:s, s:i, s:I, s:f, s:f}", "ph", "X", "name",
                           span[k].name, "pid", rank, "tid", (json_int_t)span[k].lane,
                           "ts", begin, "dur", end - begin));
    }
}

/* ---- gathering ---- */

/* This rank's header and spans as a message, the run as a whole among them. */
static tess_status pack(const tess_profile *profile, const char *host, double origin_s,
                        void **message, int64_t *bytes)
{
    tess_status status = TESS_OK;
    const tess_span *from;
    trace_header header = {.count = 1};
    int64_t count;
    tess_trace_spans(profile->trace, &from, &count, &header.lost);
    header.count += count;
    snprintf(header.host, sizeof header.host, "%s", host);
    *bytes = (int64_t)sizeof header + header.count * (int64_t)sizeof *from;
    *message = tess_alloc(*bytes, 1);
    if (!*message) TESS_FAIL(TESS_ERR_ALLOC, "trace of %lld spans", (long long)count);
    memcpy(*message, &header, sizeof header);
    tess_span *to = (tess_span *)((char *)*message + sizeof header);
    to[0] = (tess_span){.begin = profile->start_s - origin_s,
                        .end = tess_time_now() - origin_s,
                        .lane = TESS_LANE_STAGES,
                        .name = "run"};
    for (int64_t k = 0; k < count; ++k) {
        to[k + 1] = from[k];
        to[k + 1].begin -= origin_s;
        to[k + 1].end -= origin_s;
    }
cleanup:
    return status;
}

/* Bring the messages of ranks [first, first + RANKS_AT_ONCE) to the file. Collective.
 */
static tess_status gather(tess_comm *comm, int first, const void *message,
                          int64_t bytes, int64_t *received_bytes, trace_file *out)
{
    tess_status status = TESS_OK;
    const int rank = tess_comm_rank(comm);
    const bool sends = rank >= first && rank < first + RANKS_AT_ONCE;
    void *received = NULL;
    TESS_TRY(tess_comm_gatherv(comm, message, sends ? bytes : 0, 0, &received,
                               received_bytes));
    const char *at = received;
    for (int r = 0; received && r < tess_comm_size(comm); ++r) {
        if (received_bytes[r] == 0) continue;
        add_rank(out, r, (const trace_header *)at,
                 (const tess_span *)(at + sizeof(trace_header)));
        at += received_bytes[r];
    }
cleanup:
    tess_free(received);
    return status;
}

tess_status tess_trace_write(tess_comm *comm, const tess_profile *profile,
                             const char *path, bool overwrite)
{
    tess_status status = TESS_OK;
    char host[64] = "";
    double origin_s = 0;
    void *message = NULL;
    int64_t bytes = 0, *received = tess_alloc(tess_comm_size(comm), sizeof *received);
    trace_file out = {.path = path, .overwrite = overwrite};
    if (gethostname(host, sizeof host - 1) != 0) snprintf(host, sizeof host, "unknown");
    TESS_TRY(find_origin(comm, profile, host, &origin_s));
    status =
        received ? pack(profile, host, origin_s, &message, &bytes) : TESS_ERR_ALLOC;
    if (status == TESS_OK && tess_comm_rank(comm) == 0) status = file_open(&out);
    TESS_TRY(tess_comm_agree(comm, status));
    for (int first = 0; first < tess_comm_size(comm); first += RANKS_AT_ONCE)
        TESS_TRY(gather(comm, first, message, bytes, received, &out));
cleanup:
    status = tess_comm_agree(comm, file_close(&out, status));
    tess_free(message);
    tess_free(received);
    return status;
}
