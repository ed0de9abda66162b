/** @file channel_model.h  (private to app/imager/run/)
 *  The image that a model of several channels has for one channel of a run.
 */
#ifndef TESS_CHANNEL_MODEL_H
#define TESS_CHANNEL_MODEL_H

#include "model_cube.h"
#include "tess_clean.h"

/** The channel, and how its image is found where the model lacks it. */
typedef struct channel_model {
    double freq_hz, width_hz;
    tess_clean_spectrum spectrum; /**< that is fitted to each pixel of the model's
                                       channels; TESS_CLEAN_EACH_CHANNEL: none, and the
                                       nearest channel serves */
    int num_terms; /**< of it; where fewer channels have data, as many as these */
    int threads;
} channel_model;

/** Whether a frequency is the channel's, to a thousandth of its width. Local. */
bool channel_model_is(const channel_model *channel, double freq_hz);

/** The plane of the channel's frequency, or −1. A model
 *  of one plane has it for every channel. Local. */
int channel_model_plane(const model_cube *cube, const channel_model *channel);

/** Rows of the channel's image of Stokes parameter `stokes` (index into cube->stokes):
 *  out[num_rows][nx]. Blank pixels count as 0. The cube is of planes, not of terms.
 *  TESS_ERR_IO, TESS_ERR_ALLOC. Local. */
tess_status channel_model_read(const model_cube *cube, const channel_model *channel,
                               int stokes, int64_t row_first, int64_t num_rows,
                               double *out);

#endif
