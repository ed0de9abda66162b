/** @file tess_cli.h
 *  Parses the command line of a subcommand on every rank. It adds to argp: one error
 *  message instead of argp's output, --config files, help from rank 0, and a record of
 *  the used options.
 *
 *  A subcommand declares a `struct argp` as usual (with tess_cli_common_argp among its
 *  children), and its parser ends each handled option with tess_cli_result().
 */
#ifndef TESS_CLI_H
#define TESS_CLI_H

#include <argp.h>
#include <stdbool.h>
#include <stdio.h>

#include "tess_comm.h"
#include "tess_imager.h"
#include "tess_status.h"

/* ---- parameter files ---- */

/** `key = value` lines with '#' comments. Keys are the long names of options; the file
 *  is expanded into arguments that stand before those of the command line, which
 *  therefore override it. Unknown and repeated keys are errors that name file and line.
 *  Zeroed is empty. */
typedef struct tess_params {
    int argc;
    char **argv;  /**< [argc + 1], NULL at the end; owned */
    int num_keys; /**< argv[1 .. num_keys] come from the file */
    int *line;    /**< [num_keys] their line numbers */
    char *path;   /**< the file, NULL without --config */
} tess_params;

/** Copy argv; when it has --config FILE (at most one), read it (rank 0) and expand its
 *  keys, which `argp` or its children must know. TESS_ERR_USAGE for unknown or repeated
 *  keys and malformed lines, TESS_ERR_IO when the file cannot be read. Collective. */
tess_status tess_params_expand(tess_comm *comm, const struct argp *argp, int argc,
                               char **argv, tess_params *params);

/** The same with the file's text given. Local. */
tess_status tess_params_expand_text(const struct argp *argp, const char *path,
                                    const char *text, int argc, char **argv,
                                    tess_params *params);

/** Line of the parameter file that argv[index] came from, 0 for the command line. */
int tess_params_line(const tess_params *params, int index);

void tess_params_free(tess_params *params);

/* ---- the command line ---- */

/** An option in effect. */
typedef struct tess_cli_used {
    char *name, *value;
    bool given; /**< on the command line or in --config: it is no default */
} tess_cli_used;

/** State of one command line. Zero it before use; end with tess_cli_free(). */
typedef struct tess_cli {
    const char *command;     /**< "image" */
    const struct argp *argp; /**< the subcommand's options */
    void *input;             /**< the input of the subcommand's parser */
    bool help;               /**< help was printed, and the subcommand has to end */
    bool quiet, verbose;
    tess_status status;  /**< the status of the first option that failed */
    tess_params params;  /**< the options of --config, then the arguments */
    tess_cli_used *used; /**< [num_used], in the order of first use */
    int64_t num_used, capacity_used;
    int failed_index; /**< private: the argument where argp stopped, or 0 */
} tess_cli;

/** Options that every subcommand has: --config, --quiet, --verbose, --help,
 *  --version. Needs no input. */
extern const struct argp tess_cli_common_argp;

/** Parse argv (argv[0] is the subcommand's name) with `argp`, whose parser gets
 *  `input`; sets the log level. With --help rank 0 prints the help on stdout and
 *  `cli->help` is set. TESS_ERR_USAGE with a message otherwise. The strings that
 *  options point to live until tess_cli_free(). Collective. */
tess_status tess_cli_parse(tess_comm *comm, const struct argp *argp, int argc,
                           char **argv, void *input, tess_cli *cli);

/** The return value of a parser for an option whose value gave `status`: 0, or an
 *  error after naming the option (or file and line of --config) in the message.
 *  Records option and value as used. `options` is the parser's own table. */
error_t tess_cli_result(struct argp_state *state, const struct argp_option *options,
                        int key, const char *arg, tess_status status);

/** Record a default, so that it is listed among the used options. */
void tess_cli_default(struct argp_state *state, const char *name, const char *value);

/** Record one more value of an option that may be given several times. */
tess_status tess_cli_note(tess_cli *cli, const char *name, const char *value);

/** Text of the used options as `key = value` lines that --config accepts, with
 *  `command_line` in a comment; NULL when memory is short. Free with tess_free(). */
char *tess_cli_used_text(const tess_cli *cli, const char *command_line);

/** "tessera image a.ms -o x", quoted for a shell; free with tess_free(). */
char *tess_cli_command_line(int argc, char **argv);

/** The same of another program: "wsclean -name x a.ms". */
char *tess_cli_line_of(const char *program, int argc, char **argv);

/** The command line of another program of which a command was made. */
typedef struct tess_cli_origin {
    const char *line;         /**< for HISTORY */
    const char *const *notes; /**< first lines of the log, which NULL ends; or NULL */
} tess_cli_origin;

void tess_cli_free(tess_cli *cli);

/** Whether `option` is the entry that ends a table of options. */
static inline bool cli_option_is_end(const struct argp_option *option)
{
    return !option->name && !option->key && !option->doc && !option->group;
}

/** What --version prints: version, compiler and libraries, then a line for each part
 *  that a build may have or lack. Local. */
void tess_built_print(FILE *out);

#endif
