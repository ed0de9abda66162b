/* Elliptical Gaussians on pixels. */
#include "clean_gaussian.h"

#include <math.h>

clean_widths clean_widths_of(double major_px, double minor_px, double angle_rad)
{
    /* unit vectors along the major axis, (−sin, cos) of (West, North), and the minor
     * axis, (cos, sin) */
    const double c = cos(angle_rad), s = sin(angle_rad);
    const double major = major_px * major_px, minor = minor_px * minor_px;
    return (clean_widths){.xx = major * s * s + minor * c * c,
                          .yy = major * c * c + minor * s * s,
                          .xy = s * c * (minor - major)};
}

double clean_widths_determinant(const clean_widths *widths)
{
    return widths->xx * widths->yy - widths->xy * widths->xy;
}

clean_exponent clean_exponent_of(const clean_widths *widths)
{
    const double scale = 4 * log(2) / clean_widths_determinant(widths);
    return (clean_exponent){.along_x = scale * widths->yy,
                            .along_y = scale * widths->xx,
                            .across = -2 * scale * widths->xy};
}
