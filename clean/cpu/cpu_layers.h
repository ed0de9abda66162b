/** @file cpu_layers.h  (private to clean/)
 *  What the cpu backend holds images and spectra of. Layers are the residual images, or
 *  fewer sums of them.
 *
 *  The spectrum of a component is a polynomial of T terms, which is fitted to C
 *  channels of weights w_c. Let b_t be polynomials with Σ_c w_c b_tc b_uc = 1 for
 *  t = u, else 0. Then a component depends on the T sums g_t = Σ_c w_c b_tc R_c of the
 *  residuals alone: its value in channel c is Σ_t g_t b_tc, times the gain. It changes
 *  g_u by the sum over t of g_t times the PSF Σ_c w_c b_tc b_uc PSF_c. The first sum is
 *  the mean, as b_0 = 1. So for T < C the sums are the layers. Sums and PSFs of this
 *  kind are those of Rau & Cornwell (2011, A&A 532, A71, sections 3 and 4), with
 *  orthonormal polynomials for powers.
 */
#ifndef TESS_CLEAN_CPU_LAYERS_H
#define TESS_CLEAN_CPU_LAYERS_H

#include "cpu_work.h"

/** `count` arrays of zeros, or NULL. Local. */
void **cpu_arrays_create(int count, int64_t elements, size_t bytes);
void cpu_arrays_free(void **array, int count); /**< NULL is fine. Local. */

/** Number of layers, and of PSFs between them. Local. */
int cpu_layers_count(const clean_setup *setup);
int cpu_layers_psfs(const clean_setup *setup);

/** Whether layers are sums of images. Local. */
bool cpu_layers_are_sums(const clean_setup *setup);

/** Allocate memory. TESS_ERR_ALLOC. Local. */
tess_status cpu_layers_create(clean_work *work);
void cpu_layers_free(clean_work *work);

/** Whether a layer has data. Other layers stay 0 and are not transformed. Local. */
bool cpu_layer_has_data(const clean_work *work, int layer);

/** The value in a layer of a component with these values in images. Local. */
double cpu_layer_value(const clean_work *work, int layer, const double *flux);

/** Compute the values in images, flux[num_images], of a component with these values in
 * layers. If layers are images, its spectrum is also fitted to `value`. Local. */
void cpu_layers_flux(const clean_work *work, const double *noise, double *value,
                     double *flux);

/** If layers are sums: make the PSFs between layers, once for all PSFs, and begin with
 * no components found. Local. */
void cpu_layers_begin(clean_work *work);

/** If layers are sums: convolve a column of a layer's components with the kernel (NULL:
 * 1), and subtract it from all layers. Local. */
void cpu_layers_less(clean_work *work, int layer, const void *kernel, int64_t column,
                     void *line);

/** If layers are sums: subtract what was found from the caller's rows of all images,
 * which work->room.view shows, except at NaN pixels. Collective. */
tess_status cpu_layers_finish(clean_work *work);

#endif
