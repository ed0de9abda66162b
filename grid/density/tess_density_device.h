/** @file tess_density_device.h
 *  Imaging weights of samples that are in device memory (tess_weight.h): counted and
 *  applied there, while pages of cells are summed over ranks in host memory.
 */
#ifndef TESS_DENSITY_DEVICE_H
#define TESS_DENSITY_DEVICE_H

#include "tess_device_samples.h"
#include "tess_weight.h"

/** As tess_density_add, for all samples. TESS_ERR_ALLOC when cells do not fit on the
 *  device. Waits; Local. */
tess_status density_device_add(tess_density *density,
                               const tess_device_samples *samples);

/** As tess_density_apply; the sums of imaging weights go to sum_weights[num_weight],
 *  the largest ones to largest[num_weight].
 *  Waits; Local. */
tess_status density_device_apply(const tess_density *density,
                                 const tess_device_samples *samples,
                                 double *sum_weights, double *largest);

#endif
