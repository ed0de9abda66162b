/** @file tess_image_inputs.h
 *  What a run that makes images reads must not be what it writes.
 */
#ifndef TESS_IMAGE_INPUTS_H
#define TESS_IMAGE_INPUTS_H

#include "tess_imager.h"

/** TESS_ERR_IO when `path` cannot be written (tess_out_check_target), or is one of the
 *  inputs of the run. Local. */
tess_status tess_image_check_output(const tess_image_opts *opts, const char *path,
                                    bool overwrite);

#endif
