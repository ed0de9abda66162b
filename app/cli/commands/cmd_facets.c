/* tessera facets: parses the options, and makes, checks and draws facets. */
#define _GNU_SOURCE
#include <argp.h>
#include <stddef.h>
#include <string.h>

#include "facets_report.h"
#include "option_rules.h"
#include "options.h"
#include "tess_cli.h"
#include "tess_mem.h"
#include "tess_subcommands.h"

static const char doc[] =
    "Make facets of an image around the sources of a list, or check those of a region "
    "file of ds9. A table of the facets is printed."
    "\v"
    "FILE is a region file, whose polygons are facets, or a list of sources, as DP3 "
    "and "
    "WSClean write it. The facets of a list are the Voronoi cells of its sources in "
    "the "
    "image. Facets that overlap are refused.\n\n"
    "Solutions of an h5parm are matched by angle; a direction farther from a facet "
    "than "
    "half of it is refused.\n\n"
    "Examples:\n"
    "  tessera facets facets.reg --like out-image.fits --png facets.png\n"
    "  tessera facets sources.txt --number 20 --like out-image.fits -o facets.reg\n"
    "  tessera facets facets.reg --like out-image.fits --solutions solutions.h5\n"
    "  tessera facets facets.reg --size 8192 --scale 1.5asec \\\n"
    "      --center 4h00m00s,-30d00m00s";

enum {
    OPT_LIKE = 0x100,
    OPT_SIZE,
    OPT_SCALE,
    OPT_CENTER,
    OPT_RA,
    OPT_DEC,
    OPT_SEPARATION,
    OPT_FEATHER,
    OPT_PADDING,
    OPT_SOLUTIONS,
    OPT_SOLTABS,
    OPT_PNG,
    OPT_OVERWRITE
};

static const struct argp_option options[] = {
    {"like", OPT_LIKE, "IMAGE.fits", 0, "Take the pixels of this image", 0},
    {"size", OPT_SIZE, "N[,M]", 0, "Pixels in x and y", 0},
    {"scale", OPT_SCALE, "ANGLE", 0, "Size of a pixel, like 1.5asec", 0},
    {"center", OPT_CENTER, "RA,DEC", 0, "Centre of the image", 0},
    {"ra", OPT_RA, "RA", 0, "Right ascension of the centre", 0},
    {"dec", OPT_DEC, "DEC", 0, "Declination of the centre", 0},
    {"number", 'n', "N", 0,
     "Make facets around the N brightest sources of the list (default: all)", 0},
    {"separation", OPT_SEPARATION, "ANGLE", 0,
     "Leave out sources closer to a brighter one than this (default with --number: a "
     "third of the side of an average facet)",
     0},
    {"feather", OPT_FEATHER, "PIXELS", 0,
     "Width of the slopes of weights between facets, for which columns and rows are "
     "shown (default 0)",
     0},
    {"padding", OPT_PADDING, "FACTOR", 0,
     "Show columns and rows with this much padding (default 1)", 0},
    {"solutions", OPT_SOLUTIONS, "FILE[,FILE...]", 0,
     "Show the directions and values that facets take from these h5parm files. Without "
     "FILE, make facets around the directions of the first of them",
     0},
    {"soltabs", OPT_SOLTABS, "NAME[,NAME...]", 0,
     "Take these solution tables (default: amplitude000 and phase000, those that are "
     "there)",
     0},
    {"output", 'o', "FACETS.reg", 0, "Write the facets to this region file", 0},
    {"png", OPT_PNG, "FILE.png", 0, "Draw the facets over the image of --like", 0},
    {"overwrite", OPT_OVERWRITE, NULL, 0, "Replace existing files", 0},
    {0},
};

static const struct argp_child children[] = {
    {&tess_cli_common_argp, 0, "General:", 4},
    {0},
};

static tess_status take_size(const tess_option_rule *rule, const char *text,
                             void *value)
{
    facets_args *args = value;
    (void)rule;
    return tess_parse_size(text, &args->nx, &args->ny);
}

static tess_status take_center(const tess_option_rule *rule, const char *text,
                               void *value)
{
    facets_args *args = value;
    (void)rule;
    args->has_ra = args->has_dec = true;
    return tess_parse_radec(text, &args->ra_rad, &args->dec_rad);
}

static tess_status take_ra(const tess_option_rule *rule, const char *text, void *value)
{
    (void)rule;
    return tess_parse_ra(text, value);
}

static tess_status take_dec(const tess_option_rule *rule, const char *text, void *value)
{
    (void)rule;
    return tess_parse_dec(text, value);
}

/* Cuts the value of an option at commas. */
static tess_status take_names(const tess_option_rule *rule, const char *text,
                              void *value)
{
    tess_status status = TESS_OK;
    enum { MOST = sizeof((facets_names *)0)->name / sizeof(char *) };
    facets_names names = {.text = tess_strdup(text)};
    facets_names *into = value;
    char *next = names.text;
    (void)rule;
    if (!next) TESS_FAIL(TESS_ERR_ALLOC, "no memory for '%s'", text);
    while (next) {
        const char *name = strsep(&next, ",");
        if (!*name || names.num == MOST)
            TESS_FAIL(TESS_ERR_USAGE, "'%s' is no list of at most %d names", text,
                      MOST);
        names.name[names.num++] = name;
    }
    tess_free(into->text);
    *into = names;
    names.text = NULL;
cleanup:
    tess_free(names.text);
    return status;
}

#define AT(member) offsetof(facets_args, member)

static const tess_option_rule rules[] = {
    {OPT_LIKE, tess_take_text, .offset = AT(like)},
    {OPT_SIZE, take_size, .offset = 0},
    {OPT_SCALE, tess_take_scale, .offset = AT(scale_rad)},
    {OPT_CENTER, take_center, .offset = 0},
    {OPT_RA, take_ra, .offset = AT(ra_rad), .given = AT(has_ra)},
    {OPT_DEC, take_dec, .offset = AT(dec_rad), .given = AT(has_dec)},
    {'n', tess_take_int64, .offset = AT(number), .min = 1, .max = 1e6},
    {OPT_SEPARATION, tess_take_scale, .offset = AT(separation_rad)},
    {OPT_FEATHER, tess_take_number, .offset = AT(feather), .min = 0, .max = 1e5},
    {OPT_PADDING, tess_take_number, .offset = AT(padding), .min = 1, .max = 10},
    {OPT_SOLUTIONS, take_names, .offset = AT(solutions)},
    {OPT_SOLTABS, take_names, .offset = AT(tables)},
    {'o', tess_take_text, .offset = AT(output)},
    {OPT_PNG, tess_take_text, .offset = AT(picture)},
    {OPT_OVERWRITE, tess_take_flag, .offset = AT(overwrite)},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    facets_args *args = state->input;
    tess_status status;
    if (key == ARGP_KEY_ARG && !args->input) {
        args->input = arg;
        return 0;
    }
    if (!tess_option_take(rules, key, arg, args, &status)) return ARGP_ERR_UNKNOWN;
    return tess_cli_result(state, options, key, arg, status);
}

static const struct argp argp = {options, parse, "[FILE]", doc, children, NULL, NULL};

static tess_status check(const facets_args *args)
{
    tess_status status = TESS_OK;
    const bool has_all =
        args->nx > 0 && args->scale_rad > 0 && args->has_ra && args->has_dec;
    const bool has_any =
        args->nx > 0 || args->scale_rad > 0 || args->has_ra || args->has_dec;
    if (!args->input && args->solutions.num == 0)
        TESS_FAIL(TESS_ERR_USAGE, "no facets given; name a region file or a list of "
                                  "sources, or --solutions");
    if (args->number > 0 && !args->input)
        TESS_FAIL(TESS_ERR_USAGE, "--number takes the brightest of a list of sources; "
                                  "name one");
    if (args->separation_rad > 0 && !args->input)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--separation leaves out sources of a list; name one");
    if (args->tables.num > 0 && args->solutions.num == 0)
        TESS_FAIL(TESS_ERR_USAGE, "--soltabs are those of --solutions FILE");
    if (args->like && has_any)
        TESS_FAIL(TESS_ERR_USAGE, "--like gives the pixels; leave out --size, --scale, "
                                  "--center, --ra and --dec");
    if (!args->like && !has_all)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--size, --scale and --center (or --ra and --dec) are needed, or "
                  "--like IMAGE.fits");
    if (args->picture && !args->like)
        TESS_FAIL(TESS_ERR_USAGE, "--png draws over an image; give --like IMAGE.fits");
cleanup:
    return status;
}

tess_status tess_cmd_facets(tess_comm *comm, int argc, char **argv)
{
    tess_status status = TESS_OK;
    facets_args args = {.padding = 1};
    tess_cli cli = {0};
    TESS_TRY(tess_cli_parse(comm, &argp, argc, argv, &args, &cli));
    if (cli.help) goto cleanup;
    TESS_TRY(check(&args));
    TESS_TRY(facets_report(comm, &args));
cleanup:
    tess_free(args.solutions.text);
    tess_free(args.tables.text);
    tess_cli_free(&cli);
    return status;
}
