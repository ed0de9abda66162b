/** @file clean_scales.h
 *  The kernels of multiscale CLEAN.
 */
#ifndef TESS_CLEAN_SCALES_H
#define TESS_CLEAN_SCALES_H

#include "tess_clean.h"

/** The width of the beam [pixels] that scales go by. Local. */
double clean_beam_px(const tess_clean_opts *opts);

/** Half the width of the box [pixels] that holds the kernel of scale α: it reaches from
 *  −half to +half; 0 for scale 0. Local. */
int64_t clean_kernel_half(tess_clean_shape shape, double scale_px);

/** The kernel [2·half + 1][2·half + 1] of unit sum. Local. */
void clean_kernel_fill(tess_clean_shape shape, double scale_px, double *kernel);

/** Pixels at each edge without components of this scale, ⌈α/2⌉. Local. */
int64_t clean_scale_border(double scale_px);

#endif
