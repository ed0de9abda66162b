/* tessera compare: prints how two FITS images, or the images of two folders, differ. */
#define _GNU_SOURCE
#include <argp.h>
#include <float.h>
#include <stdio.h>

#include "compare.h"
#include "options.h"
#include "tess_cli.h"
#include "tess_print.h"
#include "tess_subcommands.h"
#include "tess_text.h"

static const char doc[] =
    "Compare two FITS images, or two folders of images such as --dump-stages writes: "
    "pixels, and what the headers say of place, frequency, Stokes and unit."
    "\v"
    "A pixel may differ by RTOL of its value or by RTOL of the rms of A, whichever is "
    "more; with --atol the latter is a fraction of the peak of A. Blank pixels equal "
    "blank ones only. Exit status 0: they agree; 5: they differ.\n\n"
    "Examples:\n"
    "  tessera compare a-dirty.fits b-dirty.fits --rtol 1e-5\n"
    "  tessera compare a-dirty.fits b-dirty.fits --rtol 1e-6 --atol 1e-6\n"
    "  tessera compare stages-of-1-rank stages-of-4-ranks";

enum { OPT_RTOL = 0x100, OPT_ATOL, OPT_PIXELS_ONLY };

static const struct argp_option options[] = {
    {"rtol", OPT_RTOL, "X", 0, "Relative tolerance (default 1e-5)", 0},
    {"atol", OPT_ATOL, "X", 0,
     "Tolerance near zero, as a fraction of the peak (default RTOL times the rms)", 0},
    {"pixels-only", OPT_PIXELS_ONLY, NULL, 0, "Ignore headers", 0},
    {0},
};

static const struct argp_child children[] = {
    {&tess_cli_common_argp, 0, "General:", 4},
    {0},
};

typedef struct compare_args {
    const char *path[2];
    int num_paths;
    tess_compare_opts opts;
} compare_args;

static error_t parse(int key, char *arg, struct argp_state *state)
{
    compare_args *args = state->input;
    tess_status status = TESS_OK;
    switch (key) {
    case ARGP_KEY_ARG:
        if (args->num_paths == 2) return ARGP_ERR_UNKNOWN;
        args->path[args->num_paths++] = arg;
        return 0;
    case OPT_RTOL:
        status = tess_parse_number(arg, 0, DBL_MAX, &args->opts.rtol);
        break;
    case OPT_ATOL:
        status = tess_parse_number(arg, 0, DBL_MAX, &args->opts.atol);
        break;
    case OPT_PIXELS_ONLY:
        args->opts.pixels_only = true;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return tess_cli_result(state, options, key, arg, status);
}

static const struct argp argp = {options, parse, "A B", doc, children, NULL, NULL};

/* Prints one line for a pair of images. */
static void report(const tess_compare_result *result, void *context)
{
    (void)context;
    char name[sizeof result->name], header[sizeof result->header]; /* copies to clean */
    snprintf(name, sizeof name, "%s", result->name);
    snprintf(header, sizeof header, "%s", result->header);
    tess_print("%-8s %s: ", result->differs ? "differs" : "agrees",
               tess_text_clean(name));
    if (result->num_pixels > 0)
        tess_print(
            "relative L2 %.3g, largest difference %.3g at pixel %lld,%lld, %lld of "
            "%lld pixels past the tolerance",
            result->l2_relative, result->max_abs, (long long)result->max_pixel[0],
            (long long)result->max_pixel[1], (long long)result->num_different,
            (long long)result->num_pixels);
    tess_print("%s%s\n", result->num_pixels > 0 && *header ? "; " : "",
               tess_text_clean(header));
}

tess_status tess_cmd_compare(tess_comm *comm, int argc, char **argv)
{
    tess_status status = TESS_OK;
    compare_args args = {0};
    tess_cli cli = {0};
    tess_compare_result result = {0};
    tess_compare_opts_default(&args.opts);
    TESS_TRY(tess_cli_parse(comm, &argp, argc, argv, &args, &cli));
    if (cli.help) goto cleanup;
    if (args.num_paths != 2)
        TESS_FAIL(TESS_ERR_USAGE, "two FITS files or two folders are needed");
    if (!cli.quiet) args.opts.report = report;
    /* One rank reads the files and compares them. */
    if (tess_comm_rank(comm) == 0)
        status = tess_compare_files(args.path[0], args.path[1], &args.opts, &result);
    status = tess_comm_agree(comm, status);
cleanup:
    tess_cli_free(&cli);
    return status;
}
