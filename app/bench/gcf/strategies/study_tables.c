/* What studies do with tables and points beside gridding: taps that sum to one, and
 * maps of how often gridding adds to each cell. */
#include <string.h>

#include "tess_log.h"
#include "tess_mem.h"
#include "tess_study.h"

/* Taps of one pair of offsets, divided by their sum; false where that is 0. */
static bool normalise(const tess_gcf *gcf, int64_t values, int64_t first)
{
    const bool is_double = gcf->layout.is_double;
    double *d = (double *)gcf->data + 2 * first, sum[2] = {0, 0};
    float *f = (float *)gcf->data + 2 * first;
    for (int64_t k = 0; k < 2 * values; ++k)
        sum[k % 2] += is_double ? d[k] : (double)f[k];
    const double square = sum[0] * sum[0] + sum[1] * sum[1];
    if (!(square > 0)) return false;
    for (int64_t k = 0; k < 2 * values; k += 2) {
        const double re = is_double ? d[k] : (double)f[k];
        const double im = is_double ? d[k + 1] : (double)f[k + 1];
        const double x = (re * sum[0] + im * sum[1]) / square;
        const double y = (im * sum[0] - re * sum[1]) / square;
        if (is_double) {
            d[k] = x;
            d[k + 1] = y;
        } else {
            f[k] = (float)x;
            f[k + 1] = (float)y;
        }
    }
    return true;
}

tess_status tess_study_normalise(tess_gcf *gcf)
{
    tess_status status = TESS_OK;
    const int offsets = gcf->half_offsets * gcf->half_offsets;
    for (int p = 0; p < gcf->layout.num_planes; ++p) {
        const int64_t taps = (int64_t)gcf->plane[p].support * gcf->plane[p].support;
        for (int k = 0; k < offsets; ++k)
            if (!normalise(gcf, taps, gcf->plane[p].offset + k * taps))
                TESS_FAIL(TESS_ERR_USAGE, "taps of plane %d sum to 0", p);
    }
    gcf->is_formula = false;
cleanup:
    return status;
}

tess_status tess_study_updates(const tess_gcf *gcf, const tess_gcf_points *points,
                               int64_t nu, int64_t nv, float *map)
{
    tess_status status = TESS_OK;
    const int64_t stride = nv + 1;
    /* differences along both axes: a footprint is four of them, whatever its size */
    int64_t *corner = tess_alloc_zero((nu + 1) * stride, sizeof *corner);
    if (!corner) TESS_FAIL(TESS_ERR_ALLOC, "a map of %lld cells", (long long)(nu * nv));
    for (int64_t k = 0; k < points->count; ++k) {
        gcf_place at;
        if (!gcf_place_point(gcf, points, k, nu, nv, &at)) continue;
        const int64_t support = gcf->plane[at.plane].support;
        int64_t *first = corner + at.u * stride + at.v,
                *last = first + support * stride;
        ++first[0];
        --first[support];
        --last[0];
        ++last[support];
    }
    for (int64_t u = 0; u < nu; ++u) {
        int64_t along = 0;
        int64_t *line = corner + u * stride;
        for (int64_t v = 0; v < nv; ++v) {
            along += line[v];
            const int64_t below = u > 0 ? line[v - stride] : 0;
            line[v] = along + below;
            map[u * nv + v] = (float)line[v];
        }
    }
cleanup:
    tess_free(corner);
    return status;
}
