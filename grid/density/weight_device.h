/** @file weight_device.h  (private to grid/)
 *  Densities of samples in device memory: cells of all pages, one page after another
 *  (density.h). The source of the device, or tests/emulated/weight_emulated.c.
 *
 *  Both are enqueued; TESS_ERR_RESOURCE for whatever the device reports. Local.
 */
#ifndef TESS_WEIGHT_DEVICE_H
#define TESS_WEIGHT_DEVICE_H

#include "density.h"
#include "tess_device_samples.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Add all natural weights to device memory cell[num_pages][cells of a page], and note
 *  in touched[num_pages] which pages have samples. */
tess_status weight_device_add(const density_layout *layout,
                              const tess_device_samples *samples, double *cell,
                              unsigned char *touched);

/** Multiply all weights by their cells' factors, and add them up in device memory
 *  sum[num_weight]. The largest ones go to sum[num_weight …], which begin as 0. */
tess_status weight_device_apply(const density_layout *layout, const double *cell,
                                const tess_device_samples *samples, double *sum);

#ifdef __cplusplus
}
#endif
#endif
