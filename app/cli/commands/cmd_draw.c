/* tessera draw: parses the options, and draws a list of sources as an image. */
#define _GNU_SOURCE
#include <argp.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "groups.h"
#include "option_rules.h"
#include "options.h"
#include "tess_cli.h"
#include "tess_source_list.h"
#include "tess_subcommands.h"

static const char doc[] =
    "Draw a list of sources, as DP3 and WSClean write it, as a FITS image in Jy/pixel, "
    "which tessera predict reads; with a beam, in Jy/beam."
    "\v"
    "A point between pixels becomes a sinc function below a window of 64 pixels, so "
    "that its visibilities are right up to 0.9 of the longest baselines that pixels of "
    "this size sample. With --terms the images are those of the spectra's terms in "
    "(f/F - 1)^k, F being --freq, by the names OUT-term-0.fits ...\n\n"
    "Examples:\n"
    "  tessera draw sources.txt -o sky.fits --like out-image.fits\n"
    "  tessera draw sources.txt -o sky.fits --size 4096 --scale 1.5asec --obs obs.ms\n"
    "  tessera draw sources.txt -o sky.fits --size 4096 --scale 1.5asec \\\n"
    "      --center 4h00m00s,-30d00m00s --freq 1.28GHz";

enum {
    OPT_LIKE = 0x100,
    OPT_SIZE,
    OPT_SCALE,
    OPT_CENTER,
    OPT_OBS,
    OPT_FIELD,
    OPT_FREQ,
    OPT_BANDWIDTH,
    OPT_STOKES,
    OPT_TERMS
};

static const struct argp_option options[] = {
    {"like", OPT_LIKE, "IMAGE.fits", 0,
     "Draw pixels at the places of this image's, at its frequency (of a cube, the "
     "first)",
     0},
    {"size", OPT_SIZE, "N[,M]", 0, "Pixels in x and y", 0},
    {"scale", OPT_SCALE, "ANGLE", 0, "Size of a pixel, like 1.5asec", 0},
    {"center", OPT_CENTER, "RA,DEC", 0, "Centre of the image", 0},
    {"obs", OPT_OBS, "OBS", 0,
     "Centre the image on the phase centre of this observation, and draw it for its "
     "band, unless --freq is given",
     0},
    {"field", OPT_FIELD, "F", 0, "Take this field of the observation", 0},
    {"freq", OPT_FREQ, "FREQ", 0, "Frequency, like 1.28GHz", 0},
    {"bandwidth", OPT_BANDWIDTH, "FREQ", 0,
     "Width of the band, over which spectra are averaged (default: that of --like or "
     "--obs)",
     0},
    {"stokes", OPT_STOKES, "I|Q|U|V", 0, "Which of the fluxes (default I)", 0},
    {"terms", OPT_TERMS, "N", 0, "Draw N terms of the spectra, an image for each", 0},
    {0},
};

static const struct argp_child children[] = {
    {&restore_argp, 0, "Drawing:", 1},
    {&tess_cli_common_argp, 0, "General:", 4},
    {0},
};

typedef struct given {
    restore_args args;
    tess_draw_opts opts;
    bool has_center;
} given;

static tess_status take_size(const tess_option_rule *rule, const char *text,
                             void *value)
{
    given *input = value;
    (void)rule;
    return tess_parse_size(text, &input->opts.nx, &input->opts.ny);
}

static tess_status take_center(const tess_option_rule *rule, const char *text,
                               void *value)
{
    given *input = value;
    (void)rule;
    input->has_center = true;
    return tess_parse_radec(text, &input->opts.ra_rad, &input->opts.dec_rad);
}

static tess_status take_freq(const tess_option_rule *rule, const char *text,
                             void *value)
{
    (void)rule;
    return tess_parse_frequency(text, value);
}

static const char *const stokes[] = {"", "I", "Q", "U", "V", NULL};

#define AT(member) offsetof(given, opts.member)

static const tess_option_rule rules[] = {
    {OPT_LIKE, tess_take_text, .offset = AT(like)},
    {OPT_SIZE, take_size, .offset = 0},
    {OPT_SCALE, tess_take_scale, .offset = AT(scale_rad)},
    {OPT_CENTER, take_center, .offset = 0},
    {OPT_OBS, tess_take_text, .offset = AT(obs)},
    {OPT_FIELD, tess_take_text, .offset = AT(field)},
    {OPT_FREQ, take_freq, .offset = AT(freq_hz)},
    {OPT_BANDWIDTH, take_freq, .offset = AT(bandwidth_hz)},
    {OPT_STOKES, tess_take_word, .offset = AT(stokes), .min = 1, .words = stokes},
    {OPT_TERMS, tess_take_int, .offset = AT(num_terms), .min = 1,
     .max = TESS_SOURCE_LIST_TERMS},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    given *input = state->input;
    tess_status status;
    if (key == ARGP_KEY_INIT) {
        state->child_inputs[0] = &input->args;
        return 0;
    }
    if (key == ARGP_KEY_ARG && !input->opts.list) {
        input->opts.list = arg;
        return 0;
    }
    if (!tess_option_take(rules, key, arg, input, &status)) return ARGP_ERR_UNKNOWN;
    return tess_cli_result(state, options, key, arg, status);
}

static const struct argp argp = {options, parse, "LIST", doc, children, NULL, NULL};

static tess_status check(given *input)
{
    tess_status status = TESS_OK;
    tess_draw_opts *opts = &input->opts;
    if (!opts->list)
        TESS_FAIL(TESS_ERR_USAGE, "no list of sources given; name a text file");
    const bool has_place = input->has_center || opts->obs;
    const bool has_pixels = opts->nx > 0 || opts->scale_rad > 0 || has_place;
    if (opts->like && (has_pixels || opts->freq_hz > 0))
        TESS_FAIL(TESS_ERR_USAGE,
                  "--like gives the pixels and the frequency; leave out --size, "
                  "--scale, --center, --obs and --freq");
    if (!opts->like && !(opts->nx > 0 && opts->scale_rad > 0 && has_place))
        TESS_FAIL(TESS_ERR_USAGE,
                  "--size, --scale, and --center or --obs are needed, or --like "
                  "IMAGE.fits");
    if (input->has_center && opts->obs)
        TESS_FAIL(TESS_ERR_USAGE, "--center and --obs exclude each other");
    if (opts->field && !opts->obs)
        TESS_FAIL(TESS_ERR_USAGE, "--field is that of --obs OBS");
    if (opts->bandwidth_hz > 0 && !(opts->freq_hz > 0) && !opts->like && !opts->obs)
        TESS_FAIL(TESS_ERR_USAGE, "--bandwidth is of a band around --freq FREQ, or "
                                  "that of --like or --obs");
    if (!opts->like && opts->stokes == 0) opts->stokes = 1;
    if (input->args.beam.major_rad > 0 && opts->num_terms > 1)
        TESS_FAIL(TESS_ERR_USAGE, "--terms and a beam exclude each other");
cleanup:
    return status;
}

tess_status tess_cmd_draw(tess_comm *comm, int argc, char **argv)
{
    return tess_cmd_draw_noted(comm, argc, argv, NULL);
}

tess_status tess_cmd_draw_noted(tess_comm *comm, int argc, char **argv,
                                const tess_cli_origin *origin)
{
    tess_status status = TESS_OK;
    given input = {0};
    tess_cli cli = {0};
    TESS_TRY(tess_cli_parse(comm, &argp, argc, argv, &input, &cli));
    if (cli.help) goto cleanup;
    TESS_TRY(check(&input));
    TESS_TRY(restore_args_finish(comm, argc, argv, origin, &input.args));
    input.opts.beam = input.args.beam;
    input.opts.job = input.args.job;
    TESS_TRY(tess_draw(comm, &input.opts));
cleanup:
    restore_args_free(&input.args);
    tess_cli_free(&cli);
    return status;
}
