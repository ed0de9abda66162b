/** @file cpu_spectra.h  (private to clean/)
 *  Transforms between rows and spectra: residuals at scales, PSFs, and the changes that
 *  components make in them.
 */
#ifndef TESS_CLEAN_CPU_SPECTRA_H
#define TESS_CLEAN_CPU_SPECTRA_H

#include "cpu_work.h"

/** Make the spectrum of a scale's kernel. Collective. */
tess_status cpu_make_kernel(clean_work *work, int scale);

/** Make the spectrum of a PSF in host memory, by its number in clean_work.psf.
 * Collective. */
tess_status cpu_make_psf(clean_work *work, int number, const tess_rows *psf);

/** Make the spectra of the residual images in a slot. Collective. */
tess_status cpu_make_residual(clean_work *work, cpu_slot *slot);

/** Make the residual at a scale in a slot. Collective. */
tess_status cpu_make_scale(clean_work *work, int scale, cpu_slot *slot);

/** Make the residual itself in a slot. Collective. */
tess_status cpu_make_plain(clean_work *work, cpu_slot *slot);

/** Make the images of a slot's scale, unless they are there. Collective. */
tess_status cpu_make_images(clean_work *work, cpu_slot *slot);

/** Subtract components, which are merged first, from the residual. Collective. */
tess_status cpu_subtract(clean_work *work, int scale, clean_components *merged);

#endif
