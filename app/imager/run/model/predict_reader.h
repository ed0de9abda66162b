/** @file predict_reader.h  (private to app/imager/run/)
 *  Predictions at the rows that a run reads.
 */
#ifndef TESS_PREDICT_READER_H
#define TESS_PREDICT_READER_H

#include "image_run.h"
#include "tess_imager_predict.h"

/** Predict at the rows that the k-th reader of the run has read, as `all` says, whose
 *  observation and field are set here: where the reader is one of several of its set,
 *  these are the rows of its field. Times and bytes count as the run's. Collective. */
tess_status predict_reader(image_run *run, int k, const tess_predict_opts *all);

#endif
