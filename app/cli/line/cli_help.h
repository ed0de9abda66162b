/** @file cli_help.h  (private to app/cli/)
 *  Prints the help of a subcommand: the options that most users need, or all options.
 */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <argp.h>
#include <stdbool.h>

#include "tess_status.h"

/** Print the help of `tessera COMMAND` on stdout. Options for tuning, tests and studies
 *  have the flag OPTION_HIDDEN. With `all`, they are listed. Otherwise the last line
 * says how many there are. TESS_ERR_ALLOC. Local. */
tess_status cli_help_print(const struct argp *argp, const char *command, bool all);

#endif
