/* tessera plan: shows how tessera image would make an image with the same options. */
#define _GNU_SOURCE
#include "tess_forced.h"
#include "tess_image_args.h"
#include "tess_imager.h"
#include "tess_profile_report.h"
#include "tess_subcommands.h"

static const char doc[] =
    "Show how tessera image would make an image with the same options: partition, "
    "w-planes, kernel support, memory per rank and estimated time per stage. Reads the "
    "coordinates of the visibilities only and writes no file, but for --profile and "
    "what it measures of the machine (see --no-calibration)."
    "\v"
    "The plan is that of the ranks it is run on.\n\n"
    "Examples:\n"
    "  tessera plan obs.ms --size 2048 --scale 1.5asec\n"
    "  mpirun -n 16 tessera plan obs.ms --size 16384 --scale 1asec --memory 64GB";

tess_status tess_cmd_plan(tess_comm *comm, int argc, char **argv)
{
    tess_status status = TESS_OK;
    tess_profile profile;
    tess_image_args args = {.is_plan = true};
    tess_profile_start(&profile);
    TESS_TRY(tess_image_args_parse(comm, doc, argc, argv, &args));
    if (args.cli.help) goto cleanup;
    tess_forced_log();
    TESS_TRY(tess_imager_plan(comm, &args.opts, &profile));
    if (args.profile)
        TESS_TRY(tess_profile_write(comm, &profile, args.profile, args.overwrite));
cleanup:
    tess_image_args_free(&args);
    return status;
}
