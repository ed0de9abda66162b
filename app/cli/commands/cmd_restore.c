/* tessera restore: parses the options, and puts a model onto a residual image. */
#define _GNU_SOURCE
#include <argp.h>

#include "groups.h"
#include "options.h"
#include "tess_cli.h"
#include "tess_subcommands.h"

static const char doc[] =
    "Convolve a model with a beam, add a residual image, and write the restored image."
    "\v"
    "The model is a FITS image in Jy/pixel whose pixels are the residual's, or a cube "
    "for a cube, whose planes are restored each with its beam; or a list "
    "of sources as DP3 and WSClean write it: a file whose first line begins with "
    "'Format =', or whose name ends in .txt. Points of a list are beams at their exact "
    "places, and Gaussians are convolved with the beam; their spectra are averaged "
    "over the residual's band. The residual's header, or its table of beams, gives the "
    "beam, unless an option does.\n\n"
    "Examples:\n"
    "  tessera restore out-residual.fits out-model.fits -o restored.fits\n"
    "  tessera restore out-cube-residual.fits out-cube-model.fits -o round.fits \\\n"
    "      --beam-size 12asec\n"
    "  tessera restore out-residual.fits out-sources.txt -o sharp.fits \\\n"
    "      --beam-size 4asec";

static const struct argp_child children[] = {
    {&restore_argp, 0, "Restoring:", 1},
    {&tess_cli_common_argp, 0, "General:", 4},
    {0},
};

enum { OPT_COMMON_BEAM = 0x100 };

static const struct argp_option options[] = {
    {"common-beam", OPT_COMMON_BEAM, NULL, 0,
     "Restore all planes with one beam, the smallest that contains those of all, and "
     "convolve their residuals to it",
     1},
    {0}};

typedef struct given {
    restore_args args;
    bool common;
    const char *path[2]; /* residual, model */
    int num_paths;
} given;

static error_t parse(int key, char *arg, struct argp_state *state)
{
    given *input = state->input;
    if (key == ARGP_KEY_INIT) {
        state->child_inputs[0] = &input->args;
        return 0;
    }
    if (key == OPT_COMMON_BEAM) {
        input->common = true;
        return tess_cli_result(state, options, key, arg, TESS_OK);
    }
    if (key != ARGP_KEY_ARG || input->num_paths == 2) return ARGP_ERR_UNKNOWN;
    input->path[input->num_paths++] = arg;
    return 0;
}

static const struct argp argp = {
    options, parse, "RESIDUAL.fits MODEL.fits|LIST", doc, children, NULL, NULL};

tess_status tess_cmd_restore(tess_comm *comm, int argc, char **argv)
{
    return tess_cmd_restore_noted(comm, argc, argv, NULL);
}

tess_status tess_cmd_restore_noted(tess_comm *comm, int argc, char **argv,
                                   const tess_cli_origin *origin)
{
    tess_status status = TESS_OK;
    given input = {0};
    tess_cli cli = {0};
    TESS_TRY(tess_cli_parse(comm, &argp, argc, argv, &input, &cli));
    if (cli.help) goto cleanup;
    if (input.num_paths != 2)
        TESS_FAIL(TESS_ERR_USAGE,
                  "a residual image and a model, or a list of sources, are needed");
    if (input.common && input.args.beam.major_rad > 0)
        TESS_FAIL(TESS_ERR_USAGE, "--common-beam is found of the planes' beams: no "
                                  "--beam-size and no --beam-shape");
    TESS_TRY(restore_args_finish(comm, argc, argv, origin, &input.args));
    const tess_restore_opts opts = {.residual = input.path[0],
                                    .model = input.path[1],
                                    .beam = input.args.beam,
                                    .common = input.common,
                                    .job = input.args.job};
    TESS_TRY(tess_restore(comm, &opts));
cleanup:
    restore_args_free(&input.args);
    tess_cli_free(&cli);
    return status;
}
