/** @file cuda_local_rms.h  (private to clean/)
 *  The local noise of an image on the device.
 */
#ifndef TESS_CLEAN_CUDA_LOCAL_RMS_H
#define TESS_CLEAN_CUDA_LOCAL_RMS_H

#include "cuda_work.h"

/** Fill work->factor_rows from the mean residual; `*least` gets the smallest σ. Local.
 */
tess_status cuda_local_rms(clean_work *work, const void *mean, double *least);

#endif
