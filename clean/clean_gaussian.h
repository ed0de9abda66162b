/** @file clean_gaussian.h  (private to clean/)
 *  Elliptical Gaussians on pixels: x grows to the West, y to the North.
 */
#ifndef TESS_CLEAN_GAUSSIAN_H
#define TESS_CLEAN_GAUSSIAN_H

#include "tess_clean.h"

/** The squared widths (FWHM) of a Gaussian as a matrix [pixels²]: those of two that are
 *  convolved add up. */
typedef struct clean_widths {
    double xx, yy, xy;
} clean_widths;

/** exp(−(along_x x² + along_y y² + across x y)), x and y in pixels. */
typedef struct clean_exponent {
    double along_x, along_y, across;
} clean_exponent;

clean_widths clean_widths_of(double major_px, double minor_px, double angle_rad);

/** Square of the area of the ellipse, major² · minor²; 0 where it has no width. */
double clean_widths_determinant(const clean_widths *widths);

/** The exponent of a Gaussian of these widths, whose determinant is above 0. */
clean_exponent clean_exponent_of(const clean_widths *widths);

#endif
