/** @file uv_range.h  (private to app/imager/)
 *  Which baselines are taken, by their length. One source for the processor and for
 *  devices.
 */
#ifndef TESS_UV_RANGE_H
#define TESS_UV_RANGE_H

#include <math.h>

#include "tess_profile.h"
#include "tess_shared_code.h"

/** In wavelengths, and the last two in metres. */
typedef struct uv_range {
    double limit; /**< |u| or |v| from here on does not fit the grid; ≤ 0: no limit */
    double min, max;     /**< of sqrt(u² + v²); max 0: none */
    double min_m, max_m; /**< of sqrt(u² + v² + w²); max 0: none */
} uv_range;

/** Why a sample there is ignored, −1: it is not. What is not selected counts as such,
 *  whether or not the grid reaches it. */
TESS_SHARED_FUNCTION int uv_range_ignores(const uv_range *range, const double uvw_m[3],
                                          double inv_lambda)
{
    const double u = fabs(uvw_m[0]) * inv_lambda, v = fabs(uvw_m[1]) * inv_lambda;
    if (range->max > 0 || range->min > 0) {
        const double length = sqrt(u * u + v * v);
        if (length < range->min || (range->max > 0 && length > range->max))
            return TESS_IGNORED_UVRANGE;
    }
    if (range->max_m > 0 || range->min_m > 0) {
        const double length_m =
            sqrt(uvw_m[0] * uvw_m[0] + uvw_m[1] * uvw_m[1] + uvw_m[2] * uvw_m[2]);
        if (length_m < range->min_m || (range->max_m > 0 && length_m > range->max_m))
            return TESS_IGNORED_UVRANGE;
    }
    if (range->limit > 0 && (u >= range->limit || v >= range->limit))
        return TESS_IGNORED_BEYOND_UV;
    return -1;
}

/** How far the grid would have to reach to take a sample that is beyond it: the larger
 *  of |u| and |v|. */
TESS_SHARED_FUNCTION double uv_range_reach(const double uvw_m[3], double inv_lambda)
{
    return fmax(fabs(uvw_m[0]), fabs(uvw_m[1])) * inv_lambda;
}

#endif
