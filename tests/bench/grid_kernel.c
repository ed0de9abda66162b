/* Times the stages of the CPU gridder and degridder on arrays in memory: cutting rows
 * into runs, sorting, laying out and gridding bricks, degridding. Rates count
 * visibilities; FLOP are 4 W³ a visibility (2 W² without w), the products and sums into
 * complex cells, and are compared with the FMA rate of one core, measured in the same
 * run. Seconds are of the clock; "ns/vis" and what follows from it are processor time,
 * all threads together, which other work on the machine disturbs less. The fastest of
 * the repetitions counts.
 *
 * usage: grid_kernel [FILE.npz | --times N] [--accuracy E] [--threads N] [--repeat N]
 *
 * FILE.npz holds uvw, freq, vis, npix and cell_asec, stored; otherwise N integrations
 * of MeerKAT-like tracks are made up. The instruction set is TESS_ISA's, as in the
 * program. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_args.h"
#include "bench_plan.h"
#include "tess_degrid.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_samples.h"

enum stage { RUNS, SORT, BEGIN, GRID, DEGRID, NUM_STAGES };
static const char *const stage_name[] = {"runs", "sort", "begin", "grid", "degrid"};

/* Wall and processor seconds of a stage, of its fastest repetition. */
typedef struct seconds {
    double wall, cpu;
} seconds;

static seconds clock_now(void)
{
    return (seconds){tess_time_now(), bench_cpu_now()};
}

static void lap(seconds *mark, seconds *sum)
{
    const seconds now = clock_now();
    sum->wall += now.wall - mark->wall;
    sum->cpu += now.cpu - mark->cpu;
    *mark = now;
}

/* A sum that shows that two instruction sets did the same work. */
static double checksum(const tess_samples *samples)
{
    double sum = 0;
    for (int64_t k = 0; k < 2 * samples->num_vis; ++k)
        sum += samples->is_double ? fabs(((const double *)samples->vis)[k])
                                  : (double)fabsf(((const float *)samples->vis)[k]);
    return sum;
}

/* Grid block after block, as the imager does; then degrid what was gridded. */
static tess_status run_once(const tess_grid_plan *plan, tess_samples *samples,
                            const bench_args *opts, seconds *spent, double *busy,
                            double *values, tess_brick_list *list)
{
    tess_status status = TESS_OK;
    tess_brick_sums sums = {0};
    tess_grid_report report = {0};
    seconds mark = clock_now();
    double busy_wall = 0;
    TESS_TRY(tess_brick_list_append(plan, samples, 0, samples->num_rows, true,
                                    opts->threads, list));
    lap(&mark, &spent[RUNS]);
    TESS_TRY(tess_brick_list_sort(list, opts->threads));
    lap(&mark, &spent[SORT]);
    *values = 0;
    for (int64_t first = 0; first < list->num_bricks;) {
        const int64_t end = tess_brick_list_block_end(plan, list, first);
        sums = (tess_brick_sums){.num_pol = opts->psf ? 2 : 1};
        mark = clock_now();
        TESS_TRY(plan->backend->grid->begin(plan, samples, list, first, end, &sums));
        lap(&mark, &spent[BEGIN]);
        const double before = spent[GRID].wall;
        TESS_TRY(plan->backend->grid->grid(plan, samples, list, first, opts->psf, &sums,
                                           &report));
        lap(&mark, &spent[GRID]);
        busy_wall += report.busy_share * (spent[GRID].wall - before);
        *values += (double)sums.num_values;
        tess_brick_sums_free(&sums);
        first = end;
    }
    *busy = busy_wall / spent[GRID].wall;
    for (int64_t first = 0; first < list->num_bricks;) {
        const int64_t end = tess_brick_list_block_end(plan, list, first);
        TESS_TRY(tess_degrid_begin(plan, samples, list, first, end, &sums));
        for (int64_t k = 0; k < 2 * sums.num_values; ++k)
            if (plan->is_double)
                ((double *)sums.data)[k] = 1.0 + 1e-3 * (double)(k % 17);
            else
                ((float *)sums.data)[k] = 1.0f + 1e-3f * (float)(k % 17);
        mark = clock_now();
        TESS_TRY(tess_degrid_execute(plan, samples, list, first, &sums, &report));
        lap(&mark, &spent[DEGRID]);
        tess_brick_sums_free(&sums);
        first = end;
    }
cleanup:
    tess_brick_sums_free(&sums);
    return status;
}

static void print_stages(const tess_grid_plan *plan, const bench_args *opts,
                         int64_t num_vis, const seconds *best, double rate)
{
    const double w = plan->kernel.support;
    const double flop = 4 * w * w * plan->w_support * (opts->psf ? 2 : 1);
    double total = 0;
    for (int s = 0; s < NUM_STAGES; ++s) {
        const double each = best[s].cpu / (double)num_vis;
        printf("  %-6s %8.4f s  %6.1f ns/vis  %7.1f Mvis/s", stage_name[s],
               best[s].wall, 1e9 * each, 1e-6 * (double)num_vis / best[s].wall);
        if (s >= GRID)
            printf("  %5.1f GFLOP/s a core, %4.1f %% of FMA peak", 1e-9 * flop / each,
                   100 * flop / (each * rate));
        printf("\n");
        if (s != DEGRID) total += each;
    }
    printf("  runs to grid %6.1f ns/vis\n", 1e9 * total);
}

int main(int argc, char **argv)
{
    tess_status status = TESS_OK;
    bench_args opts = {.times = 20, .accuracy = 1e-4, .threads = 1, .repeat = 3};
    bench_set set = {0};
    tess_samples samples = {0};
    tess_grid_plan *plan = NULL;
    tess_brick_list list = {0};
    seconds best[NUM_STAGES];
    char text[512];
    double rate = 0, busy = 0, values = 0;
    tess_log_start(0, TESS_LOG_INFO);
    bench_args_parse("Times the stages of the CPU gridder and degridder.", argc, argv,
                     &opts);
    if (!bench_args_open(&opts, &set)) return 1;
    TESS_TRY(bench_plan(&set, opts.accuracy, opts.threads, &plan));
    TESS_TRY(bench_samples(&set, plan->is_double, &samples));
    for (int s = 0; s < NUM_STAGES; ++s)
        best[s] = (seconds){INFINITY, INFINITY};
    for (int k = 0; k < opts.repeat; ++k) {
        seconds spent[NUM_STAGES] = {0};
        rate = fmax(rate, bench_fma_rate(0.1));
        tess_brick_list_free(&list);
        TESS_TRY(run_once(plan, &samples, &opts, spent, &busy, &values, &list));
        for (int s = 0; s < NUM_STAGES; ++s) {
            best[s].wall = fmin(best[s].wall, spent[s].wall);
            best[s].cpu = fmin(best[s].cpu, spent[s].cpu);
        }
    }
    tess_grid_plan_text(plan, text, sizeof text);
    printf("%s\n%lld visibilities in %lld runs and %lld bricks, %.0f MB of brick sums; "
           "%d threads, %.0f %% busy, FMA %.0f GFLOP/s a core, checksum %.6e\n",
           text, (long long)samples.num_vis, (long long)list.num_runs,
           (long long)list.num_bricks, values * (plan->is_double ? 16e-6 : 8e-6),
           opts.threads, 100 * busy, 1e-9 * rate, checksum(&samples));
    print_stages(plan, &opts, samples.num_vis, best, rate);
cleanup:
    tess_brick_list_free(&list);
    tess_samples_free(&samples);
    tess_grid_plan_destroy(plan);
    bench_set_free(&set);
    return status == TESS_OK ? 0 : 1;
}
