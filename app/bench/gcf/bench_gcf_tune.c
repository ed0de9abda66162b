/* Times the strategies that `--w projection` may take, and keeps which is fastest. */
#include "tess_bench_gcf_args.h"

#include <stdio.h>

#include "tess_bench_gcf_names.h"

/* Something to be timed. */
typedef struct candidates {
    int count;
    tess_study_strategy strategy[TESS_BENCH_GCF_MOST];
    int shape[TESS_BENCH_GCF_MOST];
} candidates;

static void add(candidates *list, tess_study_strategy strategy, int shape)
{
    list->strategy[list->count] = strategy;
    list->shape[list->count++] = shape;
}

/* What `--strategy auto` chooses from: the others are for comparison alone. */
static candidates list_candidates(tess_gcf_backend backend, bool degrid)
{
    candidates list = {0};
    for (tess_study_strategy s = TESS_STUDY_TILED; s <= TESS_STUDY_FACTORED; ++s)
        if (tess_study_there(backend, s, degrid)) add(&list, s, 0);
    for (int shape = 1; shape <= TESS_GCF_SHAPES && backend == TESS_GCF_DEVICE &&
                        !degrid && list.count > 0;
         ++shape)
        add(&list, TESS_STUDY_TILED, shape);
    return list;
}

/* A whole call takes sorting, too. */
static double rate_of(const tess_bench_gcf_result *found)
{
    return 8e-9 * found->point_cells / (found->sort_s + found->seconds);
}

/* One class: tracks, as observations have them. */
static tess_status tune_class(const tess_bench_gcf_args *args, tess_gcf_tuning *out)
{
    tess_status status = TESS_OK;
    const candidates list = list_candidates(out->backend, out->degrid);
    tess_bench_gcf_result found[TESS_BENCH_GCF_MOST];
    tess_bench_gcf_case what = {.degrid = out->degrid,
                                .is_double = out->is_double,
                                .order = TESS_BENCH_GCF_TRACKS,
                                .num_points = (int64_t)args->vis.value[0],
                                .size = (int64_t)args->size.value[0],
                                .support = out->support,
                                .num_planes = args->planes,
                                .oversampling = args->oversampling,
                                .num_pol = out->num_pol,
                                .field_rad = args->field_rad,
                                .opts = args->opts,
                                .strategy = list.strategy,
                                .shape = list.shape,
                                .num_strategies = list.count};
    int best = 0;
    if (list.count == 0)
        TESS_FAIL(TESS_ERR_RESOURCE, "this tessera has no strategies on %s",
                  tess_bench_gcf_backend_name[out->backend]);
    TESS_TRY(tess_bench_gcf_run(&what, args->repeat, found));
    for (int k = 1; k < list.count; ++k)
        if (rate_of(&found[k]) > rate_of(&found[best])) best = k;
    for (int k = 0; k < list.count; ++k)
        printf("%s,%s,%d,%d,%s,%d,%.4g,%d\n",
               tess_bench_gcf_operation_name[out->degrid],
               tess_bench_gcf_precision_name[out->is_double], out->num_pol,
               out->support, tess_study_name(list.strategy[k]), list.shape[k],
               rate_of(&found[k]) * out->num_pol, k == best);
    fflush(stdout);
    out->strategy = tess_study_strategy_of(list.strategy[best]);
    out->shape = list.shape[best];
    out->gflops = rate_of(&found[best]) * out->num_pol;
cleanup:
    return status;
}

tess_status tess_bench_gcf_tune(const tess_bench_gcf_args *args)
{
    tess_status status = TESS_OK;
    static const int support[] = {8, 16, 32, 64, 128}, pols[] = {1, 2, 4};
    enum { WIDTHS = sizeof support / sizeof *support, POLS = 3 };
    const int most_pols = args->opts.backend == TESS_GCF_CPU ? 1 : POLS;
    tess_gcf_tuning tuning[2 * 2 * POLS * WIDTHS];
    int count = 0;
    printf("operation,precision,polarisations,gcf,strategy,shape,gflops,best\n");
    for (int k = 0; k < 2 * 2 * most_pols * WIDTHS; ++k) {
        const int rest = k / WIDTHS;
        tuning[count] = (tess_gcf_tuning){.backend = args->opts.backend,
                                          .degrid = rest / most_pols % 2 > 0,
                                          .is_double = rest / most_pols / 2 > 0,
                                          .num_pol = pols[rest % most_pols],
                                          .support = support[k % WIDTHS]};
        TESS_TRY(tune_class(args, &tuning[count++]));
    }
    TESS_TRY(tess_gcf_tuning_write(tuning, count));
cleanup:
    return status;
}
