/* tessera mosaic: parses the options, and joins images that were made one by one. */
#define _GNU_SOURCE
#include <argp.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "job.h"
#include "option_rules.h"
#include "options.h"
#include "tess_bench_list.h"
#include "tess_cli.h"
#include "tess_mem.h"
#include "tess_mosaic.h"
#include "tess_primary_beam.h"
#include "tess_subcommands.h"
#include "tess_threads.h"

static const char doc[] =
    "Join images of several pointings that were made one by one to a mosaic."
    "\v"
    "IMAGE.fits are images or cubes in Jy/beam of the same channels and Stokes "
    "parameters, as tessera, WSClean and CASA write them in a SIN projection, with "
    "North up. They are convolved to one beam, brought to the pixels of the mosaic, "
    "and averaged with the weights (primary beam / noise)^2, which give each source "
    "its flux with the least noise.\n\n"
    "The primary beam of NAME-image.fits, and of NAME-image-pb.fits, which has been "
    "divided by it, is the file NAME-pb.fits that 'tessera image --primary-beam' "
    "writes, unless --primary-beam names another. That of CASA's NAME.image.fits and "
    "NAME.image.pbcor.fits is NAME.pb.fits.\n\n"
    "Written are NAME-image.fits, of even noise, NAME-image-pb.fits, with the fluxes, "
    "NAME-pb.fits, the first over the second, and NAME-noise.fits, the noise of the "
    "second.\n\n"
    "Examples:\n"
    "  tessera mosaic p1-image.fits p2-image.fits p3-image.fits -o field\n"
    "  tessera mosaic p*-image.fits -o field --primary-beam vla --pb-limit .1\n"
    "  tessera mosaic epoch*-image.fits -o deep --primary-beam none";

enum {
    OPT_SIZE = 0x100,
    OPT_SCALE,
    OPT_CENTER,
    OPT_PRIMARY_BEAM,
    OPT_PB_LIMIT,
    OPT_NOISE,
    OPT_INTERPOLATION,
    OPT_BEAM_SIZE,
    OPT_BEAM_SHAPE,
    OPT_OVERWRITE,
    OPT_THREADS,
    OPT_REPRODUCIBLE
};

static const struct argp_option options[] = {
    {"output", 'o', "NAME", 0, "Write NAME-image.fits and the files beside it", 0},
    {"size", OPT_SIZE, "N[,M]", 0,
     "Pixels of the mosaic in x and y (default: as many as hold all images)", 0},
    {"scale", OPT_SCALE, "ANGLE", 0,
     "Size of a pixel, like 1.5asec (default: the smallest of the images)", 0},
    {"center", OPT_CENTER, "RA,DEC", 0,
     "Centre of the mosaic (default: the mean of the images' centres)", 0},
    {"primary-beam", OPT_PRIMARY_BEAM, "files|none|MODEL", 0,
     "The primary beams: files beside the images (default), none, or a model of "
     "'tessera image --primary-beam', centred on the reference pixel of each image. A "
     "model that turns on the sky is averaged over all angles",
     0},
    {"pb-limit", OPT_PB_LIMIT, "LEVEL", 0,
     "Leave out pixels of an image where its primary beam is below this (default 0.1)",
     0},
    {"noise", OPT_NOISE, "FLUX[,FLUX...]", 0,
     "Noise of each image in Jy/beam, uncorrected for its primary beam (default: "
     "1.4826 "
     "times the median absolute deviation of each plane)",
     0},
    {"interpolation", OPT_INTERPOLATION, "linear|lanczos", 0,
     "Find values between pixels from 2 x 2 pixels, or from 6 x 6 (default lanczos)",
     0},
    {"beam-size", OPT_BEAM_SIZE, "ANGLE", 0,
     "Convolve all images to a circular beam of this FWHM (default: the smallest beam "
     "that contains all of theirs)",
     0},
    {"beam-shape", OPT_BEAM_SHAPE, "MAJ,MIN,PA", 0,
     "Convolve all images to a beam of these axes and this position angle", 0},
    {"overwrite", OPT_OVERWRITE, NULL, 0, "Replace existing files", 0},
    {"threads", OPT_THREADS, "N", 0,
     "Threads per rank (default from the batch job, OMP_NUM_THREADS or the cores)", 0},
    {"reproducible", OPT_REPRODUCIBLE, NULL, 0,
     "The same pixels, bit by bit, on any number of ranks and threads", 0},
    {0},
};

static const struct argp_child children[] = {
    {&tess_cli_common_argp, 0, "General:", 4},
    {0},
};

typedef struct given {
    tess_mosaic_opts opts;
    const char **path; /* [opts.num_images]; owned */
    int64_t capacity;
    struct {
        int num;
        double value[TESS_BENCH_MOST];
    } noise;
    char *command_line; /* owned */
} given;

static tess_status take_frame_size(const tess_option_rule *rule, const char *text,
                                   void *value)
{
    given *input = value;
    (void)rule;
    return tess_parse_size(text, &input->opts.frame.nx, &input->opts.frame.ny);
}

static tess_status take_center(const tess_option_rule *rule, const char *text,
                               void *value)
{
    given *input = value;
    (void)rule;
    return tess_parse_radec(text, &input->opts.frame.ra_rad,
                            &input->opts.frame.dec_rad);
}

static tess_status take_primary_beam(const tess_option_rule *rule, const char *text,
                                     void *value)
{
    tess_status status = TESS_OK;
    (void)rule;
    if (strcmp(text, "files") != 0 && strcmp(text, "none") != 0)
        TESS_TRY(tess_primary_beam_check_model(text));
    *(const char **)value = text;
cleanup:
    return status;
}

static const char *const kernels[] = {"linear", "lanczos", NULL};

#define AT(member) offsetof(given, opts.member)

static const tess_option_rule rules[] = {
    {'o', tess_take_text, .offset = AT(output)},
    {OPT_SIZE, take_frame_size, .offset = 0},
    {OPT_SCALE, tess_take_scale, .offset = AT(frame.scale_rad)},
    {OPT_CENTER, take_center, .offset = 0, .given = AT(frame.has_center)},
    {OPT_PRIMARY_BEAM, take_primary_beam, .offset = AT(primary_beam)},
    {OPT_PB_LIMIT, tess_take_number, .offset = AT(limit), .min = 0, .max = 1},
    {OPT_INTERPOLATION, tess_take_word, .offset = AT(kernel), .words = kernels},
    {OPT_BEAM_SIZE, tess_take_beam_size, .offset = AT(beam)},
    {OPT_BEAM_SHAPE, tess_take_beam_shape, .offset = AT(beam)},
    {OPT_OVERWRITE, tess_take_flag, .offset = AT(overwrite)},
    {OPT_THREADS, tess_take_int, .offset = AT(threads), .min = 1, .max = 65536},
    {OPT_REPRODUCIBLE, tess_take_flag, .offset = AT(repeatable)},
    {0}};

/* The noise of each image, separated by commas. */
static tess_status take_noise(const char *text, given *input)
{
    tess_status status = TESS_OK;
    char *copy = tess_strdup(text), *next = copy;
    if (!copy) TESS_FAIL(TESS_ERR_ALLOC, "no memory for '%s'", text);
    input->noise.num = 0;
    while (next) {
        const char *word = strsep(&next, ",");
        if (input->noise.num == TESS_BENCH_MOST)
            TESS_FAIL(TESS_ERR_USAGE, "more than %d values", TESS_BENCH_MOST);
        TESS_TRY(tess_parse_flux(word, &input->noise.value[input->noise.num]));
        if (!(input->noise.value[input->noise.num++] > 0))
            TESS_FAIL(TESS_ERR_USAGE, "a noise has to be above 0");
    }
cleanup:
    tess_free(copy);
    return status;
}

static error_t take_path(const char *path, given *input)
{
    void *array = (void *)input->path;
    if (tess_grow(&array, &input->capacity, input->opts.num_images + 1,
                  sizeof *input->path))
        return ENOMEM;
    input->path = array;
    input->path[input->opts.num_images++] = path;
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    given *input = state->input;
    tess_status status;
    if (key == ARGP_KEY_ARG) return take_path(arg, input);
    if (key == OPT_NOISE)
        status = take_noise(arg, input);
    else if (!tess_option_take(rules, key, arg, input, &status))
        return ARGP_ERR_UNKNOWN;
    return tess_cli_result(state, options, key, arg, status);
}

static const struct argp argp = {options, parse, "IMAGE.fits...", doc, children,
                                 NULL,    NULL};

static tess_status check(given *input)
{
    tess_status status = TESS_OK;
    tess_mosaic_opts *opts = &input->opts;
    if (opts->num_images == 0)
        TESS_FAIL(TESS_ERR_USAGE, "no image given; name FITS images in Jy/beam");
    if (!opts->output || !*opts->output)
        TESS_FAIL(TESS_ERR_USAGE, "no output given; use -o NAME");
    if (input->noise.num > 0 && input->noise.num != opts->num_images)
        TESS_FAIL(TESS_ERR_USAGE, "--noise has %d values for %d images",
                  input->noise.num, opts->num_images);
    opts->path = input->path;
    if (input->noise.num > 0) opts->noise_jy = input->noise.value;
cleanup:
    return status;
}

tess_status tess_cmd_mosaic(tess_comm *comm, int argc, char **argv)
{
    tess_status status = TESS_OK;
    given input = {
        .opts = {.primary_beam = "files", .limit = 0.1, .kernel = TESS_MOSAIC_LANCZOS}};
    tess_cli cli = {0};
    TESS_TRY(tess_cli_parse(comm, &argp, argc, argv, &input, &cli));
    if (cli.help) goto cleanup;
    TESS_TRY(check(&input));
    if (input.opts.threads == 0)
        TESS_TRY(tess_threads_default(comm, &input.opts.threads));
    input.command_line = tess_cli_command_line(argc, argv);
    input.opts.command_line = input.command_line ? input.command_line : "tessera";
    TESS_TRY(tess_job_log(comm, input.opts.threads, input.opts.command_line));
    TESS_TRY(tess_mosaic(comm, &input.opts));
cleanup:
    tess_free(input.path);
    tess_free(input.command_line);
    tess_cli_free(&cli);
    return status;
}
