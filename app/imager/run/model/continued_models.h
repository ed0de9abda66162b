/** @file continued_models.h  (private to app/imager/run/)
 *  Models of an earlier run that images continue: NAME-model.fits and the like.
 *
 *  Output channels take those images of the model that have their frequencies. Where a
 *  set of files, or a cube, has other channels, an output channel takes the values of
 *  the function that --fit-spectral-pol or --fit-spectral-log-pol fits to them, or else
 *  the nearest channel (channel_model.h).
 */
#ifndef TESS_CONTINUED_MODELS_H
#define TESS_CONTINUED_MODELS_H

#include "image_run.h"

/** Files that are open on this rank; each is opened once. */
typedef struct continued_models continued_models;

/** Nothing is opened yet. TESS_ERR_ALLOC. Local. */
tess_status continued_models_create(const image_run *run, continued_models **models);
void continued_models_free(continued_models *models); /**< NULL is fine. Local. */

/** Open all of them and check that their pixels are the images'. One line in the log
 *  says which channels are taken where several are in a set or cube. TESS_ERR_IO;
 *  TESS_ERR_INPUT, also for a set that lacks a file, and where all output channels lie
 *  beyond the model's band. Local. */
tess_status continued_models_check(const image_run *run, continued_models *models);

/** This rank's rows, of double, of the model of an output channel and polarisation.
 *  TESS_ERR_INPUT also for a pixel that is not finite (model_pixels_read). Other errors
 *  as above. Local. */
tess_status continued_models_read(const image_run *run, continued_models *models,
                                  int64_t interval, int64_t channel, int pol,
                                  imager_rows *rows);

#endif
