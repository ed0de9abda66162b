/** @file cli_groups.h  (private to app/cli/)
 *  Groups of options that several subcommands share. Each is a child of the
 * subcommand's argp.
 */
#ifndef TESS_CLI_GROUPS_H
#define TESS_CLI_GROUPS_H

#include <argp.h>

/** Which visibilities: --datacolumn --field --spw --channels --intervals --uvrange
 *  --center. The input is a zeroed tess_selection. */
extern const struct argp tess_selection_argp;

/** How to grid: --accuracy --w --backend and the options of --w projection. The input
 * is a tess_gridding, which the parser sets to its defaults. */
extern const struct argp tess_gridding_argp;

/** How to lay out the work: --threads --memory and the --force- options. The input is a
 *  zeroed tess_layout. */
extern const struct argp tess_layout_argp;

#endif
