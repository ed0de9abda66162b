/** @file taper.h  (private to grid/)
 *  Tapers of imaging weights by the baseline's length.
 */
#ifndef TESS_TAPER_H
#define TESS_TAPER_H

#include "tess_weight.h"

/** The factor of a weight at (u, v) [wavelengths], 0 to 1. Local. */
double taper_at(const tess_taper *taper, double u, double v);

#endif
