/** @file imaging_weights.h  (private to app/imager/run/)
 *  The imaging weights of a run, as a column of its MeasurementSets.
 */
#ifndef TESS_IMAGING_WEIGHTS_H
#define TESS_IMAGING_WEIGHTS_H

#include "image_run.h"

/** Before data are read: TESS_ERR_USAGE for --store-imaging-weights of observations
 *  that are no MeasurementSets. Local. */
tess_status imaging_weights_check(const image_run *run);

/** Write the factors by which weights are multiplied into IMAGING_WEIGHT_SPECTRUM, as
 *  WSClean's -store-imaging-weights does: a correlation has the factor of the first
 *  image that is made of it, flagged or not, and 0 where it is an autocorrelation,
 *  beyond the grid or outside --uvrange. What is not selected keeps what the column
 *  has, and 0 in a new one. Reads the data anew. Collective over all ranks of the run.
 */
tess_status imaging_weights_store(image_run *run);

#endif
