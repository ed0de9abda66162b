/** @file device_predict.h  (private to app/imager/)
 *  Prediction on the device from file to file: rows of a UVFITS file are copied to the
 *  device as they are, their visibilities are replaced, and the rows are copied back
 *  and written.
 */
#ifndef TESS_DEVICE_PREDICT_H
#define TESS_DEVICE_PREDICT_H

#include "predictor.h"
#include "source.h"

/** Whether such a prediction is possible: UVFITS rows can be read as they are into a
 * copy of their file, and the device holds the whole model. The predictor's model is
 * open, and the source is set up. Local. */
bool device_predict_possible(const imager_predictor *predictor,
                             const tess_source *source);

/** Predict all rows of the source, and write them with tess_vis_write_raw, as many at a
 * time as fit on the device. Every rank predicts its own rows from the whole model.
 * Ranks exchange nothing but the extent in w, so that all use one plan. Errors as of
 * reading, writing and tess_device_alloc. Collective. */
tess_status device_predict_rows(imager_predictor *predictor, tess_source *source,
                                tess_vis_writer *writer);

#endif
