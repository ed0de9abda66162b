/** @file device_pixels.h  (private to base/device/)
 *  Arithmetic on pixels in device memory: device_pixels.cu, or
 *  tests/emulated/pixels_emulated.c.
 */
#ifndef TESS_DEVICE_PIXELS_H
#define TESS_DEVICE_PIXELS_H

#include "tess_place.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Functions of tess_place. */
tess_status device_pixels_mix(const tess_mixture *how, const tess_pixels *from,
                              const tess_pixels *to);
tess_status device_pixels_sum(const tess_pixels *of, tess_pixel_sums *sums);
tess_status device_pixels_measure(const tess_pixels *of, tess_row_measure *row);
tess_status device_pixels_count(const tess_pixels *of, const tess_pixel_order *order,
                                int64_t bins[TESS_PIXEL_BINS]);

#ifdef __cplusplus
}
#endif
#endif
