/* How often gridding adds to each cell. */
#include <string.h>

#include "gcf_place.h"
#include "tess_mem.h"

tess_status tess_gcf_updates(const tess_gcf *gcf, const tess_gcf_points *points,
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
