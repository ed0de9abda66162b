/** @file cpu_window.h  (private to clean/)
 *  The current scale's PSFs, convolved twice with the kernel: of each image, or of each
 *  pair of layers (cpu_layers.h). One copy is in memory that the ranks of a node share.
 */
#ifndef TESS_CLEAN_CPU_WINDOW_H
#define TESS_CLEAN_CPU_WINDOW_H

#include "clean_scales.h"
#include "cpu_work.h"

/** Bytes of the largest window, over all ranks of a node. Local. */
double cpu_window_bytes(const clean_setup *setup);

/** Bytes of the rows of all scales that ranks keep, each its share of them. Local. */
double cpu_window_kept_bytes(const clean_setup *setup);

/** Allocate the memory. TESS_ERR_RESOURCE: the ranks of a node cannot share it.
 * Collective. */
tess_status cpu_window_create(clean_work *work, cpu_window **window);
void cpu_window_free(cpu_window *window); /**< NULL is fine. Collective. */

/** Forget the rows that are kept, because PSFs have changed. Local. */
void cpu_window_forget(cpu_window *window);

/** Fill the window for a scale, unless it has been. Collective. */
tess_status cpu_window_fill(clean_work *work, int scale);

/** The PSF of an image. If layers are sums, number 0 holds those of all pairs of
 * layers. Local. */
cpu_psf cpu_window_psf(const cpu_window *window, int number);

/** The value of the PSF of an image at its centre, or of that between the first of the
 *  layers that are sums. Local. */
double cpu_window_centre(const clean_work *work, int number);

#endif
