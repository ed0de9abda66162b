/** @file device_predict.h  (private to app/imager/)
 *  Prediction by the device from file to file: rows of a UVFITS file go there as they
 *  are, their visibilities are replaced, and they come back to be written.
 */
#ifndef TESS_DEVICE_PREDICT_H
#define TESS_DEVICE_PREDICT_H

#include "imager_model.h"
#include "source.h"

/** Can it be done? From UVFITS rows that can be read as they are into a copy of their
 *  file, on a device that holds the whole model. The predictor's model is open. Local,
 *  after the source's setup. */
bool device_predict_possible(const imager_predictor *predictor,
                             const tess_source *source);

/** Predict all rows of the source and write them with tess_vis_write_raw; as many at a
 *  time as fit on the device. Every rank does so for its own rows, from the whole
 *  model: nothing is exchanged but the extent in w, by which all use one plan. Errors
 * as of reading, writing and tess_device_alloc. Collective. */
tess_status device_predict_rows(imager_predictor *predictor, tess_source *source,
                                tess_vis_writer *writer);

#endif
