/** @file cuda_spectra.h  (private to clean/)
 *  Transforms between images and spectra on the device: residuals at scales, PSFs, and
 *  the changes that components make in them. Local throughout.
 */
#ifndef TESS_CLEAN_CUDA_SPECTRA_H
#define TESS_CLEAN_CUDA_SPECTRA_H

#include "cuda_work.h"

/** spectrum := that of work->plane, which is overwritten. */
tess_status cuda_forward(clean_work *work, void *spectrum);

/** plane := `from` times these factors, normalised. */
tess_status cuda_back(clean_work *work, const void *from, cuda_factors by);

/** image := `spectrum` at a scale (−1: as it is), times factor (NULL: 1). */
tess_status cuda_make_image(clean_work *work, int scale, const void *spectrum,
                            const void *factor, void *image);

/** Make the table of a scale's kernel and, on the rank that leads, its spectrum. */
tess_status cuda_make_kernel(clean_work *work, int scale);

/** Make the spectrum of a PSF, and its peaks at all scales. */
tess_status cuda_make_psf(clean_work *work, int image, const cuda_pixels *psf);

/** If layers are sums: make the PSFs between layers, once for all PSFs, and begin with
 *  no components found. */
tess_status cuda_begin_layers(clean_work *work);

/** Make the PSFs of a scale, unless they are there. */
tess_status cuda_make_window(clean_work *work, int scale);
void cuda_forget_windows(clean_work *work);

/** Forget them if the device has no room left for as many: another object, which counts
 *  on room for those of a scale, may be the next one to clean. */
void cuda_spare_windows(clean_work *work);

/** Make the spectra of the residual images in a slot. */
tess_status cuda_make_residual(clean_work *work, const cuda_slot *slot);

/** Make the images of a slot's scale, unless they are there. */
tess_status cuda_make_images(clean_work *work, cuda_slot *slot);

/** Make the residual itself in a slot. */
tess_status cuda_make_plain(clean_work *work, cuda_slot *slot);

/** Subtract merged components of a scale from the residual. */
tess_status cuda_subtract(clean_work *work, int scale, const clean_components *merged);

/** If layers are sums: plane := what this minor loop has found in an image, convolved
 *  with its PSF. */
tess_status cuda_make_change(clean_work *work, int image);

#endif
