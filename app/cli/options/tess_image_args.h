/** @file tess_image_args.h
 *  The options that `tessera image` and `tessera plan` share.
 */
#ifndef TESS_IMAGE_ARGS_H
#define TESS_IMAGE_ARGS_H

#include <stdbool.h>

#include "tess_cli.h"
#include "tess_comm.h"
#include "tess_imager.h"

/** Parsed options; zero before use, end with tess_image_args_free(). */
typedef struct tess_image_args {
    tess_image_opts opts;    /**< complete after parsing */
    const char *profile;     /**< --profile, or NULL */
    const char *trace;       /**< --trace, or NULL */
    bool overwrite;          /**< whether these two files may exist already */
    tess_cli cli;            /**< cli.help: the subcommand has to end */
    bool is_plan;            /**< the run needs no output, and none is checked */
    bool in_memory;          /**< the run may have no output */
    bool in_session;         /**< options may act in other calls of a session */
    const char **obs;        /**< private: observations of the command line */
    const char **config_obs; /**< private: observations of --config */
    int64_t num_obs, capacity_obs, num_config_obs, capacity_config_obs;
    char *command_line, *used_options;
} tess_image_args;

/** Parse and check everything that can be checked without data, and set the threads
 *  per rank. `doc` is argp's help text of the subcommand. Errors: TESS_ERR_USAGE
 *  (also an image larger than the half-sky), TESS_ERR_RESOURCE (larger than the
 *  memory of all nodes), TESS_ERR_IO (a file beside the images that cannot be written).
 *  Collective. */
tess_status tess_image_args_parse(tess_comm *comm, const char *doc, int argc,
                                  char **argv, tess_image_args *args);

/** Refuse options of a call that cleans in an open session which the session was not
 * opened with, and which do not say how to clean: they would change nothing.
 * TESS_ERR_USAGE. Local. */
tess_status tess_image_args_check_call(const tess_image_args *session,
                                       const tess_image_args *call);

/** Make the images, with checkpoints, and the files --profile and --trace. Errors:
 * those of tess_imager_image(). Collective. */
tess_status tess_image_args_run(tess_comm *comm, tess_image_args *args,
                                tess_profile *profile);

void tess_image_args_free(tess_image_args *args);

#endif
