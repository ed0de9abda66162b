/** @file cpu_layers.h  (private to clean/)
 *  What the cpu backend holds images and spectra of. Layers are the residual images, or
 *  fewer sums of them (clean_layers.h).
 */
#ifndef TESS_CLEAN_CPU_LAYERS_H
#define TESS_CLEAN_CPU_LAYERS_H

#include "clean_layers.h"
#include "cpu_work.h"

/** `count` arrays of zeros, or NULL. Local. */
void **cpu_arrays_create(int count, int64_t elements, size_t bytes);
void cpu_arrays_free(void **array, int count); /**< NULL is fine. Local. */

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
