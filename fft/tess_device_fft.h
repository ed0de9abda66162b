/** @file tess_device_fft.h
 *  Two-dimensional transforms of real images on the device of this process, in its
 *  stream (tess_device.h). Local throughout.
 */
#ifndef TESS_DEVICE_FFT_H
#define TESS_DEVICE_FFT_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tess_device_fft tess_device_fft;

/** Plan transforms of images [ly][lx]. TESS_ERR_ALLOC, TESS_ERR_RESOURCE. */
tess_status tess_device_fft_create(int64_t lx, int64_t ly, bool is_double,
                                   tess_device_fft **fft);
void tess_device_fft_destroy(tess_device_fft *fft); /**< NULL is fine */

/** Bytes of device memory that a plan takes, about. */
double tess_device_fft_bytes(int64_t lx, int64_t ly, bool is_double);

/** Transform an image [ly][lx] to a spectrum [ly][lx/2 + 1] (complex), and back, both
 *  unnormalised. The first array given may be overwritten. TESS_ERR_RESOURCE. */
tess_status tess_device_fft_forward(tess_device_fft *fft, void *image, void *spectrum);
tess_status tess_device_fft_back(tess_device_fft *fft, void *spectrum, void *image);

#ifdef __cplusplus
}
#endif
#endif
