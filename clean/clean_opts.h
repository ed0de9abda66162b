/** @file clean_opts.h
 *  Options of a CLEAN as its object keeps them: checked and with copies of arrays.
 */
#ifndef TESS_CLEAN_OPTS_H
#define TESS_CLEAN_OPTS_H

#include "tess_clean.h"
#include "tess_convolve.h"

/** TESS_ERR_USAGE names what is wrong. Local. */
tess_status clean_opts_check(const tess_clean_images *images,
                             const tess_clean_opts *opts);

/** How rows of an image are transformed by these options, in a plan of `uses` uses.
 *  Local. */
static inline tess_convolve_opts
clean_transforms_of(const tess_rows *rows, const tess_clean_opts *opts, int uses)
{
    return (tess_convolve_opts){.nx = rows->nx,
                                .ny = rows->ny,
                                .row_first = rows->row_first,
                                .num_rows = rows->num_rows,
                                .uses = uses,
                                .is_double = opts->is_double,
                                .repeatable = opts->repeatable,
                                .threads = opts->threads};
}

#endif
