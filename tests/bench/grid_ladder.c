/* What each step from a naive gridder to the CPU backend brings, on one set:
 *
 *   naive     visibilities as they are stored, scalar loops into whole planes
 *   ordered   the same, in order of brick
 *   blocked   tile buffers of all planes, portable instruction set
 *   avx2, knl, avx512   the same with this instruction set, where the processor has it
 *   threads   the best of them on --threads threads
 *
 * Each step prints seconds of its fastest repetition, sorting left out, and all are
 * checked to add up to the same sum over the grid: the program fails when they do not.
 * For cache misses run one step under cachegrind, less what `--only none` takes.
 *
 * usage: grid_ladder [FILE.npz | --times N] [--accuracy E] [--threads N] [--repeat N]
 *                    [--only STEP] */
#define _GNU_SOURCE
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_args.h"
#include "bench_plan.h"
#include "kernel_start.h"
#include "locate.h"
#include "tess_const.h"
#include "tess_isa.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_samples.h"

typedef struct ladder {
    bench_args opts;
    bench_set set;
    tess_samples samples;
    tess_grid_plan *plan;
    tess_brick_list list;     /* sorted */
    tess_run *stored;         /* [samples.num_rows] rows as runs */
    float complex *planes;    /* [num_planes][nu][nv] */
    double first_s, checksum; /* of the first step that ran */
} ladder;

/* ---- the naive gridder ---- */

/* First cell of a footprint on a periodic axis, and the taps from there. */
static int64_t taps_at(const tess_grid_plan *plan, double g, int64_t period,
                       double *taps)
{
    double fraction;
    const int64_t start = kernel_start(&plan->kernel, g, &fraction) % period;
    tess_kernel_taps(&plan->kernel, fraction, taps);
    return start < 0 ? start + period : start;
}

/* First plane of a footprint, and the taps from there. */
static int64_t planes_at(const tess_grid_plan *plan, double g, double *taps)
{
    const int64_t start = tess_plane_start(plan, g);
    if (!plan->opts.do_w) return 0;
    tess_kernel_taps(&plan->along_w, (double)start - (g - 0.5 * plan->w_support), taps);
    return start;
}

/* One plane's share of a visibility, line by line. */
static void add_footprint(const tess_grid_plan *plan, float complex *plane, int64_t u0,
                          int64_t v0, const double *u, const double *v,
                          float complex value)
{
    for (int i = 0; i < plan->kernel.support; ++i) {
        float complex *line = plane + (u0 + i) % plan->nu * plan->nv;
        for (int j = 0; j < plan->kernel.support; ++j)
            line[(v0 + j) % plan->nv] += value * (float)(u[i] * v[j]);
    }
}

static void grid_run(const ladder *of, const tess_run *run)
{
    const tess_grid_plan *plan = of->plan;
    const tess_row_scale row =
        tess_row_scale_of(plan, of->samples.uvw_m + 3 * (int64_t)run->row);
    for (int32_t k = 0; k < run->count; ++k) {
        const double inv_lambda = of->samples.inv_lambda[run->chan + k];
        const float *vis = (const float *)of->samples.vis + 2 * (run->first + k);
        const float weight = ((const float *)of->samples.weight)[run->first + k];
        const double turns = -TESS_TWO_PI * row.turns * inv_lambda;
        const float complex value = CMPLXF(vis[0], row.conjugate ? -vis[1] : vis[1]);
        const float complex turned =
            weight * value * CMPLXF((float)cos(turns), (float)sin(turns));
        double u[TESS_MAX_SUPPORT], v[TESS_MAX_SUPPORT], w[TESS_MAX_SUPPORT] = {1};
        const int64_t u0 = taps_at(plan, row.a * inv_lambda, plan->nu, u);
        const int64_t v0 = taps_at(plan, row.b * inv_lambda, plan->nv, v);
        const double at_w = tess_plane_coordinate(plan, row.w * inv_lambda);
        const int64_t plane = planes_at(plan, at_w, w);
        for (int p = 0; p < plan->w_support; ++p)
            add_footprint(plan, of->planes + (plane + p) * plan->nu * plan->nv, u0, v0,
                          u, v, turned * (float)w[p]);
    }
}

/* Sum over the grid. */
static double sum_of(const float *values, int64_t count)
{
    double sum = 0;
    for (int64_t k = 0; k < count; ++k)
        sum += (double)values[k];
    return sum;
}

static tess_status grid_naively(ladder *of, const tess_run *run, int64_t num_runs,
                                double *seconds, double *sum)
{
    tess_status status = TESS_OK;
    const int64_t cells = of->plan->num_planes * of->plan->nu * of->plan->nv;
    of->planes = tess_alloc_zero(cells, sizeof *of->planes);
    if (!of->planes) TESS_FAIL(TESS_ERR_ALLOC, "whole planes");
    const double start = tess_time_now();
    for (int64_t k = 0; k < num_runs; ++k)
        grid_run(of, &run[k]);
    *seconds = tess_time_now() - start;
    *sum = sum_of((const float *)of->planes, 2 * cells);
cleanup:
    tess_free(of->planes);
    of->planes = NULL;
    return status;
}

/* ---- the backend ---- */

static tess_status grid_tiles(ladder *of, double *seconds, double *sum)
{
    tess_status status = TESS_OK;
    tess_brick_sums sums = {0};
    tess_grid_report report = {0};
    *seconds = *sum = 0;
    for (int64_t first = 0, end; first < of->list.num_bricks; first = end) {
        end = tess_brick_list_block_end(of->plan, &of->list, first);
        const double start = tess_time_now();
        TESS_TRY(tess_grid_execute(of->plan, &of->samples,
                                   &(tess_brick_range){&of->list, first, end}, false,
                                   &sums, &report));
        *seconds += tess_time_now() - start;
        *sum += sum_of(sums.data, 2 * sums.num_values);
        tess_brick_sums_free(&sums);
    }
cleanup:
    tess_brick_sums_free(&sums);
    return status;
}

/* ---- steps ---- */

enum step { NAIVE, ORDERED, BLOCKED, AVX2, KNL, AVX512, THREADS, NUM_STEPS };
static const char *const step_name[NUM_STEPS] = {"naive", "ordered", "blocked", "avx2",
                                                 "knl",   "avx512",  "threads"};

/* Set up what a step runs with; false when this processor cannot. */
static bool prepare(ladder *of, int step)
{
    of->plan->opts.threads = step == THREADS ? of->opts.threads : 1;
    if (step == THREADS) {
        unsetenv("TESS_ISA");
        return true;
    }
    const char *isa = step > BLOCKED ? step_name[step] : "portable";
    setenv("TESS_ISA", isa, 1);
    return strcmp(tess_isa_name(tess_isa_best()), isa) == 0;
}

static tess_status run_step(ladder *of, int step)
{
    tess_status status = TESS_OK;
    double best = INFINITY, seconds = 0, sum = 0;
    for (int k = 0; k < of->opts.repeat; ++k) {
        if (step == NAIVE)
            TESS_TRY(
                grid_naively(of, of->stored, of->samples.num_rows, &seconds, &sum));
        else if (step == ORDERED)
            TESS_TRY(grid_naively(of, of->list.run, of->list.num_runs, &seconds, &sum));
        else
            TESS_TRY(grid_tiles(of, &seconds, &sum));
        best = fmin(best, seconds);
    }
    if (of->first_s == 0) {
        of->first_s = best;
        of->checksum = sum;
    }
    printf("  %-8s %9.4f s  %8.2f Mvis/s  %6.1f times\n", step_name[step], best,
           1e-6 * (double)of->samples.num_vis / best, of->first_s / best);
    if (!(fabs(sum - of->checksum) <= 1e-3 * fabs(of->checksum)))
        TESS_FAIL(TESS_ERR_INTERNAL, "%s adds up to %g instead of %g", step_name[step],
                  sum, of->checksum);
cleanup:
    return status;
}

static tess_status make_ladder(ladder *of)
{
    tess_status status = TESS_OK;
    TESS_TRY(bench_plan(&of->set, of->opts.accuracy, 1, &of->plan));
    if (of->plan->is_double)
        TESS_FAIL(TESS_ERR_USAGE, "the ladder is for single precision, 1e-5 and above");
    TESS_TRY(bench_samples(&of->set, false, &of->samples));
    TESS_TRY(tess_brick_list_make(of->plan, &of->samples, true, &of->list));
    of->stored = tess_alloc_zero(of->samples.num_rows, sizeof *of->stored);
    if (!of->stored) TESS_FAIL(TESS_ERR_ALLOC, "rows");
    for (int64_t row = 0; row < of->samples.num_rows; ++row)
        of->stored[row] = (tess_run){.first = of->samples.vis_first[row],
                                     .row = (int32_t)row,
                                     .chan = of->samples.chan_base[row],
                                     .count = of->samples.num_chan[row]};
cleanup:
    return status;
}

int main(int argc, char **argv)
{
    tess_status status = TESS_OK;
    char text[512];
    ladder of = {.opts = {.times = 4, .accuracy = 1e-4, .threads = 2, .repeat = 3}};
    tess_log_start(0, TESS_LOG_INFO);
    bench_args_parse("What each step from a naive gridder to the CPU backend brings.",
                     argc, argv, &of.opts);
    if (!bench_args_open(&of.opts, &of.set)) return 1;
    TESS_TRY(make_ladder(&of));
    tess_grid_plan_text(of.plan, text, sizeof text);
    printf("%s; %lld visibilities\n", text, (long long)of.samples.num_vis);
    for (int step = 0; step < NUM_STEPS; ++step) {
        const bool wanted = !of.opts.only || strcmp(of.opts.only, step_name[step]) == 0;
        if (wanted && prepare(&of, step)) TESS_TRY(run_step(&of, step));
    }
cleanup:
    tess_brick_list_free(&of.list);
    tess_samples_free(&of.samples);
    tess_grid_plan_destroy(of.plan);
    tess_free(of.stored);
    bench_set_free(&of.set);
    return status == TESS_OK ? 0 : 1;
}
