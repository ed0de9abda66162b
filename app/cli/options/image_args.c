/* Parses the options of tessera image and tessera plan, and checks those that can be
 * checked without data. */
#define _GNU_SOURCE
#include "tess_image_args.h"

#include <errno.h>
#include <float.h>
#include <string.h>

#include "groups.h"
#include "image_needs.h"
#include "job.h"
#include "options.h"
#include "tess_beam_models.h"
#include "tess_channels.h"
#include "tess_const.h"
#include "tess_fits.h"
#include "tess_forced.h"
#include "tess_grid.h"
#include "tess_imager.h"
#include "tess_mem.h"
#include "tess_out_file.h"
#include "tess_primary_beam.h"
#include "tess_threads.h"

enum {
    OPT_SIZE = 0x100,
    OPT_SCALE,
    OPT_SHIFT,
    OPT_WEIGHT,
    OPT_RANK_FILTER,
    OPT_RANK_CELLS,
    OPT_DENSITY,
    OPT_DENSITY_FRAME,
    OPT_HAND_WEIGHT,
    OPT_TAPER,
    OPT_TAPER_AT,
    OPT_TUKEY,
    OPT_INNER_TUKEY,
    OPT_EDGE,
    OPT_EDGE_TUKEY,
    OPT_PADDING,
    OPT_SUPER_WEIGHT,
    OPT_DENSITY_BOX,
    OPT_CUT_CELLS,
    OPT_STORE_WEIGHTS,
    OPT_STOKES,
    OPT_CHANNELS_OUT,
    OPT_INTERVALS_OUT,
    OPT_CUBE,
    OPT_NO_PSF,
    OPT_OVERWRITE,
    OPT_PREVIEW,
    OPT_REPRODUCIBLE,
    OPT_CHECKPOINT,
    OPT_CHECKPOINT_EVERY,
    OPT_MAX_TIME,
    OPT_RESUME,
    OPT_SUBTRACT,
    OPT_SUBTRACT_POL,
    OPT_UVCONTSUB,
    OPT_LINE_CHANNELS,
    OPT_PRIMARY_BEAM,
    OPT_PBCOR,
    OPT_PB_LIMIT,
    OPT_MOSAIC,
    OPT_POINTING_LIMIT,
    OPT_DUMP_STAGES,
    OPT_SCRATCH,
    OPT_PROFILE,
    OPT_TRACE,
    OPT_AT_GAPS,
    OPT_SPLITS,
    OPT_WSCLEAN_FILES,
    OPT_DIRTY_AS_IMAGE,
    OPT_OBS,
};

static const struct argp_option image_options[] = {
    {NULL, 0, NULL, 0, "Images:", 1},
    {"output", 'o', "NAME", 0, "Beginning of the names of all files written", 1},
    {"size", OPT_SIZE, "N[,M]", 0, "Pixels in x and y", 1},
    {"scale", OPT_SCALE, "ANGLE", 0,
     "Size of a pixel, like 1.5asec (units uas, mas, asec, amin, deg, rad)", 1},
    {"shift", OPT_SHIFT, "RA,DEC", OPTION_HIDDEN,
     "Move the middle of the image to this position, in the tangent plane of the phase "
     "centre, as WSClean does (--center moves the tangent plane, too)",
     1},
    {"stokes", OPT_STOKES, "LIST", 0,
     "Images to make: I, IQUV, XX,YY, RR,LL ... (default I)", 1},
    {"channels-out", OPT_CHANNELS_OUT, "N", 0,
     "Image N groups of channels one by one, and their mean (default 1)", 1},
    {"gap-channel-division", OPT_AT_GAPS, NULL, OPTION_HIDDEN,
     "Part these groups at the largest gaps between channels", 1},
    {"channel-division-frequencies", OPT_SPLITS, "LIST", OPTION_HIDDEN,
     "Part the channels at these frequencies first, like 1.1GHz,1.3GHz", 1},
    {"intervals-out", OPT_INTERVALS_OUT, "N", 0,
     "Image N spans of time one by one (default 1)", 1},
    {"cube", OPT_CUBE, NULL, 0,
     "Write the output channels and Stokes parameters of each kind of image into one "
     "file, NAME-cube-KIND.fits, with a table of beams",
     1},
    {"subtract", OPT_SUBTRACT, "MODEL.fits", 0,
     "Subtract the visibilities of this model first: an image, a cube, or the NAME of "
     "the models of tessera image -o NAME",
     1},
    {"subtract-spectral-pol", OPT_SUBTRACT_POL, "N", 0,
     "Subtract a polynomial of N terms through the model's channels (default: to each "
     "channel of the data the nearest)",
     1},
    {"uvcontsub", OPT_UVCONTSUB, "ORDER", 0,
     "Subtract the continuum: a polynomial of this order in frequency, which is fitted "
     "to each row of each spectral window without --line-channels, less the model of "
     "--subtract if there is one",
     1},
    {"line-channels", OPT_LINE_CHANNELS, "LIST", 0,
     "Channels with lines, which --uvcontsub does not fit: like 10~20;30~40 in every "
     "spectral window, 0:10~20;30~40,1:5~9, or 1420.1~1420.9MHz; or none",
     1},
    {"no-psf", OPT_NO_PSF, NULL, 0, "Do not make the point spread function", 1},
    {"preview", OPT_PREVIEW, NULL, 0, "Also write each image and PSF as PNG", 1},
    {"overwrite", OPT_OVERWRITE, NULL, 0, "Replace existing output", 1},
    {"reproducible", OPT_REPRODUCIBLE, NULL, 0,
     "Make images that do not differ in a single bit on any number of ranks and "
     "threads of one kind of processor, or of GPU; takes a little longer",
     1},
    {NULL, 0, NULL, 0, "Weighting:", 2},
    {"weight", OPT_WEIGHT, "natural|uniform|briggs:R", 0,
     "Weighting of the visibilities (default briggs:0)", 2},
    {"weighting-rank-filter", OPT_RANK_FILTER, "X", 0,
     "Limit weights to X times their mean (default 0, off)", 2},
    {"weighting-rank-filter-size", OPT_RANK_CELLS, "N", OPTION_HIDDEN,
     "Cells a side that this mean is taken over (default 16)", 2},
    {"density", OPT_DENSITY, "own|first", 0,
     "Weigh each of several Stokes parameters by the density of its own visibilities, "
     "or all by that of the first listed, as WSClean does (default own)",
     2},
    {"density-frame", OPT_DENSITY_FRAME, "FRAME", OPTION_HIDDEN,
     "Find the cells of the density by frequencies in the frame topo, lsrk, bary or "
     "galacto; CASA does so in lsrk (default topo)",
     2},
    {"hand-weight", OPT_HAND_WEIGHT, "smallest|mean", OPTION_HIDDEN,
     "Weigh a Stokes parameter by the smallest weight of the correlations that it is "
     "made of, as WSClean does, or all by the mean weight of the parallel hands, as "
     "CASA does (default smallest)",
     2},
    {"taper-gaussian", OPT_TAPER, "FWHM", 0,
     "Multiply weights by the transform of a Gaussian, like 10asec or "
     "10asec,8asec,30deg: for a PSF that is about as wide, or wider",
     2},
    {"taper-at", OPT_TAPER_AT, "cells|visibilities", OPTION_HIDDEN,
     "Take that Gaussian at the corner of a visibility's cell, as WSClean does, or at "
     "the visibility itself, as CASA does (default cells)",
     2},
    {"taper-tukey", OPT_TUKEY, "LAMBDA", OPTION_HIDDEN,
     "Let weights fall to 0 over so many wavelengths before the end of --uvrange", 2},
    {"taper-inner-tukey", OPT_INNER_TUKEY, "LAMBDA", OPTION_HIDDEN,
     "Let weights rise from 0 over so many wavelengths from the beginning of --uvrange "
     "(or 0)",
     2},
    {"taper-edge", OPT_EDGE, "LAMBDA", OPTION_HIDDEN,
     "Leave cells of the density out that are within so many wavelengths of the edge "
     "of "
     "their grid, which ends at half a wave per pixel",
     2},
    {"taper-edge-tukey", OPT_EDGE_TUKEY, "LAMBDA", OPTION_HIDDEN,
     "Let weights rise from 0 over so many wavelengths from there inwards", 2},
    {"padding", OPT_PADDING, "F", OPTION_HIDDEN,
     "Cells of the density for a pixel of the image, of each side (default 1.2). The "
     "grid of visibilities is padded as the accuracy needs it, whatever this says",
     2},
    {"super-weight", OPT_SUPER_WEIGHT, "F", OPTION_HIDDEN,
     "Make cells of the density so many times as wide (default 1)", 2},
    {"density-box", OPT_DENSITY_BOX, "N", OPTION_HIDDEN,
     "Take the density of a cell from the square that reaches N cells beyond it on "
     "each "
     "side, as CASA's superuniform weights do (default 0)",
     2},
    {"cut-cells", OPT_CUT_CELLS, NULL, OPTION_HIDDEN,
     "Leave cells of the density that are not within --uvrange out, after it has been "
     "made of all visibilities, in place of visibilities, as WSClean does",
     2},
    {"store-imaging-weights", OPT_STORE_WEIGHTS, NULL, 0,
     "Write the factor by which each visibility's weight is multiplied into the column "
     "IMAGING_WEIGHT_SPECTRUM of the MeasurementSets",
     2},
    {NULL, 0, NULL, 0, "Primary beam:", 3},
    {"primary-beam", OPT_PRIMARY_BEAM, "MODEL", 0,
     "Write the primary beam, NAME-pb.fits, and its square, NAME-weight-pb.fits (of a "
     "mosaic NAME-weight.fits): auto (of "
     "the telescope), meerkat, vla, atca, gmrt, alma, aca, airy:DIAMETER[,BLOCKAGE] "
     "[m], poly:FILE, a FITS file, or for a mosaic antennas:FILE",
     3},
    {"pbcor", OPT_PBCOR, NULL, 0,
     "Also write the images divided by the primary beam: NAME-image-pb.fits ...", 3},
    {"pb-limit", OPT_PB_LIMIT, "LEVEL", 0,
     "Where the primary beam is below this, these images are NaN (default 0.2); all "
     "images of a mosaic are, and are not cleaned there",
     3},
    {"mosaic", OPT_MOSAIC, NULL, 0,
     "Make one image of all pointings, weighted by their primary beams (that of the "
     "telescope unless --primary-beam names another), around the mean of the pointings "
     "or --center; images in true flux are written, too: NAME-image-pb.fits ...",
     3},
    {"pointing-limit", OPT_POINTING_LIMIT, "LEVEL", 0,
     "A pointing of a mosaic counts where its primary beam is at least this (default "
     "0.02)",
     3},
    {NULL, 0, NULL, 0, "Data larger than memory, and runs longer than a job:", 4},
    {"scratch", OPT_SCRATCH, "DIR", 0,
     "Keep data that do not fit into memory in unnamed files in this folder, on a disk "
     "of each node, instead of reading the observations again in every pass, where "
     "that "
     "is the faster way",
     4},
    {"checkpoint", OPT_CHECKPOINT, "DIR", 0,
     "When stopped before the end (by SIGUSR1, SIGTERM, --max-time, or the end of a "
     "Slurm job), save to this folder, which all nodes see, what has been done, and "
     "exit with status 75; the last two that were saved are kept",
     4},
    {"checkpoint-every", OPT_CHECKPOINT_EVERY, "TIME", 0,
     "Save it now and then too, like 10min, for when the run is killed", 4},
    {"resume", OPT_RESUME, NULL, 0,
     "Continue from what is saved in DIR, if anything, on any number of ranks; the "
     "other options and the observations must be the same",
     4},
    {"max-time", OPT_MAX_TIME, "TIME", 0,
     "Stop so that the run ends within this time, like 8h (default the end of the "
     "Slurm job less a minute)",
     4},
    {NULL, 0, NULL, 0, "What a run did:", 5},
    {"profile", OPT_PROFILE, "FILE.json", 0,
     "Write seconds, bytes and visibilities per rank and stage", 5},
    {"trace", OPT_TRACE, "FILE.json", 0,
     "Write when each rank and thread did what, in Chrome's trace format (for "
     "Perfetto)",
     5},
    {"dump-stages", OPT_DUMP_STAGES, "DIR", OPTION_HIDDEN,
     "Write what each stage of each output made to this folder, for tessera compare",
     5},
    {"wsclean-files", OPT_WSCLEAN_FILES, NULL, OPTION_HIDDEN,
     "Write the files that WSClean writes: the PSF of the first Stokes parameter "
     "alone, "
     "as NAME-psf.fits, without --niter each dirty image also as NAME-image.fits, and "
     "with --horizon-mask NAME-horizon-mask.fits",
     5},
    {"dirty-as-image", OPT_DIRTY_AS_IMAGE, NULL, OPTION_HIDDEN,
     "Without --niter: write each dirty image as NAME-image.fits alone, as WSClean "
     "does "
     "with -no-dirty",
     5},
    {"obs", OPT_OBS, "OBS...", OPTION_HIDDEN, "Observation, for --config", 0},
    {0},
};

static const struct argp_child image_children[] = {
    {&tess_selection_argp, 0, "Selection of visibilities:", 2},
    {&tess_axis_argp, 0, "Frame of frequencies, and the axis of cubes:", 3},
    {&tess_clean_argp, 0, "Cleaning:", 3},
    {&tess_gridding_argp, 0, "Gridding:", 3},
    {&tess_layout_argp, 0, "Resources:", 4},
    {&tess_facets_argp, 0, "Facets:", 3},
    {&tess_cli_common_argp, 0, "General:", 6},
    {0},
};

static tess_status add_text(const char ***list, int64_t *count, int64_t *capacity,
                            const char *text)
{
    tess_status status = TESS_OK;
    void *array = (void *)*list;
    if (tess_grow(&array, capacity, *count + 1, sizeof **list))
        TESS_FAIL(TESS_ERR_ALLOC, "list of observations");
    *list = array;
    (*list)[(*count)++] = text;
cleanup:
    return status;
}

static void set_defaults(struct argp_state *state, tess_image_args *args)
{
    tess_image_opts *opts = &args->opts;
    opts->weights.weighting = TESS_BRIGGS;
    opts->num_pol = 1;
    opts->pol[0] = 1; /* I */
    opts->channels_out = opts->intervals_out = 1;
    opts->make_psf = true;
    tess_cli_default(state, "weight", "briggs:0");
    tess_cli_default(state, "weighting-rank-filter", "0");
    tess_cli_default(state, "density", "own");
    tess_cli_default(state, "stokes", "I");
    tess_cli_default(state, "channels-out", "1");
    tess_cli_default(state, "intervals-out", "1");
    opts->beside.primary_beam.limit = TESS_PB_LIMIT;
    tess_cli_default(state, "pb-limit", "0.2");
    opts->beside.primary_beam.pointing_limit = TESS_POINTING_LIMIT;
    tess_cli_default(state, "pointing-limit", "0.02");
    state->child_inputs[0] = &opts->selection;
    state->child_inputs[1] = state->child_inputs[2] = opts;
    state->child_inputs[3] = &opts->gridding;
    state->child_inputs[4] = &opts->layout;
    state->child_inputs[5] = &opts->gridding.facets;
}

/* Parses ascending frequencies. */
static tess_status parse_splits(const char *text, tess_channel_division *division)
{
    tess_status status = TESS_OK;
    char word[64];
    int num = 0;
    for (const char *rest = text; rest; ++num) {
        const size_t length = strcspn(rest, ",");
        snprintf(word, sizeof word, "%.*s", (int)length, rest);
        if (num == TESS_MOST_SPLITS)
            TESS_FAIL(TESS_ERR_USAGE, "more than %d frequencies", TESS_MOST_SPLITS);
        TESS_TRY(tess_parse_frequency(word, &division->split_hz[num]));
        if (num > 0 && !(division->split_hz[num] > division->split_hz[num - 1]))
            TESS_FAIL(TESS_ERR_USAGE, "'%s' are not ascending frequencies", text);
        rest = rest[length] ? rest + length + 1 : NULL;
    }
    division->num_splits = num;
cleanup:
    return status;
}

/* Parses the options whose value is a name, or that have no value. */
static bool parse_plain(int key, char *arg, tess_image_args *args)
{
    tess_image_opts *opts = &args->opts;
    switch (key) {
    case 'o':
        opts->output = arg;
        return true;
    case OPT_CUBE:
        opts->beside.cube = true;
        return true;
    case OPT_AT_GAPS:
        opts->channels.division.at_gaps = true;
        return true;
    case OPT_STORE_WEIGHTS:
        opts->beside.weights = true;
        return true;
    case OPT_NO_PSF:
        opts->make_psf = false;
        return true;
    case OPT_OVERWRITE:
        opts->overwrite = true;
        return true;
    case OPT_PREVIEW:
        opts->beside.preview = true;
        return true;
    case OPT_CHECKPOINT:
        opts->checkpoint.folder = arg;
        return true;
    case OPT_RESUME:
        opts->checkpoint.resume = true;
        return true;
    case OPT_REPRODUCIBLE:
        opts->layout.reproducible = true;
        return true;
    case OPT_SUBTRACT:
        opts->subtract.model = arg;
        return true;
    case OPT_PBCOR:
        opts->beside.primary_beam.corrects = true;
        return true;
    case OPT_MOSAIC:
        opts->selection.joins_pointings = true;
        return true;
    case OPT_SCRATCH:
        opts->scratch = arg;
        return true;
    case OPT_CUT_CELLS:
        opts->selection.cut_cells = opts->weights.taper.cuts = true;
        return true;
    case OPT_WSCLEAN_FILES:
        opts->beside.as_wsclean = true;
        return true;
    case OPT_DIRTY_AS_IMAGE:
        opts->beside.dirty_as_image = true;
        return true;
    case OPT_DUMP_STAGES:
        opts->beside.dump_stages = arg;
        return true;
    case OPT_PROFILE:
        args->profile = arg;
        return true;
    case OPT_TRACE:
        args->trace = arg;
        return true;
    default:
        return false;
    }
}

static tess_status take_lines(const char *text, tess_selection *selection)
{
    tess_channel_list *list = tess_alloc(1, sizeof *list);
    const tess_status status = list ? tess_parse_channels(text, list) : TESS_ERR_ALLOC;
    selection->continuum.line_channels = text;
    tess_free(list);
    return status;
}

static error_t parse_image(int key, char *arg, struct argp_state *state)
{
    enum {
        MAX_OUT = 1 << 20,
        MAX_RANK_CELLS = 1 << 16,
        MAX_BOX_CELLS = 100,
        MAX_CONTINUUM_ORDER = 9
    };
    tess_image_args *args = state->input;
    tess_image_opts *opts = &args->opts;
    tess_status status = TESS_OK;
    int64_t terms = 0;
    switch (key) {
    case ARGP_KEY_INIT:
        set_defaults(state, args);
        return 0;
    case ARGP_KEY_ARG:
        status = add_text(&args->obs, &args->num_obs, &args->capacity_obs, arg);
        return status == TESS_OK ? 0 : ENOMEM;
    case OPT_OBS:
        status = add_text(&args->config_obs, &args->num_config_obs,
                          &args->capacity_config_obs, arg);
        return status == TESS_OK ? 0 : ENOMEM;
    case OPT_SIZE:
        status = tess_parse_size(arg, &opts->nx, &opts->ny);
        break;
    case OPT_SCALE:
        status = tess_parse_scale(arg, &opts->scale_rad);
        break;
    case OPT_SHIFT:
        status = tess_parse_radec(arg, &opts->selection.shift.ra_rad,
                                  &opts->selection.shift.dec_rad);
        opts->selection.shift.given = true;
        break;
    case OPT_WEIGHT:
        status =
            tess_parse_weight(arg, &opts->weights.weighting, &opts->weights.robust);
        break;
    case OPT_RANK_FILTER:
        status = tess_parse_number(arg, 0, DBL_MAX, &opts->weights.rank_filter);
        break;
    case OPT_TAPER:
        status = tess_parse_taper(arg, &opts->weights.taper);
        break;
    case OPT_TAPER_AT:
        status = tess_parse_taper_at(arg, &opts->weights.taper.at_visibilities);
        break;
    case OPT_TUKEY:
        status =
            tess_parse_number(arg, DBL_MIN, DBL_MAX, &opts->weights.taper.outer_lambda);
        break;
    case OPT_INNER_TUKEY:
        status =
            tess_parse_number(arg, DBL_MIN, DBL_MAX, &opts->weights.taper.inner_lambda);
        break;
    case OPT_RANK_CELLS:
        status = tess_parse_integer(arg, 2, MAX_RANK_CELLS, &opts->weights.rank_cells);
        break;
    case OPT_EDGE:
        status =
            tess_parse_number(arg, DBL_MIN, DBL_MAX, &opts->weights.taper.edge_lambda);
        break;
    case OPT_EDGE_TUKEY:
        status = tess_parse_number(arg, DBL_MIN, DBL_MAX,
                                   &opts->weights.taper.edge_tukey_lambda);
        break;
    case OPT_PADDING:
        status = tess_parse_number(arg, 1, 10, &opts->weights.padding);
        break;
    case OPT_SUPER_WEIGHT:
        status = tess_parse_number(arg, 0.05, 100, &opts->weights.super_weight);
        break;
    case OPT_DENSITY_BOX:
        status = tess_parse_integer(arg, 0, MAX_BOX_CELLS, &opts->weights.box_cells);
        break;
    case OPT_DENSITY:
        status = tess_parse_density(arg, &opts->weights.first_density);
        break;
    case OPT_DENSITY_FRAME:
        status = tess_spectral_frame_parse(arg, &opts->weights.density_frame);
        break;
    case OPT_HAND_WEIGHT:
        status = tess_parse_hand_weight(arg, &opts->selection.mean_weight);
        break;
    case OPT_PRIMARY_BEAM:
        opts->beside.primary_beam.model = arg;
        status = tess_beam_models_check(arg);
        break;
    case OPT_PB_LIMIT:
        status = tess_parse_number(arg, 0, 1, &opts->beside.primary_beam.limit);
        break;
    case OPT_POINTING_LIMIT:
        status = tess_parse_number(arg, 1e-6, 0.9,
                                   &opts->beside.primary_beam.pointing_limit);
        break;
    case OPT_STOKES:
        status = tess_parse_stokes(arg, opts->pol, &opts->num_pol);
        break;
    case OPT_CHECKPOINT_EVERY:
        status = tess_parse_duration(arg, &opts->checkpoint.every_s);
        break;
    case OPT_MAX_TIME:
        status = tess_parse_duration(arg, &opts->checkpoint.max_time_s);
        break;
    case OPT_CHANNELS_OUT:
        status = tess_parse_integer(arg, 1, MAX_OUT, &opts->channels_out);
        break;
    case OPT_SPLITS:
        status = parse_splits(arg, &opts->channels.division);
        break;
    case OPT_INTERVALS_OUT:
        status = tess_parse_integer(arg, 1, MAX_OUT, &opts->intervals_out);
        break;
    case OPT_SUBTRACT_POL:
        status = tess_parse_integer(arg, 1, 16, &terms);
        opts->subtract.terms = (int)terms;
        break;
    case OPT_UVCONTSUB:
        status = tess_parse_integer(arg, 0, MAX_CONTINUUM_ORDER, &terms);
        opts->selection.continuum.subtracts = true;
        opts->selection.continuum.order = (int)terms;
        break;
    case OPT_LINE_CHANNELS:
        status = take_lines(arg, &opts->selection);
        break;
    default:
        if (!parse_plain(key, arg, args)) return ARGP_ERR_UNKNOWN;
    }
    return tess_cli_result(state, image_options, key, arg, status);
}

/* ---- checks of the options together ---- */

/* Takes the observations of the command line, or else those of the --config file. */
static tess_status choose_obs(tess_image_args *args)
{
    tess_status status = TESS_OK;
    tess_image_opts *opts = &args->opts;
    const bool given = args->num_obs > 0;
    opts->obs = given ? args->obs : args->config_obs;
    const int64_t count = given ? args->num_obs : args->num_config_obs;
    if (count == 0)
        TESS_FAIL(TESS_ERR_USAGE, "no observation given; name a UVFITS file or a "
                                  "MeasurementSet");
    if (count > 100000) TESS_FAIL(TESS_ERR_USAGE, "more than 100000 observations");
    opts->num_obs = (int)count;
    for (int64_t k = 0; k < count; ++k)
        TESS_TRY(tess_cli_note(&args->cli, "obs", opts->obs[k]));
cleanup:
    return status;
}

static tess_status check_output(const tess_image_args *args)
{
    tess_status status = TESS_OK;
    const char *name = args->opts.output;
    if (args->is_plan || (args->in_memory && !name)) goto cleanup;
    if (!name || *name == '\0')
        TESS_FAIL(TESS_ERR_USAGE, "no output given; use -o NAME");
    if (name[strlen(name) - 1] == '/')
        TESS_FAIL(TESS_ERR_USAGE,
                  "--output: '%s' is a folder; add the beginning of the file names, as "
                  "in %simage",
                  name, name);
cleanup:
    return status;
}

/* Refuses an image that is larger than the memory of the whole job. */
static tess_status check_memory(tess_comm *comm, const tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    const double pixel_bytes =
        opts->gridding.accuracy < TESS_SINGLE_FILE_ACCURACY ? 8 : 4;
    const double needed = (double)opts->nx * (double)opts->ny * pixel_bytes;
    double available = 0;
    TESS_TRY(tess_job_memory(comm, opts->layout.memory_bytes, &available));
    if (needed > available)
        TESS_FAIL(TESS_ERR_RESOURCE,
                  "%lld x %lld pixels need %s for the image alone, and the job may use "
                  "%s; use a smaller --size or more nodes",
                  (long long)opts->nx, (long long)opts->ny, tess_mem_text(needed),
                  tess_mem_text(available));
cleanup:
    return status;
}

/* Refuses an image that reaches far beyond the horizon. Images of all of the sky reach
 * somewhat beyond it. */
static tess_status check_field(const tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    const int64_t longest = opts->nx > opts->ny ? opts->nx : opts->ny;
    const double edge = (double)(longest / 2) * opts->scale_rad;
    if (edge > TESS_GEOM_FARTHEST || opts->scale_rad > 1)
        TESS_FAIL(TESS_ERR_USAGE,
                  "%lld x %lld pixels of %g deg are more than twice as wide as the "
                  "half-sky (l and m within -1 and 1); use a smaller --size or --scale",
                  (long long)opts->nx, (long long)opts->ny,
                  opts->scale_rad / TESS_RAD_PER_DEG);
cleanup:
    return status;
}

/* Refuses --reproducible for w-projection on a GPU, which adds in no fixed order. */
static tess_status check_backend(tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_check_gridding(&opts->gridding));
    if (!opts->layout.reproducible || opts->gridding.w_mode != TESS_W_PROJECTION)
        return TESS_OK;
    if (strcmp(opts->gridding.backend, "auto") == 0) opts->gridding.backend = "cpu";
    if (strcmp(opts->gridding.backend, "cpu") != 0)
        TESS_FAIL(
            TESS_ERR_USAGE,
            "--reproducible with --w projection is there with --backend cpu only");
cleanup:
    return status;
}

/* Chooses the built-in costs for runs that another machine must be able to repeat or to
 * continue, and for calls of the library. */
static void choose_calibration(tess_image_args *args)
{
    tess_image_opts *opts = &args->opts;
    if (opts->layout.reproducible || opts->checkpoint.folder || args->in_memory)
        opts->layout.calibrate = false;
}

static tess_status check_checkpoint(const tess_checkpoint_opts *opts)
{
    tess_status status = TESS_OK;
    const bool more = opts->every_s > 0 || opts->max_time_s > 0 || opts->resume;
    if ((more && !opts->folder) || (opts->folder && !*opts->folder))
        TESS_FAIL(TESS_ERR_USAGE,
                  "no folder of checkpoints given; use --checkpoint DIR");
cleanup:
    return status;
}

/* Refuses options of tapers that are not there, a taper without an end, and a shortest
 * baseline that is the longest. */
static tess_status check_weights(const tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    const tess_selection *selection = &opts->selection;
    if (opts->weights.taper.at_visibilities && tess_taper_is_none(&opts->weights.taper))
        TESS_FAIL(TESS_ERR_USAGE,
                  "--taper-at says where a taper acts, and there is none; "
                  "use one, like --taper-gaussian 20asec");
    if (opts->weights.taper.outer_lambda > 0 && !(selection->uv_max_lambda > 0))
        TESS_FAIL(TESS_ERR_USAGE,
                  "--taper-tukey ends where --uvrange does; use --uvrange :MAX");
    if (selection->uvw_max_m > 0 && selection->uvw_min_m >= selection->uvw_max_m)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--minuvw-m is not below --maxuvw-m: there are no such baselines");
cleanup:
    return status;
}

/* A model of lines alone is not what the data are calibrated by, which have the
 * continuum, too. */
static tess_status check_continuum(const tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    const tess_continuum_choice *choice = &opts->selection.continuum;
    if (!choice->subtracts && choice->line_channels)
        TESS_FAIL(TESS_ERR_USAGE, "--line-channels is for --uvcontsub ORDER, like "
                                  "--uvcontsub 1");
    if (!choice->subtracts) return TESS_OK;
    if (!choice->line_channels)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--uvcontsub needs --line-channels LIST, the channels with lines, "
                  "which it does not fit; or --line-channels none");
    if (opts->clean.update_model || opts->clean.only_model)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--uvcontsub: %s would write a model without the continuum of the "
                  "data; image without --uvcontsub to calibrate",
                  opts->clean.only_model ? "--predict-models" : "--update-model");
cleanup:
    return status;
}

/* WSClean has no cubes. */
static tess_status check_cube(const tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    if (opts->beside.cube && opts->beside.as_wsclean)
        TESS_FAIL(TESS_ERR_USAGE, "--cube and --wsclean-files exclude each other");
cleanup:
    return status;
}

/* Lets the automatic mask of a mosaic grow for longer. The noise that is measured first
 * is that of sidelobes of wide sources, which mosaics are made of. A mask that ends at
 * a multiple of this noise has their bright parts alone. */
static void choose_mask_rounds(tess_image_opts *opts)
{
    enum { ROUNDS_OF_MOSAIC = 10 };
    if (opts->selection.joins_pointings && !opts->clean.rounds_given)
        opts->clean.minor.mask_rounds = ROUNDS_OF_MOSAIC;
}

/* Takes the telescope's beam for a mosaic, unless another is given. Antennas may differ
 * in mosaics alone. */
static tess_status check_beam(tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    tess_beam_correction *beam = &opts->beside.primary_beam;
    if (opts->selection.joins_pointings) {
        if (!beam->model) beam->model = "auto";
        return TESS_OK;
    }
    if (beam->pointing_limit < TESS_POINTING_LIMIT ||
        beam->pointing_limit > TESS_POINTING_LIMIT)
        TESS_FAIL(TESS_ERR_USAGE, "--pointing-limit is for pointings of a --mosaic");
    if (beam->corrects && !beam->model)
        TESS_FAIL(TESS_ERR_USAGE, "--pbcor needs a beam; use --primary-beam, as in "
                                  "--primary-beam auto");
    if (beam->model) TESS_TRY(tess_primary_beam_check_model(beam->model));
cleanup:
    return status;
}

/* What a call of a session cannot have, in place of hints at options that sessions
 * refuse. */
static tess_status check_session(const tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    const tess_clean_choice *clean = &opts->clean;
    if (clean->minor.niter == 0 && clean->needs_niter)
        TESS_FAIL(TESS_ERR_USAGE,
                  "in a session, --%s is for the call that cleans, which needs --niter "
                  "N, like --niter 100000",
                  clean->needs_niter);
    if (clean->pb_mask > 0)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--pb-mask is for tessera image, not for a session; of a mosaic, "
                  "--pb-limit says which pixels are cleaned");
    if (opts->beside.primary_beam.corrects && !opts->selection.joins_pointings)
        TESS_FAIL(
            TESS_ERR_USAGE,
            "in a session, --pbcor needs --mosaic; only tessera image makes beams "
            "of other images");
cleanup:
    return status;
}

static tess_status check(tess_comm *comm, tess_image_args *args)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = &args->opts;
    TESS_TRY(choose_obs(args));
    choose_mask_rounds(&args->opts);
    if (args->in_session) TESS_TRY(check_session(opts));
    TESS_TRY(check_beam(&args->opts));
    TESS_TRY(check_output(args));
    if (opts->clean.only_model && opts->output)
        TESS_TRY(tess_imager_take_model_size(comm, &args->opts));
    if (opts->nx == 0) TESS_FAIL(TESS_ERR_USAGE, "no image size given; use --size N");
    if (!(opts->scale_rad > 0))
        TESS_FAIL(TESS_ERR_USAGE, "no pixel size given; use --scale ANGLE, as in "
                                  "--scale 1.5asec (tessera info suggests one)");
    if (!args->is_plan) TESS_TRY(check_memory(comm, opts));
    TESS_TRY(check_field(opts));
    TESS_TRY(check_weights(opts));
    TESS_TRY(check_backend(&args->opts));
    TESS_TRY(check_checkpoint(&opts->checkpoint));
    TESS_TRY(check_cube(opts));
    TESS_TRY(check_continuum(opts));
    TESS_TRY(tess_facet_args_check(&opts->gridding.facets, args->in_session));
    args->opts.gridding.facets.num_sets = opts->num_obs;
    TESS_TRY(tess_axis_args_check(comm, &args->opts));
    TESS_TRY(tess_clean_args_check(&args->opts, args->is_plan));
    TESS_TRY(image_needs_check(args));
    choose_calibration(args);
cleanup:
    return status;
}

/* Checks that each file beside the images can be written, and is no input and no other
 * output. */
static tess_status check_beside(const tess_image_args *args)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = &args->opts;
    for (size_t k = 0; k < sizeof opts->beside.reserved / sizeof *opts->beside.reserved;
         ++k) {
        const char *path = opts->beside.reserved[k];
        if (path) TESS_TRY(tess_image_check_output(opts, path, args->overwrite));
        for (size_t j = 0; j < k; ++j)
            TESS_TRY(tess_out_check_distinct(path, opts->beside.reserved[j]));
    }
cleanup:
    return status;
}

/* Lists the files beside the images. `tessera plan` writes the profile only. */
static void choose_beside(tess_image_args *args)
{
    tess_image_opts *opts = &args->opts;
    if (args->is_plan) args->trace = opts->gridding.write_gcf = NULL;
    /* A run that continues may have written these files before it stopped. */
    args->overwrite = opts->overwrite || opts->checkpoint.resume;
    opts->gridding.overwrite_gcf = args->overwrite;
    opts->beside.reserved[0] = args->profile;
    opts->beside.reserved[1] = args->trace;
    opts->beside.reserved[2] = opts->gridding.write_gcf;
}

tess_status tess_image_args_parse(tess_comm *comm, const char *doc, int argc,
                                  char **argv, tess_image_args *args)
{
    tess_status status = TESS_OK;
    const struct argp argp = {.options = image_options,
                              .parser = parse_image,
                              .args_doc = "OBS...",
                              .doc = doc,
                              .children = image_children};
    TESS_TRY(tess_cli_parse(comm, &argp, argc, argv, args, &args->cli));
    if (args->cli.help) goto cleanup;
    TESS_TRY(tess_forced_take(comm, &args->opts.layout));
    TESS_TRY(check(comm, args));
    choose_beside(args);
    const bool first = tess_comm_rank(comm) == 0;
    TESS_TRY(tess_comm_agree(comm, first ? check_beside(args) : TESS_OK));
    if (args->opts.layout.threads == 0)
        TESS_TRY(tess_threads_default(comm, &args->opts.layout.threads));
    args->command_line = tess_cli_command_line(argc, argv);
    if (args->command_line)
        args->used_options = tess_cli_used_text(&args->cli, args->command_line);
    if (!args->used_options)
        status = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                   "list of options");
    TESS_TRY(tess_comm_agree(comm, status));
    args->opts.beside.command_line = args->command_line;
    args->opts.beside.used_options = args->used_options;
cleanup:
    return status;
}

void tess_image_args_free(tess_image_args *args)
{
    tess_imager_drop_axis(&args->opts);
    tess_cli_free(&args->cli);
    tess_free((void *)args->obs);
    tess_free((void *)args->config_obs);
    tess_free(args->command_line);
    tess_free(args->used_options);
    *args = (tess_image_args){0};
}
