/* tessera bench gcf: times gridding and degridding with tables of convolution
 * functions, by each strategy. */
#include <stdio.h>

#include "bench_gcf_options.h"
#include "tess_bench_gcf_args.h"
#include "tess_bench_gcf_names.h"
#include "tess_cli.h"
#include "tess_map.h"
#include "tess_subcommands.h"
#include "tess_threads.h"

/* Whether a strategy is timed if the user asks for none. */
static bool by_default(const tess_bench_gcf_args *args, tess_study_strategy strategy,
                       bool degrid)
{
    tess_study_opts opts = args->opts;
    opts.strategy = strategy;
    if (!tess_study_there(opts.backend, strategy, degrid) ||
        strategy == TESS_STUDY_SERIAL || strategy == TESS_STUDY_PRIVATE ||
        (strategy == TESS_STUDY_COMPUTED && (!args->formula || args->normalise)))
        return false;
    if (tess_study_check_probes(&opts, degrid) == TESS_OK) return true;
    tess_error_clear();
    return false;
}

/* Lists the strategies to time: those that the user asks for, or the default ones. */
static tess_status list_strategies(const tess_bench_gcf_args *args, bool degrid,
                                   tess_study_strategy *strategy, int *count)
{
    tess_status status = TESS_OK;
    *count = 0;
    for (int k = 0; k < args->strategy.count; ++k) {
        strategy[k] = (tess_study_strategy)args->strategy.value[k];
        for (int before = 0; before < k; ++before)
            if (strategy[before] == strategy[k])
                TESS_FAIL(TESS_ERR_USAGE, "--strategy: each is timed once");
        if (!tess_study_there(args->opts.backend, strategy[k], degrid))
            TESS_FAIL(TESS_ERR_USAGE, "--strategy: there is no '%s' to %s on %s",
                      tess_study_name(strategy[k]),
                      tess_bench_gcf_operation_name[degrid],
                      tess_bench_gcf_backend_name[args->opts.backend]);
        tess_study_opts opts = args->opts;
        opts.strategy = strategy[k];
        TESS_TRY(tess_study_check_probes(&opts, degrid));
        ++*count;
    }
    for (int k = 0; k < TESS_STUDY_NUM_STRATEGIES && args->strategy.count == 0; ++k)
        if (by_default(args, (tess_study_strategy)k, degrid))
            strategy[(*count)++] = (tess_study_strategy)k;
    if (*count == 0 && tess_study_there(args->opts.backend, TESS_STUDY_TILED, degrid))
        TESS_FAIL(TESS_ERR_USAGE, "no strategy to %s on %s has all of these switches",
                  tess_bench_gcf_operation_name[degrid],
                  tess_bench_gcf_backend_name[args->opts.backend]);
    if (*count == 0)
        TESS_FAIL(TESS_ERR_RESOURCE, "this tessera has no strategies on %s",
                  tess_bench_gcf_backend_name[args->opts.backend]);
cleanup:
    return status;
}

static tess_status run_all(const tess_bench_gcf_args *args)
{
    tess_status status = TESS_OK;
    const tess_bench_list *const list[] = {
        &args->operation, &args->order,     &args->vis, &args->size,
        &args->pol,       &args->precision, &args->gcf};
    enum { LISTS = sizeof list / sizeof *list };
    int cases = 1;
    for (int k = 0; k < LISTS; ++k)
        cases *= list[k]->count;
    if (args->intensity && cases > 1)
        TESS_FAIL(TESS_ERR_USAGE, "--intensity is of one combination: here are %d",
                  cases);
    if (args->intensity) TESS_TRY(tess_map_check(args->intensity, args->overwrite));
    for (int k = 0; k < cases; ++k) {
        double value[LISTS];
        tess_study_strategy strategy[TESS_BENCH_MOST];
        tess_bench_gcf_result found[TESS_BENCH_MOST];
        tess_bench_combination(list, LISTS, k, value);
        tess_bench_gcf_case what;
        tess_bench_gcf_case_of(args, value, strategy, &what);
        if (what.order >= TESS_BENCH_GCF_SETS) {
            /* A data set has its own size and kernels: it needs one combination. */
            if (value[3] != args->size.value[0] || value[6] != args->gcf.value[0])
                continue;
            if (!args->given.vis) what.num_points = INT64_MAX;
        }
        TESS_TRY(list_strategies(args, what.degrid, strategy, &what.num_strategies));
        TESS_TRY(tess_bench_gcf_run(&what, args->repeat, found));
        if (k == 0) tess_bench_gcf_print(&what, 0, found, args->markdown, true);
        for (int s = 0; s < what.num_strategies; ++s)
            tess_bench_gcf_print(&what, s, found, args->markdown, false);
        fflush(stdout);
    }
cleanup:
    return status;
}

tess_status tess_cmd_bench_gcf(tess_comm *comm, int argc, char **argv)
{
    tess_status status = TESS_OK;
    char name[] = "bench gcf";
    tess_bench_gcf_args args;
    tess_cli cli = {0};
    argv[0] = name; /* the name that the help prints */
    TESS_TRY(tess_cli_parse(comm, &tess_bench_gcf_argp, argc, argv, &args, &cli));
    if (cli.help) goto cleanup;
    if (args.opts.threads == 0)
        TESS_TRY(tess_threads_default(comm, &args.opts.threads));
    if (tess_comm_rank(comm) == 0)
        status = args.tune                     ? tess_bench_gcf_tune(&args)
                 : args.study.tables.count > 0 ? tess_bench_gcf_study_run(&args)
                                               : run_all(&args);
    status = tess_comm_agree(comm, status);
cleanup:
    tess_cli_free(&cli);
    return status;
}
