/** @file clean_opts.h
 *  Options of a CLEAN as its object keeps them: checked and with copies of arrays.
 */
#ifndef TESS_CLEAN_OPTS_H
#define TESS_CLEAN_OPTS_H

#include "tess_clean.h"

/** TESS_ERR_USAGE names what is wrong. Local. */
tess_status clean_opts_check(const tess_clean_images *images,
                             const tess_clean_opts *opts);

#endif
