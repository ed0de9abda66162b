/* tessera image: parses the options, starts the log, and calls the imager. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "tess_image_args.h"
#include "tess_imager.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_out_file.h"
#include "tess_stop.h"
#include "tess_subcommands.h"

static const char doc[] =
    "Make FITS images of observations (UVFITS files, MeasurementSets), several of "
    "which may go into one image."
    "\v"
    "Writes NAME-dirty.fits and NAME-psf.fits, and with --niter NAME-model.fits, "
    "NAME-residual.fits and the restored NAME-image.fits (NAME-I-dirty.fits ... for "
    "several "
    "Stokes parameters, NAME-0000-dirty.fits ... and NAME-MFS-dirty.fits for several "
    "output channels, NAME-0000-I-dirty.fits ... for both), NAME.log, and NAME.conf "
    "with the options used.\n\n"
    "Examples:\n"
    "  tessera image obs.ms -o out --size 2048 --scale 1.5asec\n"
    "  tessera image obs.ms -o out --size 2048 --scale 1.5asec --niter 100000 \\\n"
    "      --auto-threshold 3 --auto-mask 5 --multiscale\n"
    "  tessera image m87.uvfits -o m87 --size 128 --scale 1uas \\\n"
    "      --weight uniform --preview\n"
    "  mpirun -n 8 tessera image a.ms b.ms -o sky --size 8192 --scale 2asec \\\n"
    "      --stokes IQUV --channels-out 4 --memory 64GB --profile sky.json";

/* Logs the used options in one line. */
static void log_options(const tess_cli *cli)
{
    char text[1900] = "";
    size_t used = 0;
    for (int64_t k = 0; k < cli->num_used && used < sizeof text; ++k) {
        const int n = snprintf(text + used, sizeof text - used, "%s%s = %s",
                               k ? "; " : "", cli->used[k].name, cli->used[k].value);
        used += n > 0 ? (size_t)n : 0;
    }
    tess_log_detail("options: %s", text);
}

/* Opens NAME.log, after a check that it is no input and no other output. */
static tess_status open_log(const tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    char *path = NULL;
    if (asprintf(&path, "%s.log", opts->output) < 0) {
        path = NULL;
        TESS_FAIL(TESS_ERR_ALLOC, "name of the log");
    }
    TESS_TRY(tess_image_check_output(opts, path, true));
    for (size_t k = 0; k < sizeof opts->beside.reserved / sizeof *opts->beside.reserved;
         ++k)
        TESS_TRY(tess_out_check_distinct(opts->beside.reserved[k], path));
    TESS_TRY(tess_log_open(path, opts->overwrite));
cleanup:
    free(path); /* not tess_free(): asprintf() uses malloc() */
    return status;
}

/* Starts NAME.log. Collective. */
static tess_status prepare(tess_comm *comm, const tess_image_args *args,
                           const tess_cli_origin *origin)
{
    tess_status status = TESS_OK, own = TESS_OK;
    if (tess_comm_rank(comm) == 0) own = open_log(&args->opts);
    TESS_TRY(tess_comm_agree(comm, own));
    TESS_TRY(
        tess_job_log(comm, args->opts.layout.threads, args->opts.beside.command_line));
    log_options(&args->cli);
    tess_job_log_notes(origin ? origin->notes : NULL);
cleanup:
    return status;
}

/* The heap keeps little of what a rank may use. `node_bytes`: what --memory allows the
 * ranks of a node, or 0. Collective. */
static tess_status keep_no_arrays(tess_comm *comm, int64_t node_bytes)
{
    tess_status status = TESS_OK;
    tess_comm *node = NULL;
    TESS_TRY(tess_comm_node(comm, &node));
    if (node_bytes <= 0) node_bytes = tess_mem_node_limit_bytes();
    tess_mem_keep_no_arrays(node_bytes / tess_comm_size(node));
cleanup:
    tess_comm_free(node);
    return status;
}

tess_status tess_cmd_image(tess_comm *comm, int argc, char **argv)
{
    return tess_cmd_image_noted(comm, argc, argv, NULL);
}

tess_status tess_cmd_image_noted(tess_comm *comm, int argc, char **argv,
                                 const tess_cli_origin *origin)
{
    tess_status status = TESS_OK;
    tess_profile profile;
    tess_image_args args = {0};
    tess_profile_start(&profile);
    TESS_TRY(tess_image_args_parse(comm, doc, argc, argv, &args));
    if (args.cli.help) goto cleanup;
    args.opts.beside.typed = origin ? origin->line : NULL;
    TESS_TRY(keep_no_arrays(comm, args.opts.layout.memory_bytes));
    TESS_TRY(prepare(comm, &args, origin));
    if (!args.opts.checkpoint.folder) tess_stop_ends(tess_comm_rank(comm) == 0);
    TESS_TRY(tess_image_args_run(comm, &args, &profile));
cleanup:
    tess_image_args_free(&args);
    return status;
}
