/** @file cli_help.h  (private to app/cli/)
 *  Prints the help of a subcommand: the options that most users need, or all options;
 *  and explains what is wrong with a command line, and which option was probably meant.
 */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

#include "tess_status.h"

/** Print the help of `tessera COMMAND` on stdout. Options for tuning, tests and studies
 *  have the flag OPTION_HIDDEN. With `all`, they are listed. Otherwise the last line
 * says how many there are. TESS_ERR_ALLOC. Local. */
tess_status cli_help_print(const struct argp *argp, const char *command, bool all);

/** Returns TESS_ERR_USAGE. The message says why argp refused the argument `arg`, and
 * which option of `argp` or its children was probably meant: "-size" is --size,
 * "--robust" with the `next` word 0 is --weight briggs:0, "--sise" is near --size.
 * `next` is NULL if `arg` is the last argument. Local. */
tess_status cli_explain_mistake(const struct argp *argp, const char *arg,
                                const char *next);

/** TESS_ERR_USAGE if the value of an option is written as two words, like "--weight
 * briggs 0", "--size 64 64" or "--scale 1 asec". argp would take the second word for an
 *  observation. Local. */
tess_status cli_check_split(const struct argp *argp, int argc, char **argv);

/** TESS_ERR_USAGE if an argument is a long option with one dash. argp would take it for
 *  short options: "-overwrite" would be "-o verwrite". Local. */
tess_status cli_check_dashes(const struct argp *argp, int argc, char **argv);

/** The number of letters to change, insert, leave out, or swap with the next letter
 * that make `b` of the first `n` letters of `a`; large where one is longer than 64.
 * Local. */
int cli_distance(const char *a, size_t n, const char *b);

#endif
