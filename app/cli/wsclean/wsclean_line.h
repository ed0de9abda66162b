/** @file wsclean_line.h  (private to app/cli/wsclean/)
 *  A command line of WSClean: its options with their arguments, and its observations.
 */
#ifndef TESS_WSCLEAN_LINE_H
#define TESS_WSCLEAN_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"
#include "wsclean_table.h"

/** An option of the command line. */
typedef struct wsclean_given {
    const wsclean_option *option;
    char **argument; /**< words of the command line, in number as the option has */
} wsclean_given;

/** Zero it before use; end with wsclean_line_free(). */
typedef struct wsclean_line {
    wsclean_given *given; /**< [num_given] */
    int64_t num_given, capacity_given;
    char **obs; /**< [num_obs] */
    int num_obs;
    bool no_columns;     /**< no observation has columns, as WSClean's own all have; the
                              caller finds out */
    bool translate_only; /**< -translate-only, -dry-run */
    bool table;          /**< -table, hidden: print the manual's table */
    bool help;           /**< -help */
} wsclean_line;

/** Read argv[1] and what follows. TESS_ERR_USAGE for an option that is unknown, that is
 *  refused or lacks an argument, and for one behind the observations. `line` refers to
 *  words of argv. Local. */
tess_status wsclean_line_read(int argc, char **argv, wsclean_line *line);

/** The last option of this name, or NULL. Local. */
const wsclean_given *wsclean_line_last(const wsclean_line *line, const char *name);

/** The first argument of the last option of this name, or `otherwise`. Local. */
const char *wsclean_line_value(const wsclean_line *line, const char *name,
                               const char *otherwise);

void wsclean_line_free(wsclean_line *line); /**< Local. */

#endif
