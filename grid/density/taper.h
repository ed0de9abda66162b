/** @file taper.h  (private to grid/)
 *  Tapers of imaging weights by the baseline's length, and towards the grid's edges.
 */
#ifndef TESS_TAPER_H
#define TESS_TAPER_H

#include "tess_weight.h"

/** The factor of a weight at (u, v) [wavelengths], 0 to 1. The grid ends at ±end_u and
 *  ±end_v. Local. */
double taper_at(const tess_taper *taper, double u, double v, double end_u,
                double end_v);

#endif
