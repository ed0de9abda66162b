/** @file cuda_noise.h  (private to clean/)
 *  Noise of images on the device.
 */
#ifndef TESS_CLEAN_CUDA_NOISE_H
#define TESS_CLEAN_CUDA_NOISE_H

#include "cuda_work.h"

/** Sums over all pixels of an image that are not NaN; `least` is the least value.
 * Waits. Local. */
tess_status cuda_sums(const clean_work *work, const cuda_pixels *image,
                      cuda_row_sum *sum);

/** The median of an image of the transforms' precision, and 1.4826 times the median
 * absolute deviation, without NaN pixels. Local. */
tess_status cuda_deviation(const clean_work *work, const void *image,
                           clean_noise *noise);

/** What is expected of weight · noise² of a channel in a slot's images, for each
 *  polarisation, noise[num_pol]. Waits. Local. */
tess_status cuda_channel_noise(const clean_work *work, const cuda_slot *slot,
                               double *noise);

#endif
