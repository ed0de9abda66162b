/** @file clean_inputs.h  (private to app/imager/run/)
 *  What cleaning reads from files: masks, and models that it continues.
 */
#ifndef TESS_CLEAN_INPUTS_H
#define TESS_CLEAN_INPUTS_H

#include "image_run.h"

/** Check, before data are read, that the mask and the models to continue are there and
 * have the images' pixels. TESS_ERR_INPUT, TESS_ERR_IO. Collective. */
tess_status clean_inputs_check(image_run *run);

/** This rank's rows of the mask of an output channel and polarisation, [num_rows][nx],
 *  not 0 where components may be; NULL where there is no mask. To be freed with
 *  tess_free(). Collective. */
tess_status clean_inputs_mask(const image_run *run, int64_t channel, int pol,
                              int64_t row_first, int64_t num_rows, uint8_t **mask);

/** Fill rows of double with those of NAME-model.fits, or of a set or cube of models
 *  (continued_models.h); blank pixels become 0. `comm`: the ranks that take part.
 *  Collective. */
tess_status clean_inputs_model(image_run *run, tess_comm *comm, int64_t interval,
                               int64_t channel, int pol, imager_rows *rows);

/** Close the models that the functions above have opened. Local. */
void clean_inputs_free(image_run *run);

#endif
