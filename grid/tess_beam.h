/** @file tess_beam.h
 *  The restoring beam: an elliptical Gaussian fitted to the centre of the PSF.
 */
#ifndef TESS_BEAM_H
#define TESS_BEAM_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

/** FWHM along both axes [pixels] and position angle of the major axis, from North
 *  through East [rad]. All zero: no beam. */
typedef struct tess_beam {
    double major, minor, angle;
} tess_beam;

/** Why there is no beam. */
typedef enum tess_beam_failure {
    TESS_BEAM_FOUND,
    TESS_BEAM_FEW_PIXELS, /**< as few as the fit has parameters, or all of them 0 */
    TESS_BEAM_ENDLESS,  /**< at least half the peak up to the edge in some direction */
    TESS_BEAM_NARROW,   /**< less than half the peak one pixel off it */
    TESS_BEAM_COLLAPSED /**< neither: the fit did not end in an ellipse */
} tess_beam_failure;

/** Side of the box to fit in for a beam of this FWHM [pixels]: `beams` of them (10 by
 *  default, as WSClean has it), even, at most `limit`; at least ten pixels, and two
 * where `beams` is less than ten. */
int64_t tess_beam_box(double beam, double beams, int64_t limit);

/** Whether a beam found in a box of this side is to be fitted again in a larger one. */
bool tess_beam_box_is_small(double beam, double beams, int64_t side);

/** Fit a Gaussian of unit height at pixel (nx/2, ny/2) to psf[ny][nx] (row 0
 *  southernmost, column 0 easternmost), from a circular start of FWHM `start` [pixels].
 *  Pixels that are not finite are left out. `beam` is zero when no fit ends in an
 *  ellipse of at least half a pixel; `failure` says why. TESS_ERR_ALLOC. Local.
 *
 *  Users compare with WSClean and restore at its beam: this is the fit of its version
 *  3.1, found by watching its steps, to five digits or better wherever that stops. It
 *  is MINPACK's Levenberg-Marquardt (Moré 1978) over the pixels with x ≥ 0 and y ≥ 0
 *  (WSClean's offsets are unsigned), with a wrong sign in the derivatives, broken off
 *  after 500 steps: on a very elongated PSF, or one on a pedestal, it is no
 *  least-squares fit. Where it collapses to a line, narrower starts are tried. */
tess_status tess_beam_fit(const double *psf, int64_t nx, int64_t ny, double start,
                          tess_beam *beam, tess_beam_failure *failure);

/** Fit a circular Gaussian of unit height in the same way: by least squares over the
 *  pixels with x ≥ 0 and y ≥ 0, which are WSClean's. `beam` is zero when it is narrower
 *  than half a pixel, or does not end within the box; `failure` says why. Local. */
void tess_beam_fit_circle(const double *psf, int64_t nx, int64_t ny, double start,
                          tess_beam *beam, tess_beam_failure *failure);

#endif
