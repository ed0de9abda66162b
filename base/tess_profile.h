/** @file tess_profile.h
 *  Where time, bytes and visibilities of this rank went, by stage. Whoever works on a
 *  stage adds to it; tess_profile_report.h tells all ranks' in the end.
 */
#ifndef TESS_PROFILE_H
#define TESS_PROFILE_H

#include <stdint.h>

#include "tess_meter.h"
#include "tess_trace.h"

typedef enum tess_stage {
    TESS_STAGE_READ,
    TESS_STAGE_WEIGHT,
    TESS_STAGE_PLAN, /**< gridding plan, FFT plans, buffers: what images share */
    TESS_STAGE_PARTITION,
    TESS_STAGE_EXCHANGE,
    TESS_STAGE_SORT,
    TESS_STAGE_GRID,    /**< gridding, or degridding in predict */
    TESS_STAGE_REDUCE,  /**< tile sums to and from the owners of the FFT, image sums */
    TESS_STAGE_FFT,     /**< FFT and w-screens */
    TESS_STAGE_CORRECT, /**< grid correction, beam fit */
    TESS_STAGE_CLEAN,   /**< minor loops, restored images */
    TESS_STAGE_WRITE,
    TESS_NUM_STAGES
} tess_stage;

/** Why a visibility was ignored. */
typedef enum tess_ignored {
    TESS_IGNORED_FLAGGED,
    TESS_IGNORED_WEIGHT,     /**< weight <= 0 */
    TESS_IGNORED_NOT_FINITE, /**< value, weight or uvw */
    TESS_IGNORED_AUTOCORR,
    TESS_IGNORED_BEYOND_UV, /**< |u| or |v| >= 1/(2 scale) */
    TESS_IGNORED_UVRANGE,   /**< outside --uvrange */
    TESS_NUM_IGNORED
} tess_ignored;

/** Energy since tess_profile_start_meter; NAN: cannot be read. */
typedef struct tess_energy {
    tess_readings total; /**< and clock and temperature at the end */
    double stage_cpu_j[TESS_NUM_STAGES], stage_gpu_j[TESS_NUM_STAGES];
} tess_energy;

/** Rows that went to a GPU as they are in their file, or came back. */
typedef struct tess_streaming {
    int64_t bytes;
    double seconds;              /**< it took, of which busy were: */
    double readers_s, writers_s; /**< threads that read and write files */
    double link_s, device_s;     /**< copies, and kernels that decode */
} tess_streaming;

/** The checkpoints that were written with sums. */
typedef struct tess_checkpoint_cost {
    int64_t num, bytes; /**< bytes: of this rank */
    double seconds;
} tess_checkpoint_cost;

/** How the work of the gridding stage was shared. */
typedef struct tess_grid_work {
    double utilisation; /**< busy share of the threads */
    double own_s;       /**< tess_time_own() of the first thread */
    double predicted_largest_s, predicted_mean_s; /**< of the most and of the average
                                                       loaded rank, as planned */
    int64_t merged_visibilities; /**< gridded along with another at their position */
} tess_grid_work;

typedef struct tess_profile {
    double stage_seconds[TESS_NUM_STAGES]; /**< of this rank */
    int64_t stage_bytes[TESS_NUM_STAGES];  /**< read, written, or sent to other ranks */
    double stage_mpi_s[TESS_NUM_STAGES];   /**< in MPI, waiting included */
    int64_t sent_before;                   /**< bytes sent that a stage has counted */
    double mpi_before_s;                   /**< likewise, seconds in MPI */
    int64_t stage_visibilities[TESS_NUM_STAGES];
    int64_t visibilities; /**< imaged or predicted, from this rank's rows */
    int64_t ignored[TESS_NUM_IGNORED];
    double beyond_uv_lambda; /**< largest |u| or |v| of those of BEYOND_UV; 0 unknown */
    int64_t plans;           /**< gridding plans made */
    int64_t transforms;      /**< plane transforms set up */
    int64_t device_bytes;    /**< most that was held of a GPU's memory */
    int64_t image_slab_bytes, plane_slab_bytes; /**< largest buffer of one image and of
                                                  one w-plane on this rank */
    tess_checkpoint_cost checkpoint;
    tess_streaming stream;
    bool wants_energy;                      /**< measure energy, where it can be */
    tess_energy energy;                     /**< of this rank's GPU, and its node's
                                                 processors, unless another rank has them */
    struct tess_profile_metering *metering; /**< while it is measured */
    double start_s;                         /**< tess_time_now() at program start */
    tess_grid_work grid;
    double join_s;           /**< of the FFT stage: tile sums to and from grid lines */
    char plan[1024];         /**< the plan in words */
    double projection_error; /**< of w-projection, measured; 0: not used */
    tess_trace *trace;       /**< gets the stages as spans, or NULL; borrowed */
} tess_profile;

/** "read", "grid" ... */
const char *tess_stage_name(tess_stage stage);

void tess_profile_start(tess_profile *profile);

/** Add the time since `*mark`, and what tess_profile_sent does, to a stage and set
 *  `*mark` to now. */
void tess_profile_lap(tess_profile *profile, tess_stage stage, double *mark);

/** Add the time since `begin` to a stage, as tess_profile_lap does; what was sent, and
 *  the time in MPI, are counted elsewhere. */
void tess_profile_since(tess_profile *profile, tess_stage stage, double begin);

/** Add what was sent to other ranks since the last call, and the time in MPI, waiting
 *  for them included, to a stage. */
void tess_profile_sent(tess_profile *profile, tess_stage stage);

/** Begin to measure energy, if it is wanted: of the GPU at this PCI bus id ("": none)
 *  and, when `cpu`, of the node's processors. Stages get what was used while they took
 *  time, as far as the counters tell, which are read ten times a second. Local. */
void tess_profile_start_meter(tess_profile *profile, const char *gpu_bus_id, bool cpu);
void tess_profile_stop_meter(tess_profile *profile); /**< Local. */

#endif
