/** @file clean_args.h  (private to app/cli/)
 *  The options for cleaning, which `tessera image` and `tessera plan` share.
 */
#ifndef TESS_CLEAN_ARGS_H
#define TESS_CLEAN_ARGS_H

#include "tess_cli.h"
#include "tess_imager.h"

/** Parses the options; its input is a tess_image_opts. */
extern const struct argp tess_clean_argp;

/** Check the options together, and with those of images; a plan needs no output.
 *  TESS_ERR_USAGE. Local. */
tess_status tess_clean_args_check(tess_image_opts *opts, bool is_plan);

#endif
