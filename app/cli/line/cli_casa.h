/** @file cli_casa.h  (private to app/cli/)
 *  What parameters of CASA's tclean are here, for messages.
 */
#ifndef CLI_CASA_H
#define CLI_CASA_H

#include <stdbool.h>
#include <stddef.h>

/** Whether a subcommand has an option of this name. */
typedef bool cli_has_option(const void *context, const char *name);

/** Write what a parameter of tclean, in small letters and with this value ("": none),
 *  is here: "did you mean --weight briggs:0.5?". False if it is no parameter, or if the
 *  subcommand has no option for it. Local. */
bool cli_casa_advise(const char *word, const char *value, cli_has_option *has,
                     const void *context, char *text, size_t size);

#endif
