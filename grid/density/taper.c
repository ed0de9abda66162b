/* Tapers imaging weights by the length of the baseline, and towards the edges of the
 * grid. */
#include "density_pages.h"

#include <math.h>

#include "tess_const.h"

bool tess_taper_is_none(const tess_taper *taper)
{
    return !(taper->fwhm_rad > 0) && !(taper->outer_lambda > 0) &&
           !(taper->inner_lambda > 0) && !taper->cuts && !(taper->edge_lambda > 0) &&
           !(taper->edge_tukey_lambda > 0);
}

/* Rises as half a cosine from 0 at x = 0 to 1 at x = width. */
static double transition(double x, double width)
{
    if (x <= 0) return 0;
    return x < width ? 0.5 - 0.5 * cos(TESS_PI * x / width) : 1;
}

/* Returns the factor at a distance from an edge. */
static double at_edge(const tess_taper *taper, double distance)
{
    const double inside = distance - taper->edge_lambda;
    if (taper->edge_tukey_lambda > 0)
        return transition(inside, taper->edge_tukey_lambda);
    return inside < 0 ? 0 : 1;
}

density_gauss taper_gauss(const tess_taper *taper)
{
    return (density_gauss){.fwhm_rad = taper->fwhm_rad,
                           .minor_rad = taper->minor_rad,
                           .sin_pa = sin(taper->angle_rad),
                           .cos_pa = cos(taper->angle_rad)};
}

double taper_at(const tess_taper *taper, double u, double v, double end_u, double end_v)
{
    const double rho = hypot(u, v);
    const bool beyond = taper->max_lambda > 0 && rho > taper->max_lambda;
    double factor = 1;
    if (taper->cuts && (beyond || rho < taper->min_lambda)) return 0;
    if (taper->fwhm_rad > 0) {
        const density_gauss gauss = taper_gauss(taper);
        factor *= density_gaussian(&gauss, u, v);
    }
    if (taper->outer_lambda > 0)
        factor *= transition(taper->max_lambda - rho, taper->outer_lambda);
    if (taper->inner_lambda > 0)
        factor *= transition(rho - taper->min_lambda, taper->inner_lambda);
    if (taper->edge_lambda > 0 || taper->edge_tukey_lambda > 0)
        factor *= at_edge(taper, end_u - fabs(u)) * at_edge(taper, end_v - fabs(v));
    return factor;
}
