/** @file tess_profile.h
 *  Time, bytes and visibilities of this rank by stage of the work. Code that works on a
 *  stage adds to the stage. tess_profile_report.h reports the profiles of all ranks in
 *  the end.
 */
#ifndef TESS_PROFILE_H
#define TESS_PROFILE_H

#include <stdint.h>

#include "tess_meter.h"
#include "tess_trace.h"

/** What this thread has spent on communication with other ranks, over all
 * communicators. One thread of a rank talks to other ranks. mpi/ counts it. */
typedef struct tess_spent {
    int64_t bytes_sent;    /**< bytes sent to other ranks */
    int64_t bytes_between; /**< of these, the bytes that personalised exchanges and
                              tess_comm_reduce_scatter have sent to other nodes */
    double seconds;        /**< seconds in calls of tess_comm.h, including waiting */
} tess_spent;

/** Add to what has been spent. Local. */
void tess_spent_add(const tess_spent *more);

/** All that this thread has spent so far. Local. */
tess_spent tess_spent_so_far(void);

typedef enum tess_stage {
    TESS_STAGE_READ,
    TESS_STAGE_WEIGHT,
    TESS_STAGE_PLAN, /**< what images share: gridding plan, FFT plans, buffers */
    TESS_STAGE_PARTITION,
    TESS_STAGE_EXCHANGE,
    TESS_STAGE_SORT,
    TESS_STAGE_GRID,    /**< gridding, or degridding in predict */
    TESS_STAGE_REDUCE,  /**< tile sums on their way to the owners of the FFT and back,
                           sums of images */
    TESS_STAGE_FFT,     /**< FFT and w-screens */
    TESS_STAGE_CORRECT, /**< grid correction, beam fit */
    TESS_STAGE_CLEAN,   /**< minor loops, restored images */
    TESS_STAGE_WRITE,
    TESS_NUM_STAGES
} tess_stage;

/** Reasons to ignore a visibility. */
typedef enum tess_ignored {
    TESS_IGNORED_FLAGGED,
    TESS_IGNORED_WEIGHT,     /**< weight <= 0 */
    TESS_IGNORED_NOT_FINITE, /**< value, weight or uvw */
    TESS_IGNORED_AUTOCORR,
    TESS_IGNORED_BEYOND_UV, /**< |u| or |v| >= 1/(2 scale) */
    TESS_IGNORED_UVRANGE,   /**< outside --uvrange */
    TESS_NUM_IGNORED
} tess_ignored;

/** Energy since tess_profile_start_meter. A value that cannot be read is NAN. */
typedef struct tess_energy {
    tess_readings total; /**< energy, and clock and temperature at the end */
    double stage_cpu_j[TESS_NUM_STAGES], stage_gpu_j[TESS_NUM_STAGES];
} tess_energy;

/** Rows of files that were copied to a GPU as they are, or copied back from it. */
typedef struct tess_streaming {
    int64_t bytes;
    double seconds; /**< elapsed seconds, in which the following were busy: */
    double readers_s, writers_s; /**< seconds of the threads that read files and of
                                    those that write files */
    double link_s,
        device_s; /**< seconds of copies, and of the kernels that decode rows */
} tess_streaming;

/** Checkpoints that were written and that hold sums of planes or bricks. */
typedef struct tess_checkpoint_cost {
    int64_t num, bytes; /**< number of checkpoints, and bytes of this rank in them */
    double seconds;
} tess_checkpoint_cost;

/** How the work of the gridding stage was shared. */
typedef struct tess_grid_work {
    double utilisation; /**< share of the time in which the threads were busy */
    double own_s;       /**< tess_time_own() of the first thread */
    double predicted_largest_s,
        predicted_mean_s; /**< seconds of the rank with most work, and of the mean rank,
                             as the partition predicted */
    int64_t merged_visibilities; /**< visibilities that were gridded together with
                                    another one at the same position */
    int64_t unsolved; /**< visibilities that facets leave out for lack of a solution,
                         once for each facet, of all ranks (rank 0) */
} tess_grid_work;

typedef struct tess_profile {
    double stage_seconds[TESS_NUM_STAGES]; /**< seconds of this rank */
    int64_t stage_bytes[TESS_NUM_STAGES]; /**< bytes that were read, written, or sent to
                                             other ranks */
    double stage_mpi_s[TESS_NUM_STAGES];  /**< seconds in MPI, including waiting */
    tess_spent counted; /**< spent so far, of which stages have counted their part */
    int64_t stage_visibilities[TESS_NUM_STAGES];
    int64_t visibilities; /**< visibilities of this rank's rows that were imaged or
                             predicted */
    int64_t ignored[TESS_NUM_IGNORED];
    double beyond_uv_lambda; /**< largest |u| or |v| of the visibilities that
                                TESS_IGNORED_BEYOND_UV counts; 0: unknown */
    int64_t plans;           /**< number of gridding plans that were made */
    int64_t transforms;      /**< number of plane transforms that were set up; teams of
                                threads      set up the same, which count once */
    int64_t device_bytes; /**< largest amount of GPU memory that was held at a time */
    int64_t image_slab_bytes, plane_slab_bytes; /**< bytes of this rank's largest buffer
                                                   for one image, and for one w-plane */
    tess_checkpoint_cost checkpoint;
    tess_streaming stream;
    bool wants_energy;  /**< measure energy, if the machine can */
    tess_energy energy; /**< energy of this rank's GPU, and of its node's processors
                           unless another rank measures them */
    struct tess_profile_metering
        *metering;           /**< state of the measurement, while energy is measured */
    double start_s;          /**< tess_time_now() when the profile began */
    tess_spent spent_before; /**< what this thread had spent until then */
    tess_grid_work grid;
    double join_s;   /**< seconds of the FFT stage in which tile sums were added to grid
                        lines or taken from them */
    char plan[1024]; /**< the plan in words */
    double projection_error; /**< measured error of w-projection; 0: w-projection is not
                                used */
    tess_trace *trace;       /**< receives the stages as spans; or NULL. Borrowed */
} tess_profile;

/** Name of a stage: "read", "grid", ... */
const char *tess_stage_name(tess_stage stage);

/** Begin with zeros. Time and messages of this thread count from here on. Local. */
void tess_profile_start(tess_profile *profile);

/** What this thread has spent since tess_profile_start(). Local. */
tess_spent tess_profile_spent(const tess_profile *profile);

/** Let this thread add to stages from now on, without what it has spent before. No
 * other thread may add to them meanwhile. Local. */
void tess_profile_take_over(tess_profile *profile);

/** Add the time since `*mark` to a stage, and what tess_profile_sent adds. Set `*mark`
 * to now. */
void tess_profile_lap(tess_profile *profile, tess_stage stage, double *mark);

/** Add the time since `begin` to a stage, as tess_profile_lap does, but no bytes and no
 * time in MPI, which the caller counts elsewhere. */
void tess_profile_since(tess_profile *profile, tess_stage stage, double begin);

/** Add to a stage the bytes that were sent to other ranks since the last call, and the
 * time in MPI, including waiting for other ranks. */
void tess_profile_sent(tess_profile *profile, tess_stage stage);

/** Begin the profile of a team of threads that work beside others, in the first of
 * these threads. `trace` receives its stages as spans, or is NULL. Local. */
void tess_profile_start_team(tess_profile *profile, tess_trace *trace);

/** Add the profile of such a team. Each of its seconds counts as `share` seconds of
 * this rank, which are those of all teams together where they work at the same time.
 * Local. */
void tess_profile_add_team(tess_profile *profile, const tess_profile *team,
                           double share);

/** Seconds in all stages. Local. */
double tess_profile_seconds(const tess_profile *profile);

/** Begin to measure energy if profile->wants_energy: of the GPU at this PCI bus id ("":
 * no GPU) and, if `cpu`, of the node's processors. Counters are read ten times a
 * second. The energy between two readings is shared among the stages by the time that
 * they took. Local. */
void tess_profile_start_meter(tess_profile *profile, const char *gpu_bus_id, bool cpu);
void tess_profile_stop_meter(tess_profile *profile); /**< Local. */

#endif
