/** @file study_plan.h  (private to app/bench/gcf/strategies/)
 *  A plan, and the strategies on a CPU.
 */
#ifndef TESS_STUDY_PLAN_H
#define TESS_STUDY_PLAN_H

#include "study_device.h"
#include "study_loops.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tess_study_plan {
    tess_study_opts opts;
    const tess_gcf_strategy *base; /**< the strategy in its usual way */
    tess_gcf_strategy strategy;    /**< the same, by way of study_device.h on a GPU */
    tess_gcf_tiling tiling;
    tess_gcf_plan *core; /**< it runs `strategy`; its context is this plan */
    void *cube; /**< complex [num_planes][C][C], C = max_support·Q/2 + 1, if the probe
                     `cube` asks for it */
    tess_study_copies copies;
    int repeat; /**< as in tess_study_plan_repeat() */
    tess_study_meter *meter;
    void *context;
    bool metering; /**< kernels are to be repeated, and have not been yet */
    void *host;    /**< the device's: the grid of the call */
};

/** Strategies in their usual way. */
extern const tess_study_probes study_no_probes;

/** The probes of a plan, which is the context of a plan of tess_gcf_grid.h; those of
 *  NULL, of the usual way. */
static inline const tess_study_probes *study_probes_in(const void *context)
{
    const tess_study_plan *plan = (const tess_study_plan *)context;
    return plan ? &plan->opts.probes : &study_no_probes;
}

/** Whether such a plan computes with fast functions. */
static inline bool study_is_fast(const void *context)
{
    const tess_study_plan *plan = (const tess_study_plan *)context;
    return plan && plan->opts.fast_math;
}

/** The cube of a job's plan. */
static inline const void *study_cube_of(const gcf_job *job)
{
    const tess_study_plan *plan = (const tess_study_plan *)job->context;
    return plan->cube;
}

gcf_run study_run_serial, study_run_atomic, study_run_computed, study_run_private;

#ifdef __cplusplus
}
#endif
#endif
