/** @file cpu_borders.h  (private to clean/)
 *  Subtracts components from residuals whose places have gains of their own
 *  (clean_borders.h): those of one place after the other, because each place sees its
 *  own share of them.
 */
#ifndef TESS_CLEAN_CPU_BORDERS_H
#define TESS_CLEAN_CPU_BORDERS_H

#include "cpu_work.h"

/** As cpu_subtract(), which it takes the place of if there are borders. A pixel of a
 *  component's kernel belongs to the place that it lies in. Collective. */
tess_status cpu_borders_subtract(clean_work *work, int scale, clean_components *merged);

/** Bytes that it takes on a rank. Local. */
double cpu_borders_bytes(const clean_setup *setup);

#endif
