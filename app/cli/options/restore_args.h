/** @file restore_args.h  (private to app/cli/)
 *  The options that `tessera restore` and `tessera draw` have alike.
 */
#ifndef TESS_RESTORE_ARGS_H
#define TESS_RESTORE_ARGS_H

#include <argp.h>

#include "tess_restore.h"

/** Zero it before use. */
typedef struct restore_args {
    tess_restore_job job;
    tess_fits_beam beam;
    char *command_line; /**< owned */
} restore_args;

/** -o --overwrite --beam-size --beam-shape --threads --reproducible; the input is a
 *  restore_args. */
extern const struct argp restore_argp;

/** Once options are parsed: check that there is an output, set the threads and begin
 * the log with `notes`, which NULL ends; NULL: none. Collective. */
tess_status restore_args_finish(tess_comm *comm, int argc, char **argv,
                                const char *const *notes, restore_args *args);

void restore_args_free(restore_args *args); /**< Local. */

#endif
