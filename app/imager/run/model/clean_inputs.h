/** @file clean_inputs.h  (private to app/imager/run/)
 *  What cleaning reads from files: masks, and models that it continues.
 */
#ifndef TESS_CLEAN_INPUTS_H
#define TESS_CLEAN_INPUTS_H

#include "image_run.h"

/** Check, before data are read, that the mask and the models to continue are there and
 * have the images' pixels. TESS_ERR_INPUT, TESS_ERR_IO. Collective. */
tess_status clean_inputs_check(image_run *run);

/** Check, before data are read and once the primary beam is open, that --pb-mask leaves
 * a pixel of a channel that is cleaned. TESS_ERR_INPUT. Collective. */
tess_status clean_inputs_check_beam(const image_run *run);

/** Whether components are looked for in an output channel: --channel-mask has it.
 * Local.
 */
bool clean_inputs_cleans(const image_run *run, int64_t channel);

/** Whether there is a mask, of a file, of the horizon or of the primary beam. Local. */
bool clean_inputs_have_mask(const image_run *run);

/** This rank's rows of the mask of an output and polarisation, if there is one, not 0
 * where components may be, in host memory. `*mask` has the part of the image. To be
 * freed with tess_rows_free(). Collective. */
tess_status clean_inputs_mask(const image_run *run, int64_t output, int pol,
                              tess_rows *mask);

/** With --pb-mask, these rows of an output and polarisation: not 0 where the primary
 *  beam is above the level, in host memory. As of clean_inputs_mask(); without the
 *  option, or without data, `*region` has no pixels. Collective. */
tess_status clean_inputs_beam(const image_run *run, int64_t output, int pol,
                              tess_rows *region);

/** Fill rows of double with those of NAME-model.fits, or of a set or cube of models
 *  (continued_models.c); blank pixels become 0. `comm`: the ranks that take part.
 *  Collective. */
tess_status clean_inputs_model(image_run *run, tess_comm *comm, int64_t interval,
                               int64_t channel, int pol, tess_rows *rows);

/** Close the models that the functions above have opened. Local. */
void clean_inputs_free(image_run *run);

/** Where WSClean would write it, write NAME-horizon-mask.fits: 1 where the first
 *  output's components may be, also by the user's mask, and else 0. The run is planned.
 *  Collective over all ranks. */
tess_status horizon_mask_write(const image_run *run);

/* ---- continued_models.c: models of an earlier run, NAME-model.fits and the like ----
 *
 *  Output channels take those images of the model that have their frequencies. Where a
 *  set of files, or a cube, has other channels, an output channel takes the values of
 *  the function that --fit-spectral-pol or --fit-spectral-log-pol fits to them, or else
 *  the nearest channel (channel_model.h).
 */

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
                                  tess_rows *rows);

#endif
