/* The autocorrelation of primary beams. */
#include "pointing_overlap.h"

#include <math.h>

#include "tess_const.h"
#include "tess_mem.h"
#include "tess_primary_beam.h"

/* Points of a beam from its middle to its reach, points across it, and directions that
 * are averaged. */
enum { RADII = 256, ACROSS = 96, DIRECTIONS = 32 };

/* Sets profile[RADII + 2] to the mean over directions. */
static void find_profile(const tess_beam_mean *beam, double reach, double limit,
                         double *profile)
{
    for (int k = 0; k < RADII + 2; ++k) {
        const double r = reach * k / RADII;
        profile[k] = 0;
        for (int d = 0; k < RADII && d < DIRECTIONS; ++d) {
            const double angle = TESS_TWO_PI * d / DIRECTIONS;
            const double power =
                tess_beam_mean_power(beam, r * cos(angle), r * sin(angle));
            profile[k] += (fabs(power) >= limit ? power : 0) / DIRECTIONS;
        }
    }
}

/* The profile at a distance in units of the reach. */
static double profile_at(const double *profile, double r)
{
    if (!(r < 1)) return 0;
    const int k = (int)(r * RADII);
    const double t = r * RADII - k;
    return (1 - t) * profile[k] + t * profile[k + 1];
}

/* The integral of the beam times itself at a distance, in units of the reach. */
static double product_at(const double *profile, double distance)
{
    double sum = 0;
    for (int j = 0; j < ACROSS; ++j)
        for (int i = 0; i < ACROSS; ++i) {
            const double x = (2 * i + 1.0) / ACROSS - 1, y = (2 * j + 1.0) / ACROSS - 1;
            const double here = profile_at(profile, sqrt(x * x + y * y));
            if (fabs(here) > 0)
                sum += here * profile_at(profile,
                                         sqrt((x + distance) * (x + distance) + y * y));
        }
    return sum;
}

tess_status pointing_overlap_add(pointing_overlap *overlap, const tess_beam_mean *beam,
                                 double limit, double weight)
{
    tess_status status = TESS_OK;
    double *profile = tess_alloc(RADII + 2, sizeof *profile);
    if (!profile) TESS_FAIL(TESS_ERR_ALLOC, "a beam");
    find_profile(beam, overlap->reach, limit, profile);
    const double all = product_at(profile, 0);
    for (int k = 0; all > 0 && k <= POINTING_OVERLAP_STEPS; ++k)
        overlap->at[k] +=
            weight * product_at(profile, 2.0 * k / POINTING_OVERLAP_STEPS) / all;
cleanup:
    tess_free(profile);
    return status;
}

double pointing_overlap_at(const pointing_overlap *overlap, double distance)
{
    const double step = 2 * overlap->reach / POINTING_OVERLAP_STEPS;
    const double r = distance / step;
    if (!(overlap->at[0] > 0) || !(r < POINTING_OVERLAP_STEPS)) return 0;
    const int k = (int)r;
    const double t = r - k;
    return ((1 - t) * overlap->at[k] + t * overlap->at[k + 1]) / overlap->at[0];
}
