/* Places a point: the first cell of its footprint, its plane of w, and which taps of
 * the table it uses. */
#include "gcf_place.h"

#include <math.h>

/* First cell, and the table's offset, of a footprint on one axis. */
static bool place_axis(const tess_gcf *gcf, int support, double at, int64_t cells,
                       bool conjugate, int32_t *first, uint8_t *offset, bool *flip)
{
    const int q = gcf->layout.oversampling;
    const double fine = floor(at * q + 0.5);
    if (!(fine >= 0 && fine < (double)q * (double)cells))
        return false; /* or no number */
    int64_t cell = (int64_t)fine / q;
    const int part = (int)((int64_t)fine % q);
    cell += 1 - support / 2;
    if (cell < 0 || cell + support > cells) return false;
    *first = (int32_t)cell;
    *flip = gcf->layout.is_uneven ? conjugate : part >= gcf->half_offsets;
    *offset = (uint8_t)(*flip ? q - part : part);
    return true;
}

bool gcf_place_point(const tess_gcf *gcf, const tess_gcf_points *points, int64_t point,
                     int64_t nu, int64_t nv, gcf_place *place)
{
    const double w = points->w ? points->w[point] : 0;
    if (!isfinite(w)) return false;
    place->point = point;
    place->plane = (uint16_t)tess_gcf_plane_of(gcf, w);
    place->conjugate = w < 0;
    const int support = gcf->plane[place->plane].support;
    return place_axis(gcf, support, points->u[point], nu, place->conjugate, &place->u,
                      &place->offset_u, &place->flip_u) &&
           place_axis(gcf, support, points->v[point], nv, place->conjugate, &place->v,
                      &place->offset_v, &place->flip_v);
}
