/* tessera bench convolve: times the steps of convolving frames with a PSF. */
#define _GNU_SOURCE
#include <argp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "option_rules.h"
#include "tess_backend.h"
#include "tess_backend_choice.h"
#include "tess_bench_convolve.h"
#include "tess_cli.h"
#include "tess_log.h"
#include "tess_subcommands.h"
#include "tess_threads.h"
#include "tess_version.h"

static const char doc[] =
    "Time the convolution of frames with a PSF, with wrap-around, from the literal sum "
    "to "
    "the fastest one, and compare each step's result with that of the literal sum. The "
    "sizes are those of StrayLight (T. Tsiodras), the correction of stray light in "
    "frames "
    "of a satellite: 519 million products a frame. Only this benchmark wraps around: "
    "images are convolved without."
    "\v"
    "Columns: the step and its threads, milliseconds of setting up (once for all "
    "frames), "
    "of a frame (median), and of copying it to and from the GPU; how many times as "
    "fast as "
    "the literal sum; the difference from that, and what rounding explains: the "
    "largest of "
    "a pixel in units of Σ|psf| max|frame|, or, of transforms, the rms in units of "
    "Σ|psf| "
    "rms(frame). A larger difference is an error. The step 'blocks' is repeated with "
    "1, 2, "
    "4, ... threads. Last come the times that StrayLight's author published of steps "
    "of the "
    "same kind. Runs on the first rank only.\n\n"
    "Examples:\n"
    "  tessera bench convolve\n"
    "  tessera bench convolve --backend " TESS_BACKEND_DEVICE " --csv\n"
    "  tessera bench convolve --size 4096,4096 --psf 31,31 --threads 16";

enum { OPT_SIZE = 0x100, OPT_PSF, OPT_THREADS, OPT_REPEAT, OPT_BACKEND, OPT_CSV };

static const struct argp_option options[] = {
    {"size", OPT_SIZE, "NX,NY", 0, "Pixels of a frame (default 5271,813)", 0},
    {"psf", OPT_PSF, "NX,NY", 0, "Pixels of the PSF (default 11,11)", 0},
    {"threads", OPT_THREADS, "N", 0, "Threads, at most (default as for tessera image)",
     0},
    {"repeat", OPT_REPEAT, "N", 0,
     "Frames, besides the first, that count (default 5); the literal sum makes one", 0},
    {"backend", OPT_BACKEND, TESS_BACKEND_WORDS, 0,
     TESS_BACKEND_DEVICE
     " and, where there is a GPU, auto: the steps on the GPU, too (default auto)",
     0},
    {"csv", OPT_CSV, NULL, 0, "Print CSV", 0},
    {0},
};

static const struct argp_child children[] = {
    {&tess_cli_common_argp, 0, "General:", 4},
    {0},
};

typedef struct convolve_args {
    tess_bench_list size, psf;
    int threads, repeat;
    const char *backend;
    bool csv;
} convolve_args;

/* A width and a height. */
static tess_status take_size(const tess_option_rule *rule, const char *text,
                             void *value)
{
    tess_status status = TESS_OK;
    tess_bench_list size;
    TESS_TRY(tess_bench_take_integers(rule, text, &size));
    if (size.count != 2)
        TESS_FAIL(TESS_ERR_USAGE, "'%s' is not a width and a height: NX,NY", text);
    *(tess_bench_list *)value = size;
cleanup:
    return status;
}

#define AT(member) offsetof(convolve_args, member)

static const tess_option_rule rules[] = {
    {OPT_SIZE, take_size, .offset = AT(size), .min = 1, .max = 65536},
    {OPT_PSF, take_size, .offset = AT(psf), .min = 1, .max = 65536},
    {OPT_THREADS, tess_take_int, .offset = AT(threads), .min = 1, .max = 4096},
    {OPT_REPEAT, tess_take_int, .offset = AT(repeat), .min = 1, .max = 1000},
    {OPT_BACKEND, tess_take_text, .offset = AT(backend)},
    {OPT_CSV, tess_take_flag, .offset = AT(csv)},
    {0},
};

#undef AT

static error_t parse(int key, char *arg, struct argp_state *state)
{
    convolve_args *args = state->input;
    tess_status status = TESS_OK;
    if (key == ARGP_KEY_INIT) {
        *args =
            (convolve_args){.size = {{TESS_BENCH_FRAME_NX, TESS_BENCH_FRAME_NY}, 2},
                            .psf = {{TESS_BENCH_FRAME_PSF, TESS_BENCH_FRAME_PSF}, 2},
                            .repeat = 5,
                            .backend = "auto"};
        return 0;
    }
    if (!tess_option_take(rules, key, arg, args, &status)) return ARGP_ERR_UNKNOWN;
    return tess_cli_result(state, options, key, arg, status);
}

static const struct argp argp = {options, parse, NULL, doc, children, NULL, NULL};

/* What lines of the table need beside themselves. */
typedef struct table {
    bool csv;
    const tess_bench_convolve_case *what;
    double literal_s; /* of the first line */
} table;

static void print_csv(const tess_bench_convolve_row *row, double times)
{
    printf("%s,%d,%.6f,%.6f,%.6f,%.2f,%.3e,%.3e,%s\n", row->step, row->threads,
           1e3 * row->setup_s, 1e3 * row->frame_s, 1e3 * row->copy_s, times,
           row->difference, row->bound, tess_version_full());
}

static void print_text(const tess_bench_convolve_row *row, double times)
{
    char threads[16] = "GPU";
    if (row->threads > 0) snprintf(threads, sizeof threads, "%d", row->threads);
    printf("%-8s %7s %9.3f %10.3f %8.3f %8.1f %11.1e %8.1e  %s\n", row->step, threads,
           1e3 * row->setup_s, 1e3 * row->frame_s, 1e3 * row->copy_s, times,
           row->difference, row->bound, row->what);
}

static void print_head(const table *out)
{
    const tess_bench_convolve_case *what = out->what;
    if (out->csv)
        printf(
            "step,threads,setup_ms,frame_ms,copy_ms,times,difference,bound,version\n");
    else
        printf("Frames of %lld × %lld pixels, a PSF of %lld × %lld: %.1f million "
               "products\n"
               "step     threads  setup/ms   frame/ms  copy/ms    times  difference    "
               "bound\n",
               (long long)what->nx, (long long)what->ny, (long long)what->kx,
               (long long)what->ky,
               1e-6 * (double)what->nx * (double)what->ny * (double)what->kx *
                   (double)what->ky);
}

static void print_row(const tess_bench_convolve_row *row, void *context)
{
    table *out = context;
    if (out->literal_s == 0) {
        print_head(out);
        out->literal_s = row->frame_s;
    }
    (out->csv ? print_csv : print_text)(row, out->literal_s / row->frame_s);
    fflush(stdout);
}

/* github.com/ttsiodras/straylight, and the pages about it. The sizes are the same, the
 * machines are older. */
static void print_published(void)
{
    puts("StrayLight, as published, step after step: 5895, 738, 477, 238 ms on a "
         "processor, 51 ms on a GTX 650 Ti");
}

static tess_status run(const convolve_args *args, const tess_backend *backend)
{
    tess_status status = TESS_OK;
    const tess_bench_convolve_case what = {.nx = (int64_t)args->size.value[0],
                                           .ny = (int64_t)args->size.value[1],
                                           .kx = (int64_t)args->psf.value[0],
                                           .ky = (int64_t)args->psf.value[1],
                                           .threads = args->threads,
                                           .repeat = args->repeat,
                                           .device = backend->start != NULL};
    table out = {.csv = args->csv, .what = &what};
    int enough = 1;
    TESS_TRY(tess_bench_convolve_run(&what, print_row, &out, &enough));
    if (!args->csv) print_published();
    tess_log_info("more than %d thread%s save%s less than a twentieth of the time",
                  enough, enough == 1 ? "" : "s", enough == 1 ? "s" : "");
cleanup:
    return status;
}

tess_status tess_cmd_bench_convolve(tess_comm *comm, int argc, char **argv)
{
    tess_status status = TESS_OK;
    char name[] = "bench convolve";
    convolve_args args;
    tess_cli cli = {0};
    const tess_backend *backend;
    argv[0] = name; /* the name that the help prints */
    TESS_TRY(tess_cli_parse(comm, &argp, argc, argv, &args, &cli));
    if (cli.help) goto cleanup;
    if (args.threads == 0) TESS_TRY(tess_threads_default(comm, &args.threads));
    TESS_TRY(imager_backend(comm, args.backend, &backend));
    imager_backend_log(args.backend, backend);
    if (tess_comm_rank(comm) == 0) status = run(&args, backend);
    status = tess_comm_agree(comm, status);
cleanup:
    tess_cli_free(&cli);
    return status;
}
