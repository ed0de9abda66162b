/* tessera info: reads through an observation (info_scan.c) and prints what it holds
 * (info_print.c). */
#define _GNU_SOURCE
#include <argp.h>
#include <stdio.h>

#include "groups.h"
#include "info.h"
#include "tess_cli.h"
#include "tess_log.h"
#include "tess_subcommands.h"
#include "tess_vis.h"

static const char doc[] =
    "Describe an observation (UVFITS file, MeasurementSet): telescope, times, fields, "
    "spectral windows, antennas, baselines, the flagged share of each field and "
    "window, "
    "and a command that makes a first image."
    "\v"
    "Flags are counted when that takes seconds; --flags counts them in any case. They "
    "are "
    "listed by field where there are 64 fields or fewer.\n\n"
    "Examples:\n"
    "  tessera info obs.uvfits\n"
    "  tessera info obs.ms --antennas --field 3C286\n"
    "  tessera info obs.ms --json";

enum {
    OPT_JSON = 0x100,
    OPT_ANTENNAS,
    OPT_FLAGS,
    OPT_FIELD,
    OPT_DATACOLUMN,
    OPT_LOCK_TIMEOUT
};

static const struct argp_option options[] = {
    {"json", OPT_JSON, NULL, 0, "Print JSON", 0},
    {"antennas", OPT_ANTENNAS, NULL, 0, "List the antennas", 0},
    {"flags", OPT_FLAGS, NULL, 0, "Count flags, however large the set is", 0},
    {"field", OPT_FIELD, "F", 0, "Rows of this field only, by name or number", 0},
    {"datacolumn", OPT_DATACOLUMN, "NAME", 0,
     "Column of a MeasurementSet (default CORRECTED_DATA if there, else DATA)", 0},
    {"lock-timeout", OPT_LOCK_TIMEOUT, "TIME", 0, TESS_LOCK_TIMEOUT_HELP, 0},
    {0},
};

static const struct argp_child children[] = {
    {&tess_expressions_argp, 0, "Selection as in CASA:", 3},
    {&tess_cli_common_argp, 0, "General:", 4},
    {0},
};

typedef struct info_args {
    const char *obs, *field, *data_column;
    tess_vis_expressions by;
    bool json, antennas, flags;
} info_args;

static error_t parse(int key, char *arg, struct argp_state *state)
{
    info_args *args = state->input;
    tess_status status = TESS_OK;
    switch (key) {
    case ARGP_KEY_INIT:
        tess_vis_set_lock_timeout(TESS_VIS_LOCK_TIMEOUT_S);
        state->child_inputs[0] = &args->by;
        return 0;
    case ARGP_KEY_ARG:
        if (args->obs) return ARGP_ERR_UNKNOWN; /* there may be one only */
        args->obs = arg;
        return 0;
    case OPT_JSON:
        args->json = true;
        break;
    case OPT_ANTENNAS:
        args->antennas = true;
        break;
    case OPT_FLAGS:
        args->flags = true;
        break;
    case OPT_FIELD:
        args->field = arg;
        break;
    case OPT_DATACOLUMN:
        args->data_column = arg;
        break;
    case OPT_LOCK_TIMEOUT:
        status = tess_cli_lock_timeout(arg);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return tess_cli_result(state, options, key, arg, status);
}

static const struct argp argp = {options, parse, "OBS", doc, children, NULL, NULL};

/* Whether the samples are so few that reading all of them takes seconds. */
static bool is_small(const tess_vis_meta *meta)
{
    const double few = 2e8;
    double samples = 0;
    for (int s = 0; s < meta->num_segments; ++s)
        samples += (double)meta->segment[s].num_rows *
                   (double)meta->segment[s].num_chan * meta->segment[s].num_corr;
    return samples <= few;
}

/* Opens the observation. It reads the samples only if `info` has to count flags, so a
 * set without a data column can be described, too. */
static tess_status open_set(const info_args *args, bool *flags,
                            tess_vis_reader **reader)
{
    tess_status status = TESS_OK;
    tess_vis_select select = {.data_column = args->data_column,
                              .field = args->field,
                              .any_field = args->field == NULL,
                              .by = args->by};
    *flags = true;
    TESS_TRY(tess_vis_check(&args->obs, 1, &select));
    status = tess_vis_open(args->obs, &select, reader);
    const bool can_retry =
        status == TESS_ERR_INPUT && !args->flags && !args->data_column;
    if (status == TESS_OK && (args->flags || is_small(tess_vis_reader_meta(*reader))))
        goto cleanup;
    if (status != TESS_OK && !can_retry) goto cleanup;
    tess_vis_close(*reader);
    *reader = NULL;
    tess_error_clear();
    *flags = false;
    select.model_only = true;
    TESS_TRY(tess_vis_open(args->obs, &select, reader));
cleanup:
    return status;
}

/* Reads each field separately, so that its flags can be counted separately. */
static tess_status add_each_field(const info_args *args, const tess_vis_meta *meta,
                                  tess_info *info)
{
    tess_status status = TESS_OK;
    tess_vis_reader *reader = NULL;
    tess_vis_select select = {.data_column = args->data_column, .by = args->by};
    for (int k = 0; k < meta->num_fields; ++k) {
        char number[16];
        if (meta->field[k].num_rows == 0) continue;
        snprintf(number, sizeof number, "%d", meta->field[k].id);
        select.field = number;
        TESS_TRY(tess_vis_open(args->obs, &select, &reader));
        TESS_TRY(tess_info_add(reader, true, true, info));
        tess_vis_close(reader);
        reader = NULL;
    }
cleanup:
    tess_vis_close(reader);
    return status;
}

static tess_status describe(const info_args *args, FILE *out)
{
    enum { MOST_FIELDS = 64 }; /* each field opens the set again */
    tess_status status = TESS_OK;
    tess_vis_reader *reader = NULL;
    tess_info info = {0};
    bool flags = false;
    TESS_TRY(open_set(args, &flags, &reader));
    const int fields =
        args->field ? 1 : tess_vis_fields_with_rows(tess_vis_reader_meta(reader));
    if (flags && fields > 1 && fields <= MOST_FIELDS)
        TESS_TRY(add_each_field(args, tess_vis_reader_meta(reader), &info));
    else
        TESS_TRY(tess_info_add(reader, flags, fields == 1, &info));
    tess_info_finish(tess_vis_reader_meta(reader), &info);
    if (args->json)
        TESS_TRY(tess_info_print_json(out, tess_vis_reader_meta(reader), &info));
    else
        tess_info_print(out, tess_vis_reader_meta(reader), &info, args->antennas);
cleanup:
    tess_info_free(&info);
    tess_vis_close(reader);
    return status;
}

/* Parses the options into `args` and describes the observation. The caller may have set
 * args.json. */
static tess_status run(tess_comm *comm, int argc, char **argv, info_args args,
                       FILE *out)
{
    tess_status status = TESS_OK;
    tess_cli cli = {0};
    TESS_TRY(tess_cli_parse(comm, &argp, argc, argv, &args, &cli));
    if (cli.help) goto cleanup;
    if (!args.obs)
        TESS_FAIL(TESS_ERR_USAGE, "no observation given; name a UVFITS file or a "
                                  "MeasurementSet");
    /* One rank describes the observation. */
    if (tess_comm_rank(comm) == 0) status = describe(&args, out);
    status = tess_comm_agree(comm, status);
cleanup:
    tess_cli_free(&cli);
    return status;
}

tess_status tess_cmd_info(tess_comm *comm, int argc, char **argv)
{
    return run(comm, argc, argv, (info_args){0}, stdout);
}

tess_status tess_cmd_info_json(tess_comm *comm, int argc, char **argv, FILE *json)
{
    return run(comm, argc, argv, (info_args){.json = true}, json);
}
