/* tessera image: parses the options, starts the log, and calls the imager. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "tess_checkpoint.h"
#include "tess_image_args.h"
#include "tess_image_inputs.h"
#include "tess_imager.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_out.h"
#include "tess_primary_beam.h"
#include "tess_profile_report.h"
#include "tess_subcommands.h"
#include "tess_version.h"
#include "trace_file.h"

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
                           const char *const *notes)
{
    tess_status status = TESS_OK, own = TESS_OK;
    if (tess_comm_rank(comm) == 0) own = open_log(&args->opts);
    TESS_TRY(tess_comm_agree(comm, own));
    TESS_TRY(
        tess_job_log(comm, args->opts.layout.threads, args->opts.beside.command_line));
    log_options(&args->cli);
    tess_job_log_notes(notes);
cleanup:
    return status;
}

/* Whether an option leaves the result the same. A run may continue from a checkpoint
 * with other values of such options. */
static bool changes_nothing(const char *name)
{
    static const char *const names[] = {
        "threads",          "memory",          "checkpoint",
        "checkpoint-every", "max-time",        "resume",
        "profile",          "trace",           "overwrite",
        "force-pw",         "force-fft-ranks", "force-passes",
        "force-split",      "config",          "quiet",
        "verbose",          "scratch",         "force-round-bytes",
        "force-teams",      "force-scratch",   "no-sync"};
    for (size_t k = 0; k < sizeof names / sizeof *names; ++k)
        if (strcmp(name, names[k]) == 0) return true;
    return false;
}

static void add_input(FILE *out, const char *path)
{
    char state[64];
    if (path && tess_input_state(path, state, sizeof state))
        fprintf(out, "%s: %s\n", path, state);
}

/* A text that identifies the result: the version, the options, and the size and time of
 * each input. A checkpoint stores it. The text is from malloc(). */
static char *identity_of(const tess_image_args *args)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    fprintf(out, "version = %s\n", tess_version_full());
    for (int64_t k = 0; k < args->cli.num_used; ++k)
        if (!changes_nothing(args->cli.used[k].name))
            fprintf(out, "%s = %s\n", args->cli.used[k].name, args->cli.used[k].value);
    for (int k = 0; k < args->opts.num_obs; ++k)
        add_input(out, args->opts.obs[k]);
    add_input(out, args->opts.subtract.model);
    add_input(out, args->opts.gridding.gcf);
    add_input(out, args->opts.clean.fits_mask);
    add_input(out, args->opts.clean.casa_mask);
    add_input(out, tess_primary_beam_file(args->opts.beside.primary_beam.model));
    return fclose(out) == 0 ? text : (free(text), NULL);
}

/* Rank 0 makes the text that identifies the result, and sends it to all. Collective. */
static tess_status identify(tess_comm *comm, tess_image_args *args, char **identity)
{
    tess_status status = TESS_OK;
    const bool first = tess_comm_rank(comm) == 0;
    int64_t bytes = 0;
    if (first) *identity = identity_of(args);
    if (first && *identity) bytes = (int64_t)strlen(*identity) + 1;
    TESS_TRY(tess_comm_bcast(comm, &bytes, sizeof bytes, 0));
    if (!first) *identity = malloc((size_t)bytes + 1);
    TESS_TRY(tess_comm_agree(comm, *identity && bytes ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_comm_bcast(comm, *identity, bytes, 0));
    args->opts.checkpoint.identity = *identity;
cleanup:
    return status;
}

tess_status tess_cmd_image(tess_comm *comm, int argc, char **argv)
{
    return tess_cmd_image_noted(comm, argc, argv, NULL);
}

tess_status tess_cmd_image_noted(tess_comm *comm, int argc, char **argv,
                                 const char *const *notes)
{
    tess_status status = TESS_OK;
    tess_profile profile;
    tess_image_args args = {0};
    char *identity = NULL;
    tess_mem_keep_no_arrays();
    tess_profile_start(&profile);
    TESS_TRY(tess_image_args_parse(comm, doc, argc, argv, &args));
    if (args.cli.help) goto cleanup;
    TESS_TRY(prepare(comm, &args, notes));
    profile.wants_energy = args.profile != NULL;
    if (args.trace) TESS_TRY(tess_comm_agree(comm, tess_trace_create(&profile.trace)));
    if (args.opts.checkpoint.folder) TESS_TRY(identify(comm, &args, &identity));
    TESS_TRY(tess_imager_image(comm, &args.opts, &profile));
    if (args.profile)
        TESS_TRY(tess_profile_write(comm, &profile, args.profile, args.overwrite));
    if (args.trace)
        TESS_TRY(tess_trace_write(comm, &profile, args.trace, args.overwrite));
cleanup:
    tess_trace_destroy(profile.trace);
    tess_image_args_free(&args);
    free(identity);
    return status;
}
