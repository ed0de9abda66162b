/* tessera predict: parses the options and predicts the visibilities of a model image.
 */
#define _GNU_SOURCE
#include <argp.h>
#include <string.h>
#include <strings.h>

#include "groups.h"
#include "job.h"
#include "options.h"
#include "tess_backend.h"
#include "tess_cli.h"
#include "tess_fits.h"
#include "tess_forced.h"
#include "tess_imager_predict.h"
#include "tess_list_predict.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_out_file.h"
#include "tess_parse.h"
#include "tess_primary_beam.h"
#include "tess_profile_report.h"
#include "tess_source_list.h"
#include "tess_subcommands.h"
#include "tess_threads.h"
#include "tess_words.h"
#include "trace_file.h"

static const char doc[] =
    "Predict the visibilities of a model image or a list of sources, for every row of "
    "an "
    "observation, flagged or not."
    "\v"
    "The model is a FITS image of Stokes I, or with a STOKES axis of I, Q, U, V, in "
    "Jy/pixel, at the pointing of the observation; a cube of these with a FREQ axis, "
    "or the NAME of what tessera image -o NAME has left, NAME-cube-model.fits, "
    "NAME-0000-model.fits and so on for channels, or NAME-model.fits (where beams or "
    "gains of facets act, the models of fluxes NAME-model-pb.fits ...); or a list of "
    "sources as DP3 and WSClean write it, whose first line begins with 'Format ='. "
    "Lists are summed source by "
    "source "
    "in double precision, on the processor. -o writes a copy of the observation "
    "with the predicted visibilities, --column a data column of a MeasurementSet in "
    "place; a file or column that exists is kept unless --overwrite is given. A run "
    "that is stopped leaves no new file or column behind, but a column that it was "
    "replacing stays half old and half new.\n\n"
    "Examples:\n"
    "  tessera predict obs.uvfits --model sky-model.fits -o predicted.uvfits\n"
    "  mpirun -n 4 tessera predict obs.ms --model sky-model.fits \\\n"
    "      --column MODEL_DATA";

enum {
    OPT_MODEL = 0x100,
    OPT_FIT_POL,
    OPT_COLUMN,
    OPT_PER_FACET,
    OPT_MOSAIC,
    OPT_PRIMARY_BEAM,
    OPT_POINTING_LIMIT,
    OPT_OVERWRITE,
    OPT_PROFILE,
    OPT_TRACE,
    OPT_OBS
};

static const struct argp_option options[] = {
    {"model", OPT_MODEL, "MODEL.fits|NAME|LIST", 0,
     "Model image, model cube, NAME of the models of tessera image -o NAME, or list "
     "of sources",
     0},
    {"fit-spectral-pol", OPT_FIT_POL, "N", 0,
     "Predict a polynomial of N terms through the channels of the model (default: for "
     "each channel of the data the nearest)",
     0},
    {"mosaic", OPT_MOSAIC, NULL, 0,
     "Predict what each pointing sees of a model in true flux, as NAME-model-pb.fits, "
     "through its primary beam (that of the telescope unless --primary-beam names "
     "another), into the rows of its own field",
     0},
    {"primary-beam", OPT_PRIMARY_BEAM, "MODEL", 0,
     "Multiply a model in true flux by the primary beam: a MODEL of tessera image "
     "--primary-beam",
     0},
    {"pointing-limit", OPT_POINTING_LIMIT, "LEVEL", 0,
     "Where the primary beam is below this, nothing is seen (default 0.02)", 0},
    {"output", 'o', "OUT.uvfits", 0, "Write the visibilities to this file", 0},
    {"column", OPT_COLUMN, "NAME", 0,
     "Write them to this column of the MeasurementSet, like MODEL_DATA", 0},
    {"column-per-facet", OPT_PER_FACET, NULL, 0,
     "Write each of --facets to a column of its own, which is NAME_FACET for --column "
     "NAME (default MODEL_DATA) and the name of the facet",
     0},
    {"overwrite", OPT_OVERWRITE, NULL, 0, "Replace an existing file or column", 0},
    {"profile", OPT_PROFILE, "FILE.json", 0,
     "Write seconds, bytes and visibilities per rank and stage", 0},
    {"trace", OPT_TRACE, "FILE.json", 0,
     "Write when each rank and thread did what, in Chrome's trace format (for "
     "Perfetto)",
     0},
    {"obs", OPT_OBS, "OBS", OPTION_HIDDEN, "Observation, for --config", 0},
    {0},
};

static const struct argp_child children[] = {
    {&tess_selection_argp, 0, "Selection of visibilities:", 1},
    {&tess_gridding_argp, 0, "Gridding:", 2},
    {&tess_layout_argp, 0, "Resources:", 3},
    {&tess_predicted_facets_argp, 0, "Facets:", 2},
    {&tess_cli_common_argp, 0, "General:", 4},
    {0},
};

typedef struct predict_args {
    tess_predict_opts opts;
    const char *obs, *config_obs, *profile, *trace;
} predict_args;

static tess_status take_directions(int key, const char *arg, tess_predict_opts *opts)
{
    if (key == OPT_PER_FACET) opts->column_per_facet = true;
    if (key == OPT_MOSAIC) opts->selection.joins_pointings = true;
    if (key == OPT_POINTING_LIMIT)
        return tess_parse_number(arg, 1e-6, 0.9, &opts->beam.limit);
    if (key != OPT_PRIMARY_BEAM) return TESS_OK;
    opts->beam.model = arg;
    return tess_primary_beam_check_model(arg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    predict_args *args = state->input;
    tess_predict_opts *opts = &args->opts;
    tess_status status = TESS_OK;
    int64_t terms = 0;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &opts->selection;
        state->child_inputs[1] = &opts->gridding;
        state->child_inputs[2] = &opts->layout;
        state->child_inputs[3] = &opts->gridding.facets;
        return 0;
    case ARGP_KEY_ARG:
        if (args->obs) return ARGP_ERR_UNKNOWN; /* there may be one only */
        args->obs = arg;
        return 0;
    case OPT_OBS:
        args->config_obs = arg;
        break;
    case OPT_MODEL:
        opts->model = arg;
        break;
    case OPT_FIT_POL:
        status = tess_parse_integer(arg, 1, 16, &terms);
        opts->model_terms = (int)terms;
        break;
    case OPT_PER_FACET:
    case OPT_MOSAIC:
    case OPT_PRIMARY_BEAM:
    case OPT_POINTING_LIMIT:
        status = take_directions(key, arg, opts);
        break;
    case 'o':
        opts->output = arg;
        break;
    case OPT_COLUMN:
        opts->column = arg;
        break;
    case OPT_OVERWRITE:
        opts->overwrite = true;
        break;
    case OPT_PROFILE:
        args->profile = arg;
        break;
    case OPT_TRACE:
        args->trace = arg;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return tess_cli_result(state, options, key, arg, status);
}

static const struct argp argp = {options, parse, "OBS", doc, children, NULL, NULL};

/* Columns of facets are named after MODEL_DATA unless --column says otherwise. */
static tess_status check_columns(tess_predict_opts *opts)
{
    tess_status status = TESS_OK;
    if (!opts->column_per_facet) return TESS_OK;
    if (!opts->gridding.facets.regions)
        TESS_FAIL(TESS_ERR_USAGE, "--column-per-facet writes columns of --facets FILE");
    if (opts->output)
        TESS_FAIL(TESS_ERR_USAGE, "--column-per-facet adds columns to the observation; "
                                  "leave out --output");
    if (!opts->column) opts->column = "MODEL_DATA";
cleanup:
    return status;
}

static tess_status check(predict_args *args)
{
    tess_status status = TESS_OK;
    tess_predict_opts *opts = &args->opts;
    opts->obs = args->obs ? args->obs : args->config_obs;
    if (!opts->obs)
        TESS_FAIL(TESS_ERR_USAGE, "no observation given; name a UVFITS file or a "
                                  "MeasurementSet");
    if (opts->selection.joins_pointings && !opts->beam.model) opts->beam.model = "auto";
    if (!opts->beam.model && (opts->beam.limit < TESS_POINTING_LIMIT ||
                              opts->beam.limit > TESS_POINTING_LIMIT))
        TESS_FAIL(TESS_ERR_USAGE,
                  "--pointing-limit needs a beam; use --primary-beam, as "
                  "in --primary-beam auto");
    if (!opts->selection.joins_pointings && opts->selection.field &&
        (strchr(opts->selection.field, ',') ||
         strcasecmp(opts->selection.field, "all") == 0))
        TESS_FAIL(TESS_ERR_USAGE,
                  "--field %s: one field at a time is predicted without --mosaic",
                  opts->selection.field);
    TESS_TRY(tess_check_gridding(&opts->gridding));
    TESS_TRY(tess_facet_args_check(&opts->gridding.facets, false));
    if (opts->gridding.facets.number > 0)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--facets %lld makes facets of an image; predict with the region "
                  "file that tessera image has written beside it",
                  (long long)opts->gridding.facets.number);
    TESS_TRY(check_columns(opts));
    if (!opts->model && !opts->pixels)
        TESS_FAIL(TESS_ERR_USAGE, "no model image given; use --model MODEL.fits");
    if (opts->model && opts->pixels)
        TESS_FAIL(TESS_ERR_USAGE, "--model and a model in memory exclude each other");
    if (!opts->output && !opts->column && !opts->take)
        TESS_FAIL(TESS_ERR_USAGE, "no output given; use -o OUT.uvfits, or --column "
                                  "MODEL_DATA for a MeasurementSet");
    if (opts->output && opts->column)
        TESS_FAIL(TESS_ERR_USAGE, "--output and --column exclude each other");
    if ((opts->output && !*opts->output) || (opts->column && !*opts->column))
        TESS_FAIL(TESS_ERR_USAGE, "the name of the output is empty");
cleanup:
    return status;
}

/* Checks that each output can be written, and is no input and no other output. */
static tess_status check_outputs(const predict_args *args)
{
    tess_status status = TESS_OK;
    const tess_predict_opts *opts = &args->opts;
    const tess_gridding *gridding = &opts->gridding;
    const char *const made[] = {opts->output, args->profile, args->trace,
                                gridding->write_gcf};
    if (args->profile) TESS_TRY(tess_out_check_target(args->profile, opts->overwrite));
    if (args->trace) TESS_TRY(tess_out_check_target(args->trace, opts->overwrite));
    if (gridding->write_gcf)
        TESS_TRY(tess_out_check_target(gridding->write_gcf, opts->overwrite));
    for (size_t k = 0; k < sizeof made / sizeof *made; ++k) {
        TESS_TRY(tess_out_check_other(made[k], opts->obs));
        TESS_TRY(tess_out_check_other(made[k], opts->model));
        TESS_TRY(tess_out_check_other(made[k], gridding->gcf));
        if (made[k]) TESS_TRY(tess_image_check_facet_files(&gridding->facets, made[k]));
        TESS_TRY(
            tess_out_check_other(made[k], tess_primary_beam_file(opts->beam.model)));
        for (size_t j = 0; j < k; ++j)
            TESS_TRY(tess_out_check_distinct(made[k], made[j]));
    }
cleanup:
    return status;
}

/* Sets the threads, checks the outputs and starts the log. Collective. */
static tess_status prepare(tess_comm *comm, predict_args *args)
{
    tess_status status = TESS_OK, own = TESS_OK;
    if (args->opts.layout.threads == 0)
        TESS_TRY(tess_threads_default(comm, &args->opts.layout.threads));
    if (tess_comm_rank(comm) == 0) own = check_outputs(args);
    TESS_TRY(tess_comm_agree(comm, own));
    TESS_TRY(tess_job_log(comm, args->opts.layout.threads, args->opts.command_line));
cleanup:
    return status;
}

/* The direct sum over a list's sources. Collective. */
static tess_status predict_list(tess_comm *comm, const tess_predict_opts *opts,
                                tess_profile *profile)
{
    tess_status status = TESS_OK;
    tess_list_predictor *list = NULL;
    tess_predict_opts by_list = *opts;
    if (opts->gridding.backend &&
        strcmp(opts->gridding.backend, TESS_BACKEND_DEVICE) == 0)
        TESS_FAIL(TESS_ERR_USAGE, "lists of sources are summed on the processor: no "
                                  "--backend " TESS_BACKEND_DEVICE);
    if (opts->selection.has_center)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--center is where a model image lies; a list says where its sources "
                  "are: leave it out");
    status = tess_list_predictor_create(opts->model, opts->layout.threads, &list);
    TESS_TRY(tess_comm_agree(comm, status));
    const tess_block_predictor blocks = {.context = list,
                                         .kind = "the list of sources",
                                         .begin = tess_list_predictor_begin,
                                         .fill = tess_list_predictor_fill};
    by_list.blocks = &blocks;
    TESS_TRY(tess_imager_predict(comm, &by_list, profile));
cleanup:
    tess_list_predictor_destroy(list);
    return status;
}

/* Collective. */
static tess_status predict(tess_comm *comm, const tess_predict_opts *opts,
                           tess_profile *profile)
{
    tess_status status = TESS_OK;
    bool is_list = false;
    tess_progress_run(true);
    if (opts->model) TESS_TRY(tess_source_list_is(comm, opts->model, &is_list));
    if (is_list && opts->selection.joins_pointings)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--mosaic is of model images; tessera draw makes one of "
                  "a list of sources");
    if (is_list)
        TESS_TRY(predict_list(comm, opts, profile));
    else if (opts->selection.joins_pointings)
        TESS_TRY(tess_imager_predict_mosaic(comm, opts, profile));
    else
        TESS_TRY(tess_imager_predict(comm, opts, profile));
cleanup:
    tess_progress_run(false);
    return status;
}

/* The last lines of the log. Collective. */
static tess_status tell_end(tess_comm *comm, const tess_predict_opts *opts,
                            const tess_profile *profile)
{
    tess_status status = TESS_OK;
    int64_t num_vis = profile->visibilities;
    double seconds = tess_time_now() - profile->start_s;
    TESS_TRY(tess_comm_allreduce_i64(comm, &num_vis, 1, TESS_SUM));
    TESS_TRY(tess_comm_allreduce_f64(comm, &seconds, 1, TESS_MAX));
    if (opts->model) tess_words_tell("model", "%s", opts->model);
    tess_words_tell("visibilities", "%lld predicted", (long long)num_vis);
    tess_words_tell("seconds", "%.2f", seconds);
    if (opts->column_per_facet)
        tess_words_tell("data columns", "%s_FACET of each facet, of %s", opts->column,
                        opts->obs);
    else if (opts->column)
        tess_words_tell("data column", "%s of %s", opts->column, opts->obs);
    else if (opts->output)
        tess_words_tell("files", "%s", opts->output);
cleanup:
    return status;
}

tess_status tess_cmd_predict(tess_comm *comm, int argc, char **argv)
{
    return tess_cmd_predict_memory(comm, argc, argv, &(tess_predict_memory){0});
}

tess_status tess_cmd_predict_noted(tess_comm *comm, int argc, char **argv,
                                   const tess_cli_origin *origin)
{
    const tess_predict_memory memory = {.notes = origin ? origin->notes : NULL};
    return tess_cmd_predict_memory(comm, argc, argv, &memory);
}

tess_status tess_cmd_predict_memory(tess_comm *comm, int argc, char **argv,
                                    const tess_predict_memory *memory)
{
    tess_status status = TESS_OK;
    tess_profile profile;
    predict_args args = {.opts = {.beam.limit = TESS_POINTING_LIMIT,
                                  .pixels = memory->pixels,
                                  .take = memory->take,
                                  .take_context = memory->take_context}};
    tess_cli cli = {0};
    char *command_line = NULL;
    tess_profile_start(&profile);
    TESS_TRY(tess_cli_parse(comm, &argp, argc, argv, &args, &cli));
    if (cli.help) goto cleanup;
    TESS_TRY(tess_forced_take(comm, &args.opts.layout));
    TESS_TRY(check(&args));
    command_line = tess_cli_command_line(argc, argv);
    args.opts.gridding.overwrite_gcf = args.opts.overwrite;
    args.opts.command_line = command_line ? command_line : "tessera predict";
    TESS_TRY(prepare(comm, &args));
    tess_job_log_notes(memory->notes);
    profile.wants_energy = args.profile != NULL;
    if (args.trace) TESS_TRY(tess_comm_agree(comm, tess_trace_create(&profile.trace)));
    TESS_TRY(predict(comm, &args.opts, &profile));
    TESS_TRY(tess_profile_summary(comm, &profile));
    TESS_TRY(tell_end(comm, &args.opts, &profile));
    if (args.profile)
        TESS_TRY(tess_profile_write(comm, &profile, args.profile, args.opts.overwrite));
    if (args.trace)
        TESS_TRY(tess_trace_write(comm, &profile, args.trace, args.opts.overwrite));
cleanup:
    tess_trace_destroy(profile.trace);
    tess_free(command_line);
    tess_cli_free(&cli);
    return status;
}
