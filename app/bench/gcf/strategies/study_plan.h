/** @file study_plan.h  (private to app/bench/gcf/strategies/)
 *  A plan, and the strategies on a CPU and on a GPU.
 */
#ifndef TESS_STUDY_PLAN_H
#define TESS_STUDY_PLAN_H

#include "tess_gcf_strategy.h"
#include "tess_study.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- study_isa.c: loops, compiled for each instruction set ---- */

/** Functions of one instruction set: of tables by precision, others by [is_double]. */
typedef struct study_table {
    gcf_function *grid_plain[GCF_NUM_PRECISIONS], *degrid_plain[GCF_NUM_PRECISIONS];
    gcf_function *grid_atomic[GCF_NUM_PRECISIONS];
    gcf_function *grid_cube[2]; /**< with taps from a cube */
    /** kernels of a formula, computed; [is_double][with fast functions, in single] */
    gcf_function *grid_computed[2][2], *grid_computed_atomic[2][2];
    gcf_function *degrid_computed[2][2];
} study_table;

extern const study_table study_table_portable;
#if defined(__x86_64__)
extern const study_table study_table_avx2;
extern const study_table study_table_knl;
extern const study_table study_table_avx512;
#endif

/** The table for this processor, see tess_isa_best(). */
const study_table *study_table_best(void);

struct tess_study_plan {
    tess_study_opts opts;
    const tess_gcf_strategy *base; /**< the strategy in its usual way */
    tess_gcf_strategy strategy;    /**< the same, by way of study_device_run on a GPU */
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

/* ---- on a GPU; study_device_absent.c: in a build without one ---- */

/** A strategy that tess_gcf_grid.h does not have, in a direction; NULL: there is none.
 */
const struct gcf_device_method *study_device_method(tess_study_strategy strategy,
                                                    bool degrid);

/** The strategy of a study's plan with the probes that all strategies have. */
const struct gcf_device_method *study_device_probed(bool degrid);

/** (De)grid points and cells on the host with a study's plan: what differs from
 *  tess_gcf_grid() are probes, times of copies, and repetitions. */
gcf_run study_device_run;

#ifdef __cplusplus
}
#endif
#endif
