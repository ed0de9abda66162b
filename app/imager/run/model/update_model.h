/** @file update_model.h  (private to app/imager/run/)
 *  The models of a run, as a column of its MeasurementSets.
 */
#ifndef TESS_UPDATE_MODEL_H
#define TESS_UPDATE_MODEL_H

#include "image_run.h"

/** Before data are read: TESS_ERR_USAGE for observations that are no MeasurementSets,
 * and where MODEL_DATA is what is imaged. Local. */
tess_status update_model_check(const image_run *run);

/** Predict NAME-model.fits of all outputs into MODEL_DATA, or another column, of all
 * rows that are selected, flagged or not. Collective over all ranks of the run. */
tess_status update_model(image_run *run);

/** The same in place of images, once the run is set up: checks the files, begins the
 * log, and tells what was written. Collective. */
tess_status update_model_alone(image_run *run);

#endif
