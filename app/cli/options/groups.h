/** @file groups.h  (private to app/cli/)
 *  Groups of options that several subcommands share. Each is a child of the
 * subcommand's argp.
 */
#ifndef TESS_OPTION_GROUPS_H
#define TESS_OPTION_GROUPS_H

#include <argp.h>

#include "tess_cli.h"
#include "tess_gains.h"
#include "tess_imager.h"
#include "tess_restore.h"
#include "tess_status.h"

/** Which visibilities: --datacolumn --field --spw --channels --intervals --uvrange
 *  --center. The input is a zeroed tess_selection. */
extern const struct argp tess_selection_argp;

/** Which rows and channels, as CASA's expressions: --scan --antenna --timerange
 *  --select-field --select-spw --select-uvrange --select-intent --select-taql. A child
 * of the group above; the input is a zeroed tess_vis_expressions. */
extern const struct argp tess_expressions_argp;

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

/** The default of --pointing-limit. */
#define TESS_POINTING_LIMIT 0.02

/** Default of --pb-limit, that of pblimit of CASA's tclean. */
#define TESS_PB_LIMIT 0.2

/* ---- axes of channels, of `tessera image` and `tessera plan` ---- */

/** Parses the options; its input is a tess_image_opts. */
extern const struct argp tess_axis_argp;

/** Check them together with those of images, and find the number of output channels.
 *  Errors of tess_imager_take_axis. Collective. */
tess_status tess_axis_args_check(tess_comm *comm, tess_image_opts *opts);

/* ---- facets, of `tessera image` and `tessera plan`, and of `tessera predict` ---- */

/** These parse the options; their input is a zeroed tess_facet_choice. */
extern const struct argp tess_facets_argp, tess_predicted_facets_argp;

/** Check the options together. `later`: facets of a session may get solutions in a later
 *  call, for which options of solutions may be there already. TESS_ERR_USAGE. Local. */
tess_status tess_facet_args_check(const tess_facet_choice *choice, bool later);

/* ---- cleaning, of `tessera image` and `tessera plan` ---- */

/** Parses the options; its input is a tess_image_opts. */
extern const struct argp tess_clean_argp;

/** Options of automatic masks, a child of tess_clean_argp with its input; and their
 *  check. TESS_ERR_USAGE. Local. */
extern const struct argp tess_mask_argp;
tess_status tess_mask_args_check(const tess_image_opts *opts);

/** Check the options together, and with those of images; a plan needs no output.
 *  TESS_ERR_USAGE. Local. */
tess_status tess_clean_args_check(tess_image_opts *opts, bool is_plan);

/* ---- of `tessera restore` and `tessera draw` ---- */

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
 * the log. `origin` may be NULL. Collective. */
tess_status restore_args_finish(tess_comm *comm, int argc, char **argv,
                                const tess_cli_origin *origin, restore_args *args);

void restore_args_free(restore_args *args); /**< Local. */

#endif
