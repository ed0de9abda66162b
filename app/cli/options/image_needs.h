/** @file image_needs.h  (private to app/cli/)
 *  Options of `tessera image` that have an effect beside certain others alone.
 */
#ifndef TESS_IMAGE_NEEDS_H
#define TESS_IMAGE_NEEDS_H

#include "tess_image_args.h"

/** TESS_ERR_USAGE: an option was given that has no effect beside the others. Options
 *  that have defaults may be given with these, as NAME.conf does. Local. */
tess_status image_needs_check(const tess_image_args *args);

#endif
