/** @file cli_groups.h  (private to app/cli/)
 *  Groups of options that several subcommands share. Each is a child of the
 * subcommand's argp.
 */
#ifndef TESS_CLI_GROUPS_H
#define TESS_CLI_GROUPS_H

#include <argp.h>

#include "tess_status.h"

/** Which visibilities: --datacolumn --field --spw --channels --intervals --uvrange
 *  --center. The input is a zeroed tess_selection. */
extern const struct argp tess_selection_argp;

/** How to grid: --accuracy --w --backend and the options of --w projection. The input
 * is a tess_gridding, which the parser sets to its defaults. */
extern const struct argp tess_gridding_argp;

/** How to lay out the work: --threads --memory --no-sync --lock-timeout
 *  --no-calibration. The input is a zeroed tess_layout. */
extern const struct argp tess_layout_argp;

/** The option --lock-timeout of subcommands without that group. The timeout holds for
 * the process, and each command line begins with the default. TESS_ERR_USAGE. */
tess_status tess_cli_lock_timeout(const char *text);
#define TESS_LOCK_TIMEOUT_HELP                                                         \
    "Wait for at most TIME (1min by default, 0: not at all) where another program "    \
    "has a MeasurementSet locked, which it does while it writes the set"

#endif
