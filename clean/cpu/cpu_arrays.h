/** @file cpu_arrays.h  (private to clean/)
 *  Arrays of images and spectra.
 */
#ifndef TESS_CLEAN_CPU_ARRAYS_H
#define TESS_CLEAN_CPU_ARRAYS_H

#include <stddef.h>
#include <stdint.h>

/** `count` arrays of zeros, or NULL. Local. */
void **cpu_arrays_create(int count, int64_t elements, size_t bytes);
void cpu_arrays_free(void **array, int count); /**< NULL is fine. Local. */

#endif
