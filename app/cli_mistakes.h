/** @file cli_mistakes.h  (private to app/)
 *  What is wrong with a command line that argp refuses, and what was probably meant.
 */
#ifndef CLI_MISTAKES_H
#define CLI_MISTAKES_H

#include <argp.h>

#include "tess_status.h"

/** TESS_ERR_USAGE that says what is wrong with an argument that argp refused, and which
 *  option of `argp` or its children was probably meant: "-size" is --size, "--robust"
 *  with the `next` word 0 is --weight briggs:0, "--sise" is near --size. `next` is NULL
 *  behind the last argument. Local. */
tess_status cli_explain_mistake(const struct argp *argp, const char *arg,
                                const char *next);

/** TESS_ERR_USAGE when the value of an option is in two words, of which argp would take
 *  the second for an observation: "--weight briggs 0", "--size 64 64", "--scale 1
 * asec". Local. */
tess_status cli_check_split(const struct argp *argp, int argc, char **argv);

/** TESS_ERR_USAGE when an argument is a long option with one dash, which argp would
 * take for short options: "-overwrite" would be "-o verwrite". Local. */
tess_status cli_check_dashes(const struct argp *argp, int argc, char **argv);

#endif
