/* Makes plans for gridding with tables, and runs the strategy of a plan. */
#include <math.h>
#include <string.h>

#include "gcf_factor.h"
#include "gcf_merge.h"
#include "gcf_on_device.h"
#include "tess_log.h"
#include "tess_mem.h"

const tess_gcf_strategy tess_gcf_tiled = {
    .name = "tiled", .run = gcf_run_tiled, .device = gcf_device_tiled};
const tess_gcf_strategy tess_gcf_factored = {.name = "factored",
                                             .run = gcf_run_tiled,
                                             .device = gcf_device_factored,
                                             .is_factored = true};

void tess_gcf_grid_opts_default(tess_gcf_grid_opts *opts)
{
    *opts = (tess_gcf_grid_opts){.strategy = &tess_gcf_tiled,
                                 .threads = 1,
                                 .factor_error = 1e-4,
                                 .max_rank = 6,
                                 .least_cells = 32};
}

static tess_status round_taps(tess_gcf_plan *plan)
{
    tess_status status = TESS_OK;
    const int64_t parts = 2 * plan->gcf->num_values;
    plan->single_taps = tess_alloc(parts, sizeof *plan->single_taps);
    if (!plan->single_taps) TESS_FAIL(TESS_ERR_ALLOC, "w-kernels in single precision");
    for (int64_t k = 0; k < parts; ++k)
        plan->single_taps[k] = (float)((const double *)plan->gcf->data)[k];
cleanup:
    return status;
}

/* Checks the options. TESS_ERR_USAGE: there is no such strategy, or an option is
 * outside of its limits. */
static tess_status check_opts(const tess_gcf_grid_opts *opts)
{
    tess_status status = TESS_OK;
    if (!tess_gcf_strategy_there(opts->backend, opts->strategy, false) &&
        !tess_gcf_strategy_there(opts->backend, opts->strategy, true))
        TESS_FAIL(TESS_ERR_USAGE, "no gridding strategy '%s' on a %s",
                  opts->strategy->name,
                  opts->backend == TESS_GCF_DEVICE ? "GPU" : "CPU");
    if (opts->threads < 1) TESS_FAIL(TESS_ERR_USAGE, "%d threads", opts->threads);
    if (opts->strategy->is_factored &&
        (!(opts->factor_error > 0 && opts->factor_error < 1) || opts->max_rank < 1 ||
         opts->max_rank > GCF_MAX_RANK))
        TESS_FAIL(
            TESS_ERR_USAGE,
            "kernels to %g in up to %d products: errors between 0 and 1, from 1 to "
            "%d products",
            opts->factor_error, opts->max_rank, GCF_MAX_RANK);
    if (opts->shape < 0 || opts->shape > TESS_GCF_SHAPES)
        TESS_FAIL(TESS_ERR_USAGE, "blocks of shape %d: from 0 to %d", opts->shape,
                  TESS_GCF_SHAPES);
cleanup:
    return status;
}

tess_status tess_gcf_plan_create(const tess_gcf *gcf, const tess_gcf_grid_opts *opts,
                                 tess_gcf_plan **plan)
{
    tess_status status = TESS_OK;
    tess_gcf_plan *made = NULL;
    TESS_TRY(check_opts(opts));
    made = tess_alloc_zero(1, sizeof *made);
    if (!made) TESS_FAIL(TESS_ERR_ALLOC, "gridding plan");
    made->gcf = gcf;
    made->opts = *opts;
    if (opts->backend == TESS_GCF_DEVICE)
        made->opts.factor_error = gcf_device_factor_error(gcf, opts->factor_error);
    if (opts->strategy->is_factored) TESS_TRY(gcf_factor_planes(made));
    if (opts->single_taps && gcf->layout.is_double && opts->backend == TESS_GCF_CPU)
        TESS_TRY(round_taps(made));
    if (opts->backend == TESS_GCF_DEVICE)
        TESS_TRY(gcf_device_create(made, &made->device));
    *plan = made;
    made = NULL;
cleanup:
    tess_gcf_plan_destroy(made);
    return status;
}

void tess_gcf_plan_destroy(tess_gcf_plan *plan)
{
    if (!plan) return;
    gcf_device_destroy(plan->device);
    for (int p = 0; plan->factors && p < plan->gcf->layout.num_planes; ++p)
        tess_free(plan->factors[p].data);
    tess_free(plan->factors);
    tess_free(plan->single_taps);
    tess_free(plan);
}

const gcf_on_device *tess_gcf_plan_device(const tess_gcf_plan *plan)
{
    return plan->device;
}

void tess_gcf_plan_set_threads(tess_gcf_plan *plan, int threads)
{
    plan->opts.threads = threads;
}

static tess_status run_strategy(const tess_gcf_plan *plan,
                                const tess_gcf_points *points,
                                const tess_gcf_cells *cells, bool degrid,
                                tess_gcf_report *report)
{
    const tess_gcf_strategy *strategy = plan->opts.strategy;
    gcf_run *run = !plan->device             ? strategy->run
                   : strategy->run_on_device ? strategy->run_on_device
                                             : gcf_device_run;
    return run(plan, points, cells, degrid, report);
}

/* Merging counts as sorting. */
static tess_status run_merged(const tess_gcf_plan *plan, const tess_gcf_points *points,
                              const tess_gcf_cells *cells, bool degrid,
                              tess_gcf_report *report)
{
    tess_status status = TESS_OK;
    gcf_merged merged = {0};
    double start = tess_time_now(), merge_s;
    TESS_TRY(gcf_merge(plan->gcf, points, cells, degrid, &merged));
    merge_s = tess_time_now() - start;
    TESS_TRY(run_strategy(plan, &merged.points, cells, degrid, report));
    start = tess_time_now();
    if (degrid) gcf_unmerge(plan->gcf, &merged, points->count, points->vis);
    report->sort_s += merge_s + tess_time_now() - start;
    report->merged = merged.points.count;
    report->left_out = merged.left_out;
    report->all_cells = merged.all_cells;
cleanup:
    gcf_merged_free(&merged);
    return status;
}

static tess_status run_once(const tess_gcf_plan *plan, const tess_gcf_points *points,
                            const tess_gcf_cells *cells, bool degrid,
                            tess_gcf_report *report)
{
    tess_status status = TESS_OK;
    if (plan->opts.merge) return run_merged(plan, points, cells, degrid, report);
    TESS_TRY(run_strategy(plan, points, cells, degrid, report));
    report->merged = points->count - report->left_out;
    report->all_cells = report->point_cells;
cleanup:
    return status;
}

static tess_status run(const tess_gcf_plan *plan, const tess_gcf_points *points,
                       const tess_gcf_cells *cells, bool degrid,
                       tess_gcf_report *report)
{
    tess_status status = TESS_OK;
    tess_gcf_report found = {0};
    const double start = tess_time_now();
    if (points->num_pol != 1 && points->num_pol != 2 && points->num_pol != 4)
        TESS_FAIL(TESS_ERR_USAGE, "%d polarisations together: 1, 2 or 4",
                  points->num_pol);
    if (cells->nu < 1 || cells->nv < 1 || cells->nu > INT32_MAX ||
        cells->nv > INT32_MAX)
        TESS_FAIL(TESS_ERR_USAGE, "a grid of %lld × %lld cells", (long long)cells->nu,
                  (long long)cells->nv);
    TESS_TRY(run_once(plan, points, cells, degrid, &found));
    /* a device has clocks of its own */
    if (!plan->device) found.seconds = tess_time_now() - start - found.sort_s;
    if (report) *report = found;
cleanup:
    return status;
}

tess_status tess_gcf_grid(const tess_gcf_plan *plan, const tess_gcf_points *points,
                          tess_gcf_cells *cells, tess_gcf_report *report)
{
    return run(plan, points, cells, false, report);
}

tess_status tess_gcf_degrid(const tess_gcf_plan *plan, const tess_gcf_cells *cells,
                            const tess_gcf_points *points, tess_gcf_report *report)
{
    return run(plan, points, cells, true, report);
}
