/* Plans of the strategies for comparison: a plan of tess_gcf_grid.h, whose strategy
 * finds the probes in the plan here. */
#include "study_plan.h"

#include "tess_log.h"
#include "tess_mem.h"

void tess_study_opts_default(tess_study_opts *opts)
{
    tess_gcf_grid_opts usual;
    tess_gcf_grid_opts_default(&usual);
    *opts = (tess_study_opts){.strategy = TESS_STUDY_TILED,
                              .threads = usual.threads,
                              .factor_error = usual.factor_error,
                              .max_rank = usual.max_rank,
                              .least_cells = usual.least_cells};
}

/* Quarters of planes, in steps of 1/Q cell. */
static tess_status make_cube(tess_study_plan *plan)
{
    tess_status status = TESS_OK;
    const tess_gcf *gcf = plan->core->gcf;
    const int64_t size = gcf->max_support / 2 * gcf->layout.oversampling + 1;
    plan->cube =
        tess_alloc_zero(gcf->layout.num_planes * size * size, gcf_value_bytes(gcf));
    if (!plan->cube) TESS_FAIL(TESS_ERR_ALLOC, "a cube of kernels");
#pragma omp parallel for num_threads(plan->opts.threads) schedule(dynamic, 1)
    for (int p = 0; p < gcf->layout.num_planes; ++p) {
        const int end = gcf->plane[p].support / 2 * gcf->layout.oversampling;
        for (int x = 0; x <= end; ++x)
            for (int y = 0; y <= end; ++y) {
                const int64_t at = 2 * ((p * size + x) * size + y);
                double value[2];
                tess_gcf_value(gcf, p, x, y, value);
                for (int part = 0; part < 2; ++part)
                    if (gcf->layout.is_double)
                        ((double *)plan->cube)[at + part] = value[part];
                    else
                        ((float *)plan->cube)[at + part] = (float)value[part];
            }
    }
cleanup:
    return status;
}

/* TESS_ERR_USAGE: there is no such strategy, or it cannot use these tables so. */
static tess_status check_opts(const tess_gcf *gcf, const tess_study_opts *opts)
{
    tess_status status = TESS_OK;
    if (!tess_study_name(opts->strategy))
        TESS_FAIL(TESS_ERR_USAGE, "no gridding strategy %d", (int)opts->strategy);
    if (!tess_study_there(opts->backend, opts->strategy, false) &&
        !tess_study_there(opts->backend, opts->strategy, true))
        TESS_FAIL(TESS_ERR_USAGE, "no gridding strategy '%s' on a %s",
                  tess_study_name(opts->strategy),
                  opts->backend == TESS_GCF_DEVICE ? "GPU" : "CPU");
    if (opts->probes.cube && gcf->layout.is_uneven)
        TESS_FAIL(TESS_ERR_USAGE, "a cube of quarters of kernels: these are not even");
    if (opts->strategy == TESS_STUDY_COMPUTED && !gcf->is_formula)
        TESS_FAIL(TESS_ERR_USAGE,
                  "strategy 'computed' is for kernels of a formula: these are tables");
cleanup:
    return status;
}

/* The probes of `tiled`. */
static tess_gcf_tiling tiling_of(const tess_gcf *gcf, const tess_study_opts *opts)
{
    const tess_study_probes *probes = &opts->probes;
    const int precision = !gcf->layout.is_double ? GCF_SINGLE
                          : opts->single_taps    ? GCF_MIXED
                                                 : GCF_DOUBLE;
    return (tess_gcf_tiling){
        .sort = probes->sort,
        .tile_factor = probes->tile_factor,
        .add_atomically = study_table_best()->grid_atomic[precision],
        .pieces = probes->pieces,
        .center_radius = probes->center_radius,
        .narrow = probes->narrow,
        .divergent = probes->divergent,
        .by_tile = probes->arrays || probes->sort != TESS_GCF_SORT_CHOSEN,
        .points = probes->points};
}

tess_status tess_study_plan_create(const tess_gcf *gcf, const tess_study_opts *opts,
                                   tess_study_plan **plan)
{
    tess_status status = TESS_OK;
    tess_study_plan *made = NULL;
    TESS_TRY(check_opts(gcf, opts));
    made = tess_alloc_zero(1, sizeof *made);
    if (!made) TESS_FAIL(TESS_ERR_ALLOC, "gridding plan");
    made->opts = *opts;
    made->base = tess_study_strategy_of(opts->strategy);
    made->strategy = *made->base;
    made->tiling = tiling_of(gcf, opts);
    if (opts->backend == TESS_GCF_DEVICE) {
        made->strategy.device = study_device_probed;
        made->strategy.run_on_device = study_device_run;
    }
    const tess_gcf_grid_opts core = {.backend = opts->backend,
                                     .strategy = &made->strategy,
                                     .threads = opts->threads,
                                     .factor_error = opts->factor_error,
                                     .max_rank = opts->max_rank,
                                     .least_cells = opts->least_cells,
                                     .shape = opts->shape,
                                     .single_taps = opts->single_taps,
                                     .merge = opts->merge,
                                     .tiling = &made->tiling,
                                     .context = made};
    TESS_TRY(tess_gcf_plan_create(gcf, &core, &made->core));
    if (opts->probes.cube) TESS_TRY(make_cube(made));
    *plan = made;
    made = NULL;
cleanup:
    tess_study_plan_destroy(made);
    return status;
}

void tess_study_plan_destroy(tess_study_plan *plan)
{
    if (!plan) return;
    tess_gcf_plan_destroy(plan->core);
    tess_free(plan->cube);
    tess_free(plan);
}

const tess_gcf_plan *tess_study_core(const tess_study_plan *plan)
{
    return plan->core;
}

tess_study_copies tess_study_plan_copies(const tess_study_plan *plan)
{
    return plan->copies;
}

void tess_study_plan_repeat(tess_study_plan *plan, int times, tess_study_meter *meter,
                            void *context)
{
    plan->repeat = times;
    plan->meter = meter;
    plan->context = context;
}

static tess_status run_once(tess_study_plan *plan, const tess_gcf_points *points,
                            tess_gcf_cells *cells, bool degrid, tess_gcf_report *report)
{
    return degrid ? tess_gcf_degrid(plan->core, cells, points, report)
                  : tess_gcf_grid(plan->core, points, cells, report);
}

/* A GPU repeats its kernels alone, see study_device_run(). */
static tess_status run(tess_study_plan *plan, const tess_gcf_points *points,
                       tess_gcf_cells *cells, bool degrid, tess_gcf_report *report)
{
    tess_status status = TESS_OK;
    plan->copies = (tess_study_copies){0};
    TESS_TRY(tess_study_check_probes(&plan->opts, degrid));
    TESS_TRY(run_once(plan, points, cells, degrid, report));
    if (plan->repeat == 0 || plan->opts.backend == TESS_GCF_DEVICE) return status;
    plan->meter(plan->context, false);
    for (int k = 0; k < plan->repeat; ++k)
        TESS_TRY(run_once(plan, points, cells, degrid, NULL));
    plan->meter(plan->context, true);
cleanup:
    return status;
}

tess_status tess_study_grid(tess_study_plan *plan, const tess_gcf_points *points,
                            tess_gcf_cells *cells, tess_gcf_report *report)
{
    return run(plan, points, cells, false, report);
}

tess_status tess_study_degrid(tess_study_plan *plan, const tess_gcf_cells *cells,
                              const tess_gcf_points *points, tess_gcf_report *report)
{
    tess_gcf_cells read = *cells;
    return run(plan, points, &read, true, report);
}
