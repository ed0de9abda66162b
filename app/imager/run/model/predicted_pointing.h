/** @file predicted_pointing.h  (private to app/imager/run/)
 *  What a pointing sees of a model in true flux: the model times the primary beam.
 */
#ifndef PREDICTED_POINTING_H
#define PREDICTED_POINTING_H

#include "imager_job.h"
#include "imager_model.h"
#include "source.h"
#include "tess_comm.h"
#include "tess_geom.h"
#include "tess_imager_predict.h"

typedef struct predicted_pointing predicted_pointing;

/** What a pointing sees. */
typedef struct predicted_view {
    tess_comm *comm;
    tess_source *source; /**< is set up, and keeps the origins of its rows; borrowed */
    int reader;          /**< of the source, whose field has this pointing */
    tess_predict_beam beam;
    tess_geom geom; /**< of the model */
    int threads;
} predicted_view;

/** Open the beam and find the pixels of a model that it reaches from a pointing: one
 * beam for each pair of kinds of dishes. Times are read for a beam that turns, which is
 *  the mean over them; the pixels are those of all integrations, so that the mean over
 *  any of them may be chosen. All channels of the beam count the same. Errors of
 * image_dishes_open(). Collective. */
tess_status predicted_pointing_create(const predicted_view *view,
                                      predicted_pointing **pointing);
void predicted_pointing_free(predicted_pointing *pointing); /**< NULL is fine. Local. */

/** Channels and times of which a beam is the mean. */
typedef struct predicted_mean {
    const int32_t *chan_output; /**< channels of the beam whose entry is */
    int64_t output;             /**< this; NULL: all channels */
    const double *time_mjd_s;   /**< [2] integrations in [first, end); NULL: all */
} predicted_mean;

/** Take the mean beam of these channels and times. Where there are none, the beam stays
 * as it is. TESS_ERR_ALLOC, TESS_ERR_IO. Local. */
tess_status predicted_pointing_choose(predicted_pointing *pointing,
                                      const predicted_mean *of);

/** These pixels, as a part of the model for each pair of kinds of dishes. A plane of a
 * model of several has the beams of the channels to which it is the nearest. Borrows
 * the pointing. Local. */
imager_parts predicted_pointing_parts(predicted_pointing *pointing);

/** Choose the middle of the model in a file as that of the prediction, unless the
 * selection has one, and warn, on one rank, of a model that may not be in true flux.
 * Errors of model_cube_open() and tess_fits_open(). Local. */
tess_status predicted_pointing_center(const tess_comm *comm,
                                      const tess_predict_opts *opts,
                                      tess_selection *selection);

/** The view with which rows take the part of their pair of dishes; zeros if there is
 * one part. Borrows the pointing. Local. */
imager_view predicted_pointing_view(const predicted_pointing *pointing, int num_pol);

#endif
