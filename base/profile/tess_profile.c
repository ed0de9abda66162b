/* The clock of the stages: time, energy and bytes go to the stage that takes them. */
#include "tess_profile.h"

#include <math.h>
#include <string.h>

#include "tess_log.h"
#include "tess_mem.h"

static const char *const stage_names[TESS_NUM_STAGES] = {
    [TESS_STAGE_READ] = "read",         [TESS_STAGE_WEIGHT] = "weight",
    [TESS_STAGE_PLAN] = "plan",         [TESS_STAGE_PARTITION] = "partition",
    [TESS_STAGE_EXCHANGE] = "exchange", [TESS_STAGE_SORT] = "sort",
    [TESS_STAGE_GRID] = "grid",         [TESS_STAGE_REDUCE] = "reduce",
    [TESS_STAGE_FFT] = "fft",           [TESS_STAGE_CORRECT] = "correct",
    [TESS_STAGE_CLEAN] = "clean",       [TESS_STAGE_WRITE] = "write",
};

const char *tess_stage_name(tess_stage stage)
{
    return stage_names[stage];
}

void tess_profile_start(tess_profile *profile)
{
    const tess_spent spent = tess_spent_so_far();
    *profile = (tess_profile){.spent_before = spent, .counted = spent};
    profile->start_s = tess_time_now();
    profile->energy.total = (tess_readings){NAN, NAN, NAN, NAN};
}

static void add_span(tess_profile *profile, tess_stage stage, double begin, double end)
{
    profile->stage_seconds[stage] += end - begin;
    tess_trace_add(profile->trace, TESS_LANE_STAGES, stage_names[stage], begin, end);
}

void tess_profile_since(tess_profile *profile, tess_stage stage, double begin)
{
    add_span(profile, stage, begin, tess_time_now());
}

/* ---- energy ---- */

/* Seconds between two readings of the counters. */
static const double METER_STEP_S = 0.1;

struct tess_profile_metering {
    tess_meter *meter;
    double read_s; /* time of the last reading */
    tess_readings last;
    double stage_seconds[TESS_NUM_STAGES]; /* seconds of each stage at that time */
};

/* Share the energy since the last reading among the stages, by their time since then.
 */
static void meter_now(tess_profile *profile)
{
    struct tess_profile_metering *metering = profile->metering;
    tess_energy *energy = &profile->energy;
    const double now = tess_time_now(), passed = now - metering->read_s;
    tess_readings next;
    tess_meter_read(metering->meter, &next);
    for (int s = 0; s < TESS_NUM_STAGES && passed > 0; ++s) {
        const double seconds = profile->stage_seconds[s] - metering->stage_seconds[s];
        const double share = fmin(1, seconds / passed);
        energy->stage_cpu_j[s] += share * (next.cpu_j - metering->last.cpu_j);
        energy->stage_gpu_j[s] += share * (next.gpu_j - metering->last.gpu_j);
        metering->stage_seconds[s] = profile->stage_seconds[s];
    }
    energy->total = metering->last = next;
    metering->read_s = now;
}

void tess_profile_start_meter(tess_profile *profile, const char *gpu_bus_id, bool cpu)
{
    if (!profile->wants_energy || profile->metering) return;
    struct tess_profile_metering *made = tess_alloc_zero(1, sizeof *made);
    if (!made) return; /* energy is no reason for a run to fail */
    made->meter = tess_meter_create(gpu_bus_id, cpu ? TESS_METER_RAPL : NULL);
    if (!made->meter) {
        tess_free(made);
        return;
    }
    memcpy(made->stage_seconds, profile->stage_seconds, sizeof made->stage_seconds);
    made->read_s = tess_time_now();
    tess_meter_read(made->meter, &made->last);
    profile->metering = made;
}

void tess_profile_stop_meter(tess_profile *profile)
{
    if (!profile->metering) return;
    meter_now(profile);
    tess_meter_destroy(profile->metering->meter);
    tess_free(profile->metering);
    profile->metering = NULL;
}

/* ---- stages ---- */

void tess_profile_lap(tess_profile *profile, tess_stage stage, double *mark)
{
    const double begin = *mark;
    *mark = tess_time_now();
    add_span(profile, stage, begin, *mark);
    if (profile->metering && *mark - profile->metering->read_s >= METER_STEP_S)
        meter_now(profile);
    tess_profile_sent(profile, stage);
}

void tess_profile_sent(tess_profile *profile, tess_stage stage)
{
    const tess_spent spent = tess_spent_so_far();
    profile->stage_bytes[stage] += spent.bytes_sent - profile->counted.bytes_sent;
    profile->stage_mpi_s[stage] += spent.seconds - profile->counted.seconds;
    profile->counted = spent;
}

/* ---- teams of threads ---- */

void tess_profile_start_team(tess_profile *profile, tess_trace *trace)
{
    tess_profile_start(profile);
    profile->trace = trace;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void tess_profile_add_team(tess_profile *profile, const tess_profile *team,
                           double share)
{
    for (int s = 0; s < TESS_NUM_STAGES; ++s) {
        profile->stage_seconds[s] += share * team->stage_seconds[s];
        profile->stage_mpi_s[s] += share * team->stage_mpi_s[s];
        profile->stage_bytes[s] += team->stage_bytes[s];
        profile->stage_visibilities[s] += team->stage_visibilities[s];
    }
    profile->transforms = larger(profile->transforms, team->transforms);
    profile->image_slab_bytes =
        larger(profile->image_slab_bytes, team->image_slab_bytes);
    profile->plane_slab_bytes =
        larger(profile->plane_slab_bytes, team->plane_slab_bytes);
    profile->grid.own_s += share * team->grid.own_s;
    profile->grid.predicted_largest_s += share * team->grid.predicted_largest_s;
    profile->grid.predicted_mean_s += share * team->grid.predicted_mean_s;
    profile->grid.merged_visibilities += team->grid.merged_visibilities;
    if (team->grid.utilisation > 0) profile->grid.utilisation = team->grid.utilisation;
    profile->join_s += share * team->join_s;
    if (*team->plan) memcpy(profile->plan, team->plan, sizeof profile->plan);
}

double tess_profile_seconds(const tess_profile *profile)
{
    double sum = 0;
    for (int s = 0; s < TESS_NUM_STAGES; ++s)
        sum += profile->stage_seconds[s];
    return sum;
}

/* ---- communication ---- */

static _Thread_local tess_spent all_spent;

void tess_spent_add(const tess_spent *more)
{
    all_spent.bytes_sent += more->bytes_sent;
    all_spent.bytes_between += more->bytes_between;
    all_spent.seconds += more->seconds;
}

void tess_profile_take_over(tess_profile *profile)
{
    profile->counted = tess_spent_so_far();
}

tess_spent tess_spent_so_far(void)
{
    return all_spent;
}

tess_spent tess_profile_spent(const tess_profile *profile)
{
    const tess_spent *before = &profile->spent_before;
    tess_spent spent = tess_spent_so_far();
    spent.bytes_sent -= before->bytes_sent;
    spent.bytes_between -= before->bytes_between;
    spent.seconds -= before->seconds;
    return spent;
}
