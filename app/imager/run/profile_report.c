/* Gathers the ranks' profiles and tells them: lines of the log, and JSON. */
#define _GNU_SOURCE
#include "tess_profile_report.h"

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
#include "tess_profile.h"
#include "tess_version.h"

static const char *const ignored_names[TESS_NUM_IGNORED] = {
    [TESS_IGNORED_FLAGGED] = "flagged",
    [TESS_IGNORED_WEIGHT] = "weight_not_positive",
    [TESS_IGNORED_NOT_FINITE] = "not_finite",
    [TESS_IGNORED_AUTOCORR] = "autocorrelation",
    [TESS_IGNORED_BEYOND_UV] = "beyond_uv",
    [TESS_IGNORED_UVRANGE] = "uvrange",
};

/* What one rank tells the first. */
typedef struct entry {
    char host[64];
    double stage_seconds[TESS_NUM_STAGES], stage_mpi_s[TESS_NUM_STAGES];
    int64_t stage_bytes[TESS_NUM_STAGES];
    int64_t stage_visibilities[TESS_NUM_STAGES];
    int64_t visibilities;
    int64_t ignored[TESS_NUM_IGNORED];
    double seconds; /* since program start */
    double communication_seconds;
    int64_t sent_bytes, between_bytes; /* those between nodes */
    int64_t peak_memory_bytes;
    int64_t device_bytes, image_slab_bytes, plane_slab_bytes;
    int64_t plans, transforms;
    tess_checkpoint_cost checkpoint;
    tess_grid_work grid;
    double join_s;
    tess_streaming stream;
    tess_energy energy;
} entry;

/* The gridding of all ranks: the most of any, and sums. */
typedef struct gridding_totals {
    double busy; /* sum */
    double own_max_s, own_sum_s;
    double predicted_max_s, predicted_sum_s; /* most loaded; of means */
    int64_t merged_visibilities;             /* sum */
} gridding_totals;

typedef struct energy_totals {
    double cpu_j, gpu_j;   /* NAN when no rank knows */
    double gpu_mhz, gpu_c; /* mean and largest */
    int num_gpus;          /* that tell */
} energy_totals;

/* All ranks together. */
typedef struct totals {
    double stage_max_s[TESS_NUM_STAGES], stage_sum_s[TESS_NUM_STAGES];
    double stage_mpi_s[TESS_NUM_STAGES]; /* sum */
    int64_t stage_bytes[TESS_NUM_STAGES];
    int64_t stage_visibilities[TESS_NUM_STAGES];
    int64_t visibilities;
    int64_t ignored[TESS_NUM_IGNORED], unsolved;
    double max_s, sum_s, communication_s;
    int64_t sent_bytes, between_bytes;
    int64_t peak_memory_max_bytes, peak_memory_sum_bytes, device_max_bytes;
    int64_t plans, transforms;       /* each rank counts the same ones */
    tess_checkpoint_cost checkpoint; /* num likewise; bytes: sum; seconds: most */
    gridding_totals grid;
    tess_streaming stream; /* sums: shares of the time are the ranks' means */
    energy_totals energy;
} totals;

static void fill_entry(const tess_profile *profile, entry *e)
{
    const tess_spent spent = tess_profile_spent(profile);
    *e = (entry){.visibilities = profile->visibilities,
                 .seconds = tess_time_now() - profile->start_s,
                 .peak_memory_bytes = tess_mem_peak_bytes(),
                 .device_bytes = profile->device_bytes,
                 .image_slab_bytes = profile->image_slab_bytes,
                 .plane_slab_bytes = profile->plane_slab_bytes,
                 .plans = profile->plans,
                 .transforms = profile->transforms,
                 .checkpoint = profile->checkpoint,
                 .grid = profile->grid,
                 .join_s = profile->join_s,
                 .stream = profile->stream,
                 .energy = profile->energy};
    if (gethostname(e->host, sizeof e->host - 1) != 0) strcpy(e->host, "unknown");
    memcpy(e->stage_seconds, profile->stage_seconds, sizeof e->stage_seconds);
    memcpy(e->stage_mpi_s, profile->stage_mpi_s, sizeof e->stage_mpi_s);
    memcpy(e->stage_bytes, profile->stage_bytes, sizeof e->stage_bytes);
    memcpy(e->stage_visibilities, profile->stage_visibilities,
           sizeof e->stage_visibilities);
    memcpy(e->ignored, profile->ignored, sizeof e->ignored);
    e->communication_seconds = spent.seconds;
    e->sent_bytes = spent.bytes_sent;
    e->between_bytes = spent.bytes_between;
}

/* Every rank's entry on the first rank, NULL on others; `*entries` with tess_free(). */
static tess_status gather(tess_comm *comm, const tess_profile *profile, entry **entries)
{
    tess_status status = TESS_OK;
    entry own;
    void *all = NULL;
    /* First: a wait for late ranks below belongs to no stage and to no job. */
    fill_entry(profile, &own);
    int64_t *bytes = tess_alloc_zero(tess_comm_size(comm), sizeof *bytes);
    if (!bytes)
        status = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                   "profile of %d ranks", tess_comm_size(comm));
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_gatherv(comm, &own, sizeof own, 0, &all, bytes));
    *entries = all;
cleanup:
    tess_free(bytes);
    return status;
}

/* NAN is nothing, unless there is nothing else. */
static void add_known(double *sum, double value)
{
    if (isnan(value)) return;
    *sum = isnan(*sum) ? value : *sum + value;
}

static void add_energy(const tess_readings *from, energy_totals *sum)
{
    add_known(&sum->cpu_j, from->cpu_j);
    add_known(&sum->gpu_j, from->gpu_j);
    if (isnan(from->gpu_mhz) || isnan(from->gpu_c)) return;
    sum->gpu_mhz = (sum->gpu_mhz * sum->num_gpus + from->gpu_mhz) / (sum->num_gpus + 1);
    sum->gpu_c = fmax(sum->gpu_c, from->gpu_c);
    ++sum->num_gpus;
}

static void add_stages(const entry *e, totals *sum)
{
    for (int s = 0; s < TESS_NUM_STAGES; ++s) {
        sum->stage_max_s[s] = fmax(sum->stage_max_s[s], e->stage_seconds[s]);
        sum->stage_sum_s[s] += e->stage_seconds[s];
        sum->stage_mpi_s[s] += e->stage_mpi_s[s];
        sum->stage_bytes[s] += e->stage_bytes[s];
        sum->stage_visibilities[s] += e->stage_visibilities[s];
    }
}

static void add_gridding(const entry *e, totals *sum)
{
    sum->grid.busy += e->grid.utilisation;
    sum->grid.own_max_s = fmax(sum->grid.own_max_s, e->grid.own_s);
    sum->grid.own_sum_s += e->grid.own_s;
    sum->grid.predicted_max_s =
        fmax(sum->grid.predicted_max_s, e->grid.predicted_largest_s);
    sum->grid.predicted_sum_s += e->grid.predicted_mean_s;
    sum->grid.merged_visibilities += e->grid.merged_visibilities;
}

static void add_streaming(const tess_streaming *from, tess_streaming *sum)
{
    sum->bytes += from->bytes;
    sum->seconds += from->seconds;
    sum->readers_s += from->readers_s;
    sum->writers_s += from->writers_s;
    sum->link_s += from->link_s;
    sum->device_s += from->device_s;
}

static void add_up(const entry *entries, int ranks, totals *sum)
{
    *sum = (totals){.energy = {.cpu_j = NAN, .gpu_j = NAN}};
    for (int r = 0; r < ranks; ++r) {
        const entry *e = &entries[r];
        add_stages(e, sum);
        add_gridding(e, sum);
        add_streaming(&e->stream, &sum->stream);
        add_energy(&e->energy.total, &sum->energy);
        for (int k = 0; k < TESS_NUM_IGNORED; ++k)
            sum->ignored[k] += e->ignored[k];
        sum->visibilities += e->visibilities;
        sum->unsolved += e->grid.unsolved;
        if (e->seconds > sum->max_s) sum->max_s = e->seconds;
        sum->sum_s += e->seconds;
        sum->communication_s += e->communication_seconds;
        sum->sent_bytes += e->sent_bytes;
        sum->between_bytes += e->between_bytes;
        sum->checkpoint.num = e->checkpoint.num;
        sum->checkpoint.bytes += e->checkpoint.bytes;
        sum->checkpoint.seconds = fmax(sum->checkpoint.seconds, e->checkpoint.seconds);
        if (e->peak_memory_bytes > sum->peak_memory_max_bytes)
            sum->peak_memory_max_bytes = e->peak_memory_bytes;
        sum->peak_memory_sum_bytes += e->peak_memory_bytes;
        if (e->device_bytes > sum->device_max_bytes)
            sum->device_max_bytes = e->device_bytes;
        if (e->plans > sum->plans) sum->plans = e->plans;
        if (e->transforms > sum->transforms) sum->transforms = e->transforms;
    }
}

static double communication_fraction(const totals *sum)
{
    return sum->sum_s > 0 ? sum->communication_s / sum->sum_s : 0;
}

/* How far the most loaded rank is above the mean. */
static double imbalance(double largest, double sum, int ranks)
{
    return sum > 0 ? largest * ranks / sum - 1 : 0;
}

static double predicted_imbalance(const totals *sum, int ranks)
{
    return imbalance(sum->grid.predicted_max_s, sum->grid.predicted_sum_s, ranks);
}

static double measured_imbalance(const totals *sum, int ranks)
{
    return imbalance(sum->grid.own_max_s, sum->grid.own_sum_s, ranks);
}

/* ---- the table in the log ---- */

static void log_ignored(const totals *sum)
{
    char line[512] = "";
    size_t used = 0;
    for (int k = 0; k < TESS_NUM_IGNORED; ++k)
        if (sum->ignored[k] > 0 && used < sizeof line) {
            const int n =
                snprintf(line + used, sizeof line - used, "%s%lld %s", used ? ", " : "",
                         (long long)sum->ignored[k], ignored_names[k]);
            used += n > 0 ? (size_t)n : 0;
        }
    tess_log_detail("%lld visibilities; ignored: %s", (long long)sum->visibilities,
                    used ? line : "none");
}

/* Who takes part in a stream of rows; the same threads read and write, one after the
 * other. */
enum { STREAM_READERS, STREAM_LINK, STREAM_DEVICE, STREAM_PARTS };

/* Seconds that each was busy; returns the busiest. */
static int busy_of(const tess_streaming *s, double busy[STREAM_PARTS])
{
    int busiest = 0;
    busy[STREAM_READERS] = s->readers_s + s->writers_s;
    busy[STREAM_LINK] = s->link_s;
    busy[STREAM_DEVICE] = s->device_s;
    for (int k = 1; k < STREAM_PARTS; ++k)
        if (busy[k] > busy[busiest]) busiest = k;
    return busiest;
}

/* Who bounds the stream of rows to and from the GPUs. */
static void log_streaming(const totals *sum, int ranks)
{
    const tess_streaming *s = &sum->stream;
    const char *const name[] = {s->writers_s > 0 ? "readers and writers" : "readers",
                                "link", "device"};
    char line[256] = "";
    size_t used = 0;
    double busy[STREAM_PARTS];
    const int busiest = busy_of(s, busy);
    if (s->bytes == 0 || s->seconds <= 0) return;
    for (int k = 0; k < STREAM_PARTS; ++k)
        used += (size_t)snprintf(line + used, sizeof line - used, "%s%s %.0f %%",
                                 k ? ", " : "", name[k], 100 * busy[k] / s->seconds);
    tess_log_detail("streamed %s to and from GPUs in %.2f s; busy: %s; bound by the %s",
                    tess_mem_text((double)s->bytes), s->seconds / ranks, line,
                    name[busiest]);
}

/* What checkpoints took, and would at the usual distance. */
static void log_checkpoints(const totals *sum)
{
    const double minutes = 10;
    if (sum->checkpoint.num == 0) return;
    const double n = (double)sum->checkpoint.num, each_s = sum->checkpoint.seconds / n;
    tess_log_detail("checkpoints: %lld of %s, %.3f s each; one every %g minutes takes "
                    "%.2g %% of the time",
                    (long long)sum->checkpoint.num,
                    tess_mem_text((double)sum->checkpoint.bytes / n), each_s, minutes,
                    100 * each_s / (60 * minutes));
}

static void log_energy(const totals *sum)
{
    char line[128] = "";
    double joules = NAN;
    add_known(&joules, sum->energy.cpu_j);
    add_known(&joules, sum->energy.gpu_j);
    if (!(joules > 0)) return;
    if (!isnan(sum->energy.gpu_j))
        snprintf(line, sizeof line, "GPUs %.0f J (%.0f MHz, %.0f C at the end)%s",
                 sum->energy.gpu_j, sum->energy.gpu_mhz, sum->energy.gpu_c,
                 isnan(sum->energy.cpu_j) ? "" : ", ");
    if (!isnan(sum->energy.cpu_j))
        snprintf(line + strlen(line), sizeof line - strlen(line), "processors %.0f J",
                 sum->energy.cpu_j);
    tess_log_detail("energy: %s; %.3g visibilities per joule", line,
                    (double)sum->visibilities / joules);
}

static void log_stages(const totals *sum, int ranks)
{
    tess_log_detail("stage         slowest     mean   in MPI   visibilities/s");
    for (int s = 0; s < TESS_NUM_STAGES; ++s) {
        if (sum->stage_max_s[s] <= 0) continue;
        char rate[32] = "";
        if (sum->stage_visibilities[s] > 0)
            snprintf(rate, sizeof rate, "%10.2f M",
                     1e-6 * (double)sum->stage_visibilities[s] / sum->stage_max_s[s]);
        tess_log_detail("  %-10s %8.3f s %7.3f s %7.3f %s",
                        tess_stage_name((tess_stage)s), sum->stage_max_s[s],
                        sum->stage_sum_s[s] / ranks, sum->stage_mpi_s[s] / ranks, rate);
    }
}

static void log_gridding(const totals *sum, int ranks)
{
    if (sum->grid.busy > 0)
        tess_log_detail("threads were busy for %.1f %% of the time of gridding",
                        100 * sum->grid.busy / ranks);
    if (ranks > 1 && sum->grid.own_sum_s > 0)
        tess_log_detail(
            "gridding: the busiest rank %.1f %% above the mean, by processor "
            "time; predicted %.1f %%",
            100 * measured_imbalance(sum, ranks),
            100 * predicted_imbalance(sum, ranks));
    if (sum->grid.merged_visibilities > 0)
        tess_log_detail("%lld visibilities were gridded along with another at their "
                        "position",
                        (long long)sum->grid.merged_visibilities);
}

/* Time, communication and memory in all. */
static void log_sums(const totals *sum)
{
    char between[64] = "", device[64] = "";
    if (sum->between_bytes > 0)
        snprintf(between, sizeof between, ", %s between nodes",
                 tess_mem_text((double)sum->between_bytes));
    if (sum->device_max_bytes > 0)
        snprintf(device, sizeof device, ", of its GPU %s",
                 tess_mem_text((double)sum->device_max_bytes));
    tess_log_detail(
        "%.2f s in all, %.1f %% in communication (%s sent%s); memory per rank "
        "at most %s%s",
        sum->max_s, 100 * communication_fraction(sum),
        tess_mem_text((double)sum->sent_bytes), between,
        tess_mem_text((double)sum->peak_memory_max_bytes), device);
}

static void log_totals(const totals *sum, int ranks)
{
    log_stages(sum, ranks);
    log_gridding(sum, ranks);
    log_streaming(sum, ranks);
    log_checkpoints(sum);
    log_energy(sum);
    log_ignored(sum);
    log_sums(sum);
}

tess_status tess_profile_summary(tess_comm *comm, const tess_profile *profile)
{
    tess_status status = TESS_OK;
    entry *entries = NULL;
    totals sum;
    TESS_TRY(gather(comm, profile, &entries));
    if (tess_comm_rank(comm) == 0) {
        add_up(entries, tess_comm_size(comm), &sum);
        log_totals(&sum, tess_comm_size(comm));
    }
cleanup:
    tess_free(entries);
    return status;
}

/* ---- JSON ---- */

/* JSON has no NaN. Times with microseconds: more digits are noise. */
static double json_number(double value)
{
    return isfinite(value) ? value : 0;
}

static json_t *json_seconds(double seconds)
{
    return json_real(round(1e6 * json_number(seconds)) / 1e6);
}

static json_t *rank_stages(const entry *e)
{
    json_t *stages = json_object();
    for (int s = 0; s < TESS_NUM_STAGES; ++s)
        json_object_set_new(stages, tess_stage_name((tess_stage)s),
                            json_pack("{s:o, s:I, s:I, s:o}", "seconds",
                                      json_seconds(e->stage_seconds[s]), "bytes",
                                      (json_int_t)e->stage_bytes[s], "visibilities",
                                      (json_int_t)e->stage_visibilities[s],
                                      "mpi_seconds", json_seconds(e->stage_mpi_s[s])));
    return stages;
}

/* Name of the busiest part, and the share of the time that it was busy; null if nothing
 * was streamed, or no part was ever busy. */
static json_t *busiest_object(const tess_streaming *s)
{
    static const char *const name[] = {"readers", "link", "device"};
    double busy[STREAM_PARTS];
    const int k = busy_of(s, busy);
    if (!(s->seconds > 0 && busy[k] > 0)) return json_null();
    return json_pack("{s:s, s:o}", "name", name[k], "share",
                     json_real(round(1e4 * busy[k] / s->seconds) / 1e4));
}

static json_t *streaming_object(const tess_streaming *s)
{
    return json_pack("{s:I, s:o, s:{s:o, s:o, s:o, s:o}, s:o}", "bytes",
                     (json_int_t)s->bytes, "seconds", json_seconds(s->seconds), "busy",
                     "readers", json_seconds(s->readers_s), "writers",
                     json_seconds(s->writers_s), "link", json_seconds(s->link_s),
                     "device", json_seconds(s->device_s), "busiest", busiest_object(s));
}

static json_t *json_known(double value)
{
    return isfinite(value) ? json_real(round(1e3 * value) / 1e3) : json_null();
}

static json_t *energy_object(const tess_energy *energy)
{
    const tess_readings *total = &energy->total;
    json_t *stages = json_object();
    for (int s = 0; s < TESS_NUM_STAGES; ++s)
        json_object_set_new(
            stages, tess_stage_name((tess_stage)s),
            json_pack("{s:o, s:o}", "cpu_joules",
                      json_known(energy->stage_cpu_j[s] + 0 * total->cpu_j),
                      "gpu_joules",
                      json_known(energy->stage_gpu_j[s] + 0 * total->gpu_j)));
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "cpu_joules",
                     json_known(total->cpu_j), "gpu_joules", json_known(total->gpu_j),
                     "gpu_mhz", json_known(total->gpu_mhz), "gpu_celsius",
                     json_known(total->gpu_c), "stages", stages);
}

static json_t *rank_object(const entry *e, int rank)
{
    return json_pack(
        "{s:i, s:s, s:o, s:I, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:o, s:o, "
        "s:I, "
        "s:o, s:o}",
        "rank", rank, "host", e->host, "stages", rank_stages(e), "visibilities",
        (json_int_t)e->visibilities, "seconds", json_seconds(e->seconds),
        "communication_seconds", json_seconds(e->communication_seconds), "sent_bytes",
        (json_int_t)e->sent_bytes, "sent_between_nodes_bytes",
        (json_int_t)e->between_bytes, "peak_memory_bytes",
        (json_int_t)e->peak_memory_bytes, "device_bytes", (json_int_t)e->device_bytes,
        "image_slab_bytes", (json_int_t)e->image_slab_bytes, "plane_slab_bytes",
        (json_int_t)e->plane_slab_bytes, "grid_utilisation",
        json_number(e->grid.utilisation), "grid_own_seconds",
        json_seconds(e->grid.own_s), "join_seconds", json_seconds(e->join_s),
        "merged_visibilities", (json_int_t)e->grid.merged_visibilities, "streaming",
        streaming_object(&e->stream), "energy", energy_object(&e->energy));
}

static json_t *total_stages(const totals *sum, int ranks)
{
    json_t *stages = json_object();
    for (int s = 0; s < TESS_NUM_STAGES; ++s)
        json_object_set_new(
            stages, tess_stage_name((tess_stage)s),
            json_pack("{s:o, s:o, s:o, s:I, s:I}", "seconds",
                      json_seconds(sum->stage_max_s[s]), "mean_seconds",
                      json_seconds(sum->stage_sum_s[s] / ranks), "mpi_mean_seconds",
                      json_seconds(sum->stage_mpi_s[s] / ranks), "bytes",
                      (json_int_t)sum->stage_bytes[s], "visibilities",
                      (json_int_t)sum->stage_visibilities[s]));
    return stages;
}

static json_t *imbalance_object(const totals *sum, int ranks)
{
    return json_pack("{s:f, s:f}", "predicted",
                     json_number(predicted_imbalance(sum, ranks)), "measured",
                     json_number(measured_imbalance(sum, ranks)));
}

/* Null without checkpoints. */
static json_t *checkpoints_object(const totals *sum)
{
    if (sum->checkpoint.num == 0) return json_null();
    return json_pack("{s:I, s:o, s:I}", "number", (json_int_t)sum->checkpoint.num,
                     "seconds", json_seconds(sum->checkpoint.seconds), "bytes",
                     (json_int_t)sum->checkpoint.bytes);
}

static json_t *total_object(const totals *sum, int ranks)
{
    json_t *ignored = json_object();
    for (int k = 0; k < TESS_NUM_IGNORED; ++k)
        json_object_set_new(ignored, ignored_names[k],
                            json_integer((json_int_t)sum->ignored[k]));
    return json_pack(
        "{s:I, s:o, s:I, s:o, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, "
        "s:o, "
        "s:f, s:o, s:I}",
        "visibilities", (json_int_t)sum->visibilities, "ignored", ignored,
        "without_solution", (json_int_t)sum->unsolved, "seconds",
        json_seconds(sum->max_s), "communication_fraction",
        json_number(communication_fraction(sum)), "sent_bytes",
        (json_int_t)sum->sent_bytes, "sent_between_nodes_bytes",
        (json_int_t)sum->between_bytes, "peak_memory_bytes",
        (json_int_t)sum->peak_memory_max_bytes, "peak_memory_sum_bytes",
        (json_int_t)sum->peak_memory_sum_bytes, "plans", (json_int_t)sum->plans,
        "transforms", (json_int_t)sum->transforms, "checkpoints",
        checkpoints_object(sum), "stages", total_stages(sum, ranks), "streaming",
        streaming_object(&sum->stream), "cpu_joules", json_known(sum->energy.cpu_j),
        "gpu_joules", json_known(sum->energy.gpu_j), "grid_utilisation",
        json_number(sum->grid.busy / ranks), "grid_imbalance",
        imbalance_object(sum, ranks), "merged_visibilities",
        (json_int_t)sum->grid.merged_visibilities);
}

static json_t *profile_object(const entry *entries, int ranks,
                              const tess_profile *profile)
{
    totals sum;
    add_up(entries, ranks, &sum);
    json_t *list = json_array();
    for (int r = 0; r < ranks; ++r)
        json_array_append_new(list, rank_object(&entries[r], r));
    json_t *words = json_string(profile->plan);
    if (!words) words = json_string(""); /* not UTF-8 */
    json_t *object = json_pack("{s:s, s:o, s:i, s:o, s:o}", "version",
                               tess_version_full(), "plan", words, "num_ranks", ranks,
                               "totals", total_object(&sum, ranks), "ranks", list);
    if (object && profile->projection_error > 0)
        json_object_set_new(object, "projection_error",
                            json_real(profile->projection_error));
    return object;
}

static tess_status write_json(const json_t *root, const char *path, bool overwrite)
{
    tess_status status = TESS_OK;
    char temp[TESS_OUT_FILE_NAME] = "";
    int fd = -1;
    FILE *file = NULL;
    TESS_TRY(tess_out_file_begin(path, overwrite, temp, &fd));
    file = fdopen(fd, "w");
    if (!file)
        TESS_FAIL(TESS_ERR_IO, "%s: profile cannot be written: %s", path,
                  strerror(errno));
    fd = -1; /* closed with it */
    int bad = json_dumpf(root, file, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    bad = fputc('\n', file) == EOF || bad;
    bad = fclose(file) != 0 || bad;
    file = NULL;
    if (bad)
        TESS_FAIL(TESS_ERR_IO, "%s: profile cannot be written: %s", path,
                  strerror(errno));
    TESS_TRY(tess_out_file_publish(temp, path, overwrite));
    temp[0] = '\0';
cleanup:
    if (file) fclose(file);
    if (fd >= 0) close(fd);
    tess_out_file_discard(temp);
    return status;
}

tess_status tess_profile_write(tess_comm *comm, const tess_profile *profile,
                               const char *path, bool overwrite)
{
    tess_status status = TESS_OK;
    entry *entries = NULL;
    json_t *root = NULL;
    TESS_TRY(gather(comm, profile, &entries));
    if (tess_comm_rank(comm) == 0) {
        root = profile_object(entries, tess_comm_size(comm), profile);
        if (root)
            status = write_json(root, path, overwrite);
        else
            status = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                       "%s: profile", path);
    }
    status = tess_comm_agree(comm, status);
cleanup:
    json_decref(root);
    tess_free(entries);
    return status;
}
