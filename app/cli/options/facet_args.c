/* The options of facets and their calibration, of `tessera image`, `tessera plan` and
 * `tessera predict`. */
#define _GNU_SOURCE
#include "groups.h"

#include <stddef.h>
#include <string.h>

#include "option_rules.h"
#include "options.h"
#include "tess_beam_models.h"
#include "tess_cli.h"

enum {
    OPT_FACETS = 0x100,
    OPT_SOURCES,
    OPT_SEPARATION,
    OPT_SELECT,
    OPT_PSF,
    OPT_FEATHER,
    OPT_SOLUTIONS,
    OPT_BY_SET,
    OPT_SOLTABS,
    OPT_INTERPOLATION,
    OPT_ANY_DIRECTION,
    OPT_BEAM,
    OPT_BEAM_UPDATE,
    OPT_ATERMS,
    OPT_SCALAR
};

/* Which facets, and their gains. */
static const struct argp_option gain_options[] = {
    {"select-facets", OPT_SELECT, "NAME[,NAME...]", 0,
     "Only these facets, by their names in the region file", 0},
    {"facet-solutions", OPT_SOLUTIONS, "FILE[,FILE...]", 0,
     "Calibrate each facet by these h5parm files; tessera image also writes images in "
     "true flux then: NAME-image-pb.fits ...",
     0},
    {"soltabs", OPT_SOLTABS, "NAME[,NAME...]", 0,
     "Take these solution tables (default: amplitude000 and phase000, those that are "
     "there)",
     0},
    {"solution-interpolation", OPT_INTERPOLATION, "nearest|linear", 0,
     "How solutions are taken between their times and frequencies (default nearest)",
     0},
    {"any-solution-direction", OPT_ANY_DIRECTION, NULL, 0,
     "Take the nearest direction of the solutions also where it is farther from its "
     "facet than half of it; a warning tells how far",
     0},
    {"facet-beam", OPT_BEAM, "MODEL", 0,
     "Take the primary beam in the direction of each facet, beside its solutions: auto "
     "(that of the telescope), meerkat, vla, atca, gmrt, alma, aca, "
     "airy:DIAMETER[,BLOCKAGE], poly:FILE, FILE.fits (power or voltages), or "
     "antennas:FILE with a line NAMES MODEL for antennas that differ",
     0},
    {"facet-beam-update", OPT_BEAM_UPDATE, "TIME", 0,
     "Compute beams of facets that turn on the sky anew after this time (default 2min)",
     0},
    {"facet-aterms", OPT_ATERMS, "FILE", 0,
     "Take the a-terms (tec, diagonal, dldm) of a configuration of WSClean's "
     "-aterm-config in the direction of each facet, beside its solutions",
     0},
    {"scalar-visibilities", OPT_SCALAR, NULL, 0,
     "Form Stokes parameters first, and apply the mean gain of both feeds, as WSClean "
     "3.1 does: half the memory of samples; wrong where the feeds' gains differ much",
     0},
    {0},
};

static const struct argp_option options[] = {
    {"facets", OPT_FACETS, "FILE.reg|N", 0,
     "Make the image of facets: the polygons of this region file of ds9 (tessera "
     "facets makes and checks them), or around the N brightest sources, which are "
     "written to NAME-facets.reg",
     0},
    {"facet-sources", OPT_SOURCES, "LIST", 0,
     "Make the N facets around sources of this list, as DP3 and WSClean write it "
     "(default: peaks of a dirty image that is made first)",
     0},
    {"facet-separation", OPT_SEPARATION, "ANGLE", 0,
     "Least distance between sources that get one of the N facets (default: a third of "
     "the side of an average facet)",
     0},
    {"solutions-per-observation", OPT_BY_SET, NULL, 0,
     "Each OBS has solutions of its own: the first of --facet-solutions are those of "
     "the first OBS and so on, as many for each",
     0},
    {"psf-per-facet", OPT_PSF, NULL, 0,
     "Subtract components in minor loops with the PSF of their facet, with its gains, "
     "and not with one PSF",
     0},
    {"facet-feather", OPT_FEATHER, "PIXELS", 0,
     "Width of the slopes with which neighbouring facets overlap (default 1 % of the "
     "side of a square of the image's area; 0: none)",
     0},
    {0},
};

/* Those that say something of a prediction. */
static const struct argp_option predict_options[] = {
    {"facets", OPT_FACETS, "FILE.reg", 0,
     "Predict the pixels of these facets, the polygons of a region file of ds9, each "
     "with its gains",
     0},
    {0},
};

/* More facets than anybody has asked for. */
enum { MOST_FACETS = 10000 };

/* A number, or a file. */
static tess_status take_facets(const tess_option_rule *rule, const char *text,
                               void *value)
{
    tess_status status = TESS_OK;
    tess_facet_choice *choice = value;
    (void)rule;
    choice->regions = text;
    choice->number = 0;
    if (!*text) TESS_FAIL(TESS_ERR_USAGE, "the name of the region file is empty");
    if (text[strspn(text, "0123456789")] == '\0')
        TESS_TRY(tess_parse_integer(text, 1, MOST_FACETS, &choice->number));
cleanup:
    return status;
}

static tess_status take_interpolation(const tess_option_rule *rule, const char *text,
                                      void *value)
{
    tess_status status = TESS_OK;
    tess_facet_choice *choice = value;
    (void)rule;
    choice->is_linear = strcmp(text, "linear") == 0;
    if (!choice->is_linear && strcmp(text, "nearest") != 0)
        TESS_FAIL(TESS_ERR_USAGE, "'%s' is neither nearest nor linear", text);
cleanup:
    return status;
}

static tess_status take_beam(const tess_option_rule *rule, const char *text,
                             void *value)
{
    tess_status status = TESS_OK;
    (void)rule;
    TESS_TRY(tess_beam_models_check(text));
    *(const char **)value = text;
cleanup:
    return status;
}

static tess_status take_time(const tess_option_rule *rule, const char *text,
                             void *value)
{
    (void)rule;
    return tess_parse_duration(text, value);
}

/* As WSClean's -facet-beam-update. */
static const double BEAM_UPDATE_S = 120;

#define AT(member) offsetof(tess_facet_choice, member)

static const tess_option_rule rules[] = {
    {OPT_FACETS, take_facets, .offset = 0},
    {OPT_SOURCES, tess_take_text, .offset = AT(sources)},
    {OPT_SEPARATION, tess_take_scale, .offset = AT(separation_rad)},
    {OPT_SELECT, tess_take_text, .offset = AT(selected)},
    {OPT_PSF, tess_take_flag, .offset = AT(psf_per_facet)},
    {OPT_FEATHER, tess_take_number, .offset = AT(feather), .min = 0, .max = 1e5},
    {OPT_SOLUTIONS, tess_take_text, .offset = AT(solutions)},
    {OPT_BY_SET, tess_take_flag, .offset = AT(by_set)},
    {OPT_SOLTABS, tess_take_text, .offset = AT(tables)},
    {OPT_INTERPOLATION, take_interpolation, .offset = 0},
    {OPT_ANY_DIRECTION, tess_take_flag, .offset = AT(any_direction)},
    {OPT_BEAM, take_beam, .offset = AT(beam.model)},
    {OPT_BEAM_UPDATE, take_time, .offset = AT(beam.update_s), .given = AT(updates)},
    {OPT_ATERMS, tess_take_text, .offset = AT(aterms)},
    {OPT_SCALAR, tess_take_flag, .offset = AT(is_scalar)},
    {0}};

static error_t take(const struct argp_option *listed, int key, char *arg,
                    struct argp_state *state)
{
    tess_status status;
    if (!tess_option_take(rules, key, arg, state->input, &status))
        return ARGP_ERR_UNKNOWN;
    return tess_cli_result(state, listed, key, arg, status);
}

static error_t parse_gains(int key, char *arg, struct argp_state *state)
{
    return take(gain_options, key, arg, state);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    tess_facet_choice *choice = state->input;
    if (key != ARGP_KEY_INIT) return take(options, key, arg, state);
    state->child_inputs[0] = choice;
    choice->feather = -1;
    choice->beam.update_s = BEAM_UPDATE_S;
    tess_cli_default(state, "solution-interpolation", "nearest");
    return 0;
}

static const struct argp gains_argp = {.options = gain_options, .parser = parse_gains};
static const struct argp_child children[] = {{&gains_argp, 0, NULL, 0}, {0}};

const struct argp tess_facets_argp = {
    .options = options, .parser = parse, .children = children};
const struct argp tess_predicted_facets_argp = {
    .options = predict_options, .parser = parse, .children = children};

tess_status tess_facet_args_check(const tess_facet_choice *choice, bool later)
{
    tess_status status = TESS_OK;
    const bool has_solutions = choice->solutions || (later && choice->regions);
    if (choice->solutions && !choice->regions)
        TESS_FAIL(TESS_ERR_USAGE, "--facet-solutions are those of --facets FILE");
    if (choice->sources && choice->number == 0)
        TESS_FAIL(TESS_ERR_USAGE, "--facet-sources are those of --facets N");
    if (choice->separation_rad > 0 && choice->number == 0)
        TESS_FAIL(TESS_ERR_USAGE, "--facet-separation is for --facets N");
    if (choice->selected && choice->number > 0)
        TESS_FAIL(TESS_ERR_USAGE, "--select-facets names some of --facets FILE; facets "
                                  "of --facets N are named dir1, dir2 ... when they "
                                  "are made");
    if (choice->selected && !choice->regions)
        TESS_FAIL(TESS_ERR_USAGE, "--select-facets names some of --facets FILE");
    if (choice->tables && !has_solutions)
        TESS_FAIL(TESS_ERR_USAGE, "--soltabs are those of --facet-solutions FILE");
    if (choice->by_set && !has_solutions)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--solutions-per-observation is for --facet-solutions FILE,FILE");
    if (choice->psf_per_facet && !choice->regions)
        TESS_FAIL(TESS_ERR_USAGE, "--psf-per-facet is for --facets");
    if (choice->is_linear && !has_solutions)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--solution-interpolation linear is for --facet-solutions FILE");
    if (choice->any_direction && !has_solutions)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--any-solution-direction is for --facet-solutions FILE");
    if (choice->updates && !choice->beam.model)
        TESS_FAIL(TESS_ERR_USAGE, "--facet-beam-update is for --facet-beam MODEL");
    if ((choice->beam.model || choice->aterms) && !choice->regions)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--facet-beam and --facet-aterms are for --facets FILE");
    if (choice->is_scalar && !has_solutions && !tess_facet_choice_has_gains(choice))
        TESS_FAIL(TESS_ERR_USAGE, "--scalar-visibilities is for --facet-solutions FILE "
                                  "and other gains of facets");
    if (choice->feather >= 0 && !choice->regions)
        TESS_FAIL(TESS_ERR_USAGE, "--facet-feather is for --facets FILE");
cleanup:
    return status;
}
