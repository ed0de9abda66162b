/* The options that tessera restore and tessera draw have alike. */
#define _GNU_SOURCE
#include "groups.h"

#include <stddef.h>

#include "job.h"
#include "option_rules.h"
#include "options.h"
#include "tess_cli.h"
#include "tess_mem.h"
#include "tess_threads.h"

enum {
    OPT_BEAM_SIZE = 0x100,
    OPT_BEAM_SHAPE,
    OPT_OVERWRITE,
    OPT_THREADS,
    OPT_REPRODUCIBLE
};

static const struct argp_option options[] = {
    {"output", 'o', "OUT.fits", 0, "Write the image to this file", 0},
    {"beam-size", OPT_BEAM_SIZE, "ANGLE", 0,
     "FWHM of a circular beam, like 6asec (default: that of RESIDUAL's header; images "
     "that are drawn have none)",
     0},
    {"beam-shape", OPT_BEAM_SHAPE, "MAJ,MIN,PA", 0,
     "FWHM of a beam's axes and its position angle, like 8asec,6asec,30deg", 0},
    {"overwrite", OPT_OVERWRITE, NULL, 0, "Replace an existing file", 0},
    {"threads", OPT_THREADS, "N", 0,
     "Threads per rank (default from the batch job, OMP_NUM_THREADS or the cores)", 0},
    {"reproducible", OPT_REPRODUCIBLE, NULL, 0,
     "The same pixels, bit by bit, on any number of ranks and threads", 0},
    {0},
};

#define AT(member) offsetof(restore_args, member)

static const tess_option_rule rules[] = {
    {'o', tess_take_text, .offset = AT(job.output)},
    {OPT_BEAM_SIZE, tess_take_beam_size, .offset = AT(beam)},
    {OPT_BEAM_SHAPE, tess_take_beam_shape, .offset = AT(beam)},
    {OPT_OVERWRITE, tess_take_flag, .offset = AT(job.overwrite)},
    {OPT_THREADS, tess_take_int, .offset = AT(job.threads), .min = 1, .max = 65536},
    {OPT_REPRODUCIBLE, tess_take_flag, .offset = AT(job.repeatable)},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    tess_status status;
    if (!tess_option_take(rules, key, arg, state->input, &status))
        return ARGP_ERR_UNKNOWN;
    return tess_cli_result(state, options, key, arg, status);
}

const struct argp restore_argp = {.options = options, .parser = parse};

tess_status restore_args_finish(tess_comm *comm, int argc, char **argv,
                                const tess_cli_origin *origin, restore_args *args)
{
    tess_status status = TESS_OK;
    tess_restore_job *job = &args->job;
    if (!job->output || !*job->output)
        TESS_FAIL(TESS_ERR_USAGE, "no output given; use -o OUT.fits");
    if (job->threads == 0) TESS_TRY(tess_threads_default(comm, &job->threads));
    args->command_line = tess_cli_command_line(argc, argv);
    job->command_line = args->command_line ? args->command_line : "tessera";
    TESS_TRY(tess_job_log(comm, job->threads, job->command_line));
    job->typed = origin ? origin->line : NULL;
    tess_job_log_notes(origin ? origin->notes : NULL);
cleanup:
    return status;
}

void restore_args_free(restore_args *args)
{
    tess_free(args->command_line);
    *args = (restore_args){0};
}
