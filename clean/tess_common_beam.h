/** @file tess_common_beam.h
 *  One beam for several images: the smallest that contains the beams of all of them,
 *  and images that are convolved to it.
 *
 *  A Gaussian beam is the matrix of its squared widths, and those of two that are
 *  convolved add up. So an image of beam A can be convolved to beam C if C − A has no
 *  negative eigenvalue, which is the case if the ellipse of C contains that of A.
 */
#ifndef TESS_COMMON_BEAM_H
#define TESS_COMMON_BEAM_H

#include "tess_clean.h"

/** Find the beam of least area that contains the `num` beams; those of no width do not
 *  count. If one of them contains the others, it is this one, with the same numbers;
 *  zeros where there is none. Local. */
void tess_common_beam(const tess_clean_beam *beam, int64_t num,
                      tess_clean_beam *common);

/** Convolve an image of beam `from` [Jy/beam], in place, to beam `to`, which contains
 *  the other, in the units of the new beam: a point source keeps its peak. `image` is
 *  this rank's rows, with all columns, of type single or double; NaN stays NaN, and
 *  counts as 0. TESS_ERR_ALLOC, errors of a device. Collective. */
tess_status tess_common_beam_widen(tess_comm *comm, const tess_clean_opts *opts,
                                   const tess_clean_beam *from,
                                   const tess_clean_beam *to, const tess_rows *image);

#endif
