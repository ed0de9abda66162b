/* Makes the images that options ask for: for the program, and for calls of the library.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tess_beam_models.h"
#include "tess_checkpoint.h"
#include "tess_image_args.h"
#include "tess_mem.h"
#include "tess_profile_report.h"
#include "tess_version.h"
#include "trace_file.h"

/* Whether an option leaves the result the same. A run may continue from a checkpoint
 * with other values of such options. */
static bool changes_nothing(const char *name)
{
    static const char *const names[] = {
        "threads", "memory",  "checkpoint",   "checkpoint-every", "max-time", "resume",
        "profile", "trace",   "overwrite",    "config",           "quiet",    "verbose",
        "scratch", "no-sync", "lock-timeout", "stall-timeout"};
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

/* The files that facets and their gains are read from. Returns false if memory is
 * short. */
static bool add_facets(FILE *out, const tess_facet_choice *facets)
{
    char *list = tess_strdup(facets->solutions);
    const bool complete = list || !facets->solutions;
    if (facets->number == 0) add_input(out, facets->regions);
    add_input(out, facets->sources);
    for (char *next = list; next;)
        add_input(out, strsep(&next, ","));
    add_input(out, facets->aterms);
    if (facets->beam.model) add_input(out, tess_beam_models_file(facets->beam.model));
    tess_free(list);
    return complete;
}

/* The forced choices by which sums are cut. The others leave the result the same. */
static void add_forced(FILE *out, const tess_forced *forced)
{
    fprintf(out, "forced = %d %d %lld %lld %.17g %.17g %lld %d\n", forced->block_planes,
            forced->plane_window, (long long)forced->batch_vis,
            (long long)forced->chunk, forced->w_min_lambda, forced->w_max_lambda,
            (long long)forced->num_vis, forced->device_planes);
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
    add_forced(out, &args->opts.layout.forced);
    add_input(out, args->opts.subtract.model);
    add_input(out, args->opts.gridding.gcf);
    add_input(out, args->opts.clean.fits_mask);
    add_input(out, args->opts.clean.casa_mask);
    add_input(out, args->opts.clean.mask);
    add_input(out, tess_beam_models_file(args->opts.beside.primary_beam.model));
    const bool complete = add_facets(out, &args->opts.gridding.facets) && !ferror(out);
    if (fclose(out) == 0 && complete) return text;
    free(text);
    return NULL;
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

tess_status tess_image_args_run(tess_comm *comm, tess_image_args *args,
                                tess_profile *profile)
{
    tess_status status = TESS_OK;
    char *identity = NULL;
    profile->wants_energy = args->profile != NULL;
    if (args->trace)
        TESS_TRY(tess_comm_agree(comm, tess_trace_create(&profile->trace)));
    if (args->opts.checkpoint.folder) TESS_TRY(identify(comm, args, &identity));
    TESS_TRY(tess_imager_image(comm, &args->opts, profile));
    if (args->profile)
        TESS_TRY(tess_profile_write(comm, profile, args->profile, args->overwrite));
    if (args->trace)
        TESS_TRY(tess_trace_write(comm, profile, args->trace, args->overwrite));
cleanup:
    tess_trace_destroy(profile->trace);
    profile->trace = NULL;
    args->opts.checkpoint.identity = NULL;
    free(identity);
    return status;
}
