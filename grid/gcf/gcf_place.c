/* Places a point: the first cell of its footprint, its plane of w, and which taps of
 * the table it uses. */
#include "gcf_place.h"

#include <math.h>

/* A footprint on one axis. */
typedef struct axis_place {
    int32_t first;  /* cell */
    uint8_t offset; /* of the table's taps */
    bool flip;      /* the taps are read backwards */
} axis_place;

/* False if the footprint does not lie within the cells. */
static bool place_axis(const tess_gcf *gcf, int support, double at, int64_t cells,
                       bool conjugate, axis_place *to)
{
    const int q = gcf->layout.oversampling;
    const double fine = floor(at * q + 0.5);
    if (!(fine >= 0 && fine < (double)q * (double)cells))
        return false; /* or no number */
    int64_t cell = (int64_t)fine / q;
    const int part = (int)((int64_t)fine % q);
    cell += 1 - support / 2;
    if (cell < 0 || cell + support > cells) return false;
    to->first = (int32_t)cell;
    to->flip = gcf->layout.is_uneven ? conjugate : part >= gcf->half_offsets;
    to->offset = (uint8_t)(to->flip ? q - part : part);
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
    axis_place u, v;
    if (!place_axis(gcf, support, points->u[point], nu, place->conjugate, &u) ||
        !place_axis(gcf, support, points->v[point], nv, place->conjugate, &v))
        return false;
    place->u = u.first;
    place->v = v.first;
    place->offset_u = u.offset;
    place->offset_v = v.offset;
    place->flip_u = u.flip;
    place->flip_v = v.flip;
    return true;
}
