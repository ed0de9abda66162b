/** @file tess_beam.h
 *  The restoring beam: an elliptical Gaussian fitted to the centre of the PSF.
 */
#ifndef TESS_BEAM_H
#define TESS_BEAM_H

#include <stdbool.h>
#include <stdint.h>

/** FWHM along both axes [pixels] and position angle of the major axis, from North
 *  through East [rad]. */
typedef struct tess_beam {
    double major, minor, angle;
} tess_beam;

/** Side of the box that WSClean fits in for a beam of this FWHM [pixels]: ten beams, even,
 *  at least ten pixels, at most `limit`. */
int64_t tess_beam_box(double beam, int64_t limit);

/** Least-squares fit of a Gaussian of unit height at pixel (nx/2, ny/2) to psf[ny][nx] (row
 *  0 southernmost, column 0 easternmost), by Levenberg-Marquardt from a circular start of
 *  FWHM `start` [pixels]. False when the fit fails. Local.
 *
 *  The beam is WSClean's, so that images of both can be compared and restored alike: of the
 *  residuals only those with x ≥ 0 and y ≥ 0 count (WSClean 3.1, whose pixel offsets are
 *  unsigned; found by comparing its fits with ones of every half and quadrant of the PSF,
 *  and equal to them in four digits). A PSF is symmetric about its centre, so this is half
 *  of its information, but not its mirror half: the fit differs from that of the whole box
 *  by a few percent, and by more where a pedestal dominates. */
bool tess_beam_fit(const double *psf, int64_t nx, int64_t ny, double start,
                   tess_beam *beam);

#endif
