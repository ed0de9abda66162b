/* tessera bench: times gridding and degridding of made-up visibilities, and measures
 * the machine for the planner. */
#define _GNU_SOURCE
#include <argp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "option_rules.h"
#include "tess_backend.h"
#include "tess_backend_choice.h"
#include "tess_bench.h"
#include "tess_bench_list.h"
#include "tess_calibrate.h"
#include "tess_cli.h"
#include "tess_log.h"
#include "tess_subcommands.h"
#include "tess_threads.h"
#include "tess_version.h"

static const char doc[] =
    "Time gridding or degridding alone, on visibilities made up in memory, and print a "
    "table (CSV) on standard output. Lists are swept: every combination is a line. "
    "'calibrate' measures what large runs are planned by on this machine, and keeps it "
    "in place of what was measured before. "
    "'tessera bench gcf' times gridding with tables of convolution functions and has "
    "options of its own: 'tessera bench gcf --help'; 'tessera bench --tune' is its "
    "--tune. 'tessera bench convolve' times convolutions of frames with a PSF, step by "
    "step: 'tessera bench convolve --help'."
    "\v"
    "Columns: what was timed and where, the case, precision, support and planes that "
    "the accuracy led to, or --precision and --support, the grid, seconds to sort the "
    "visibilities into bricks (on a GPU with their upload) and to (de)grid them, "
    "medians, millions of visibilities a second, and, of degridding, the sum of what "
    "was read off. Runs on the first rank only.\n\n"
    "Examples:\n"
    "  tessera bench grid --vis 1e7 --accuracy 1e-2,1e-4,1e-6,1e-10\n"
    "  tessera bench degrid --backend cpu --threads 1 --order tracks,random \\\n"
    "      --size 1024,4096\n"
    "  tessera bench grid --support 4,6,8 --precision single,double --accuracy 1e-4\n"
    "  tessera bench grid --backend " TESS_BACKEND_DEVICE
    " --vis 1e7 --order random \\\n"
    "      --compare cufinufft\n"
    "  tessera bench calibrate\n"
    "  tessera bench gcf --gcf 8,32,128 --strategy atomic,tiled,factored\n"
    "  tessera bench convolve";

enum {
    OPT_VIS = 0x100,
    OPT_SIZE,
    OPT_ACCURACY,
    OPT_ORDER,
    OPT_BACKEND,
    OPT_THREADS,
    OPT_REPEAT,
    OPT_COMPARE,
    OPT_SUPPORT,
    OPT_PRECISION
};
static const struct argp_option options[] = {
    {"vis", OPT_VIS, "N,...", 0, "Visibilities, about (default 1e6)", 0},
    {"size", OPT_SIZE, "N,...", 0, "Image size (default 2048); the grid is larger", 0},
    {"accuracy", OPT_ACCURACY, "E,...", 0,
     "Accuracies asked for (default 1e-2,1e-4,1e-6); from 9e-6 down in double "
     "precision, unless --precision says otherwise",
     0},
    {"support", OPT_SUPPORT, "W,...", 0,
     "Kernel widths, cells (default: what costs least at each accuracy); one that "
     "cannot reach an accuracy is left out with a warning",
     0},
    {"precision", OPT_PRECISION, "single|double,...", 0,
     "Of grid and visibilities (default: what each accuracy needs)", 0},
    {"order", OPT_ORDER, "tracks|random,...", 0,
     "Tracks of a dense array, 16 channels each, in order of time (default), or points "
     "anywhere in any order",
     0},
    {"backend", OPT_BACKEND, TESS_BACKEND_WORDS, 0, "Where to compute (default auto)",
     0},
    {"threads", OPT_THREADS, "N", 0, "Threads (default as for tessera image)", 0},
    {"repeat", OPT_REPEAT, "N", 0, "Runs, besides the first, that count (default 3)",
     0},
    {"compare", OPT_COMPARE, "ducc0|cufinufft", 0,
     "A second line for each: that program on the same visibilities, if Python "
     "(TESS_PYTHON, default python3) has it. Its time goes to whole grids or from "
     "them, tessera's to the sums of tiles or from these",
     0},
    {0},
};

static const struct argp_child children[] = {
    {&tess_cli_common_argp, 0, "General:", 4},
    {0},
};

typedef struct bench_args {
    bool chosen, degrid, calibrate;
    tess_bench_list vis, size, accuracy, support, precision, order;
    const char *backend, *compare;
    int threads, repeat;
} bench_args;

static const char *const precision_names[] = {"auto", "single", "double", NULL};
static const char *const order_names[] = {"tracks", "random", NULL};

/* The peer's name, checked. */
static tess_status take_peer(const tess_option_rule *rule, const char *text,
                             void *value)
{
    const tess_status status = tess_bench_peer_check(text);
    return status == TESS_OK ? tess_take_text(rule, text, value) : status;
}

#define AT(member) offsetof(bench_args, member)

static const tess_option_rule rules[] = {
    {OPT_VIS, tess_bench_take_numbers, .offset = AT(vis), .min = 1, .max = 1e12},
    {OPT_SIZE, tess_bench_take_numbers, .offset = AT(size), .min = 16, .max = 1e6},
    {OPT_ACCURACY, tess_bench_take_numbers, .offset = AT(accuracy), .min = 1e-12,
     .max = 1e-1},
    {OPT_SUPPORT, tess_bench_take_integers, .offset = AT(support),
     .min = TESS_MIN_SUPPORT, .max = TESS_MAX_SUPPORT},
    /* no one names the precision "auto", word 0 */
    {OPT_PRECISION, tess_bench_take_words, .offset = AT(precision), .min = 1,
     .words = precision_names},
    {OPT_ORDER, tess_bench_take_words, .offset = AT(order), .words = order_names},
    {OPT_BACKEND, tess_take_text, .offset = AT(backend)},
    {OPT_COMPARE, take_peer, .offset = AT(compare)},
    {OPT_THREADS, tess_take_int, .offset = AT(threads), .min = 1, .max = 4096},
    {OPT_REPEAT, tess_take_int, .offset = AT(repeat), .min = 1, .max = 1000},
    {0},
};

#undef AT

static error_t parse(int key, char *arg, struct argp_state *state)
{
    bench_args *args = state->input;
    tess_status status = TESS_OK;
    switch (key) {
    case ARGP_KEY_INIT:
        *args = (bench_args){.vis = {{1e6}, 1},
                             .size = {{2048}, 1},
                             .accuracy = {{1e-2, 1e-4, 1e-6}, 3},
                             .support = {{0}, 1},
                             .precision = {{TESS_PRECISION_AUTO}, 1},
                             .order = {{TESS_BENCH_TRACKS}, 1},
                             .backend = "auto",
                             .repeat = 3};
        return 0;
    case ARGP_KEY_ARG:
        args->degrid = strcmp(arg, "degrid") == 0;
        args->calibrate = strcmp(arg, "calibrate") == 0;
        if (args->chosen ||
            (!args->degrid && !args->calibrate && strcmp(arg, "grid") != 0))
            return ARGP_ERR_UNKNOWN;
        args->chosen = true;
        return 0;
    default:
        if (!tess_option_take(rules, key, arg, args, &status)) return ARGP_ERR_UNKNOWN;
    }
    return tess_cli_result(state, options, key, arg, status);
}

static const struct argp argp = {options, parse, "grid|degrid|calibrate", doc, children,
                                 NULL,    NULL};

static void print_line(const bench_args *args, const tess_backend *backend,
                       const tess_bench_case *what, const tess_bench_result *found)
{
    printf("%s,%s,%d,%s,%lld,%lld,%g,%s,%d,%d,%lld,%lld,%.6f,%.6f,%.3f",
           what->degrid ? "degrid" : "grid", backend->name, args->threads,
           what->order == TESS_BENCH_RANDOM ? "random" : "tracks",
           (long long)found->num_vis, (long long)what->size, what->accuracy,
           found->is_double ? "double" : "single", found->support, found->num_planes,
           (long long)found->nu, (long long)found->nv, found->sort_s, found->seconds,
           1e-6 * (double)found->num_vis / found->seconds);
    if (what->degrid)
        printf(",%.6e,%s\n", found->sum, tess_version_full());
    else
        printf(",,%s\n", tess_version_full());
}

static void print_peer(const bench_args *args, const tess_bench_case *what,
                       const tess_bench_result *found)
{
    char support[16] = "";
    if (found->peer.support > 0)
        snprintf(support, sizeof support, "%d", found->peer.support);
    printf("%s,%s,%d,%s,%lld,%lld,%g,%s,%s,,,,%.6f,%.6f,%.3f,,%s\n",
           what->degrid ? "degrid" : "grid", what->peer, args->threads,
           what->order == TESS_BENCH_RANDOM ? "random" : "tracks",
           (long long)found->num_vis, (long long)what->size, what->accuracy,
           found->is_double ? "double" : "single", support, found->peer.sort_s,
           found->peer.seconds, 1e-6 * (double)found->num_vis / found->peer.seconds,
           found->peer.version);
}

/* The lists of values to combine. The last list varies fastest. */
enum { ORDER, VIS, SIZE, SUPPORT, PRECISION, ACCURACY, NUM_LISTS };

static void lists_of(const bench_args *args, const tess_bench_list *list[NUM_LISTS])
{
    list[ORDER] = &args->order;
    list[VIS] = &args->vis;
    list[SIZE] = &args->size;
    list[SUPPORT] = &args->support;
    list[PRECISION] = &args->precision;
    list[ACCURACY] = &args->accuracy;
}

/* The k-th combination of the lists' values. */
static tess_bench_case case_of(const bench_args *args, int k)
{
    const tess_bench_list *list[NUM_LISTS];
    double value[NUM_LISTS];
    lists_of(args, list);
    tess_bench_combination(list, NUM_LISTS, k, value);
    return (tess_bench_case){.degrid = args->degrid,
                             .order = (tess_bench_order)value[ORDER],
                             .num_vis = (int64_t)value[VIS],
                             .size = (int64_t)value[SIZE],
                             .accuracy = value[ACCURACY],
                             .precision = (tess_precision)value[PRECISION],
                             .support = (int)value[SUPPORT],
                             .peer = args->compare};
}

static int count_cases(const bench_args *args)
{
    const tess_bench_list *list[NUM_LISTS];
    int count = 1;
    lists_of(args, list);
    for (int k = 0; k < NUM_LISTS; ++k)
        count *= list[k]->count;
    return count;
}

/* Whether the user chose the kernel or the precision. A combination that cannot reach
 * the accuracy is then no error, because other combinations may reach it. */
static bool is_forced(const tess_bench_case *what)
{
    return what->support > 0 || what->precision != TESS_PRECISION_AUTO;
}

static tess_status run_all(const bench_args *args, const tess_backend *backend)
{
    tess_status status = TESS_OK;
    const int cases = count_cases(args);
    printf(
        "operation,backend,threads,order,visibilities,size,accuracy,precision,support,"
        "planes,nu,nv,sort_s,seconds,mvis_per_s,sum,version\n");
    for (int k = 0; k < cases; ++k) {
        const tess_bench_case what = case_of(args, k);
        tess_bench_result found;
        status = tess_bench_run(backend, &what, args->threads, args->repeat, &found);
        if (status == TESS_ERR_USAGE && is_forced(&what)) {
            tess_log_warn("left out: %s", tess_error_message());
            tess_error_clear();
            status = TESS_OK;
            continue;
        }
        TESS_TRY(status);
        print_line(args, backend, &what, &found);
        if (args->compare) print_peer(args, &what, &found);
        fflush(stdout);
    }
cleanup:
    return status;
}

/* Measure the machine and print what was found. Collective. */
static tess_status calibrate(tess_comm *comm, int threads)
{
    tess_status status = TESS_OK;
    tess_costs costs;
    const double start = tess_time_now();
    TESS_TRY(tess_calibrate(comm, TESS_CALIBRATE_ANEW, threads, &costs));
    if (tess_comm_rank(comm) > 0) return TESS_OK;
    printf("cost,support,single,double\n");
    for (int w = TESS_MIN_SUPPORT; w <= TESS_MAX_SUPPORT; ++w)
        printf("visibility_s,%d,%.4g,%.4g\nupdate_s,%d,%.4g,%.4g\n", w,
               costs.vis_s[0][w], costs.vis_s[1][w], w, costs.update_s[0][w],
               costs.update_s[1][w]);
    printf("fft_flop_s,,%.4g,%.4g\nline_value_s,,%.4g,%.4g\npixel_s,,%.4g,%.4g\n",
           costs.fft_flop_s[0], costs.fft_flop_s[1], costs.line_s[0], costs.line_s[1],
           costs.pixel_s[0], costs.pixel_s[1]);
    printf("sort_s,,%.4g,\ncorrect_s,,%.4g,\n", costs.sort_s, costs.correct_s);
    printf("touch_bytes_per_s,,%.4g,\ncopy_bytes_per_s,,%.4g,\n", costs.touch_bytes_s,
           costs.copy_bytes_s);
    printf("copy_threads,,%d,\nsort_threads,,%d,\nread_threads,,%d,\n",
           costs.enough_threads[TESS_TRAFFIC_COPY],
           costs.enough_threads[TESS_TRAFFIC_SORT],
           costs.enough_threads[TESS_TRAFFIC_READ]);
    tess_log_info("measured in %.2f s", tess_time_now() - start);
cleanup:
    return status;
}

tess_status tess_cmd_bench(tess_comm *comm, int argc, char **argv)
{
    tess_status status = TESS_OK;
    bench_args args;
    tess_cli cli = {0};
    const tess_backend *backend;
    if (argc > 1 && strcmp(argv[1], "gcf") == 0)
        return tess_cmd_bench_gcf(comm, argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "convolve") == 0)
        return tess_cmd_bench_convolve(comm, argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "--tune") == 0)
        return tess_cmd_bench_gcf(comm, argc, argv);
    TESS_TRY(tess_cli_parse(comm, &argp, argc, argv, &args, &cli));
    if (cli.help) goto cleanup;
    if (!args.chosen)
        TESS_FAIL(TESS_ERR_USAGE,
                  "say what to time: tessera bench grid, degrid, calibrate, gcf or "
                  "convolve");
    if (args.threads == 0) TESS_TRY(tess_threads_default(comm, &args.threads));
    if (args.calibrate) {
        status = calibrate(comm, args.threads);
        goto cleanup;
    }
    TESS_TRY(imager_backend(comm, args.backend, &backend));
    imager_backend_log(args.backend, backend);
    if (tess_comm_rank(comm) == 0) status = run_all(&args, backend);
    status = tess_comm_agree(comm, status);
cleanup:
    tess_cli_free(&cli);
    return status;
}
