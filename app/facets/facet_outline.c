/* Outlines of facets in pixels: where directions lie in an image, which part of a row
 * is in an outline, and how far it is to an edge. */
#include "facet_outline.h"

#include <math.h>
#include <stdlib.h>

#include "tess_minmax.h"

bool facet_place(const tess_facet_image *image, double ra_rad, double dec_rad,
                 double at[2])
{
    const tess_geom *geom = &image->geom;
    double lmn1[3];
    const bool is_seen =
        tess_sky_project(ra_rad, dec_rad, image->ra_rad, image->dec_rad, lmn1);
    const double radius = hypot(lmn1[0], lmn1[1]);
    const double scaling = is_seen ? 1 : 1 / fmax(radius, 1e-12);
    at[0] = (double)(geom->nx / 2) - (lmn1[0] * scaling - geom->l0) / geom->scale_rad;
    at[1] = (double)(geom->ny / 2) +
            (lmn1[1] * scaling - geom->m0) / tess_geom_scale_m(geom);
    return is_seen;
}

bool facet_direction(const tess_facet_image *image, const double at[2], double *ra_rad,
                     double *dec_rad)
{
    const tess_geom *geom = &image->geom;
    const double l = geom->l0 - (at[0] - (double)(geom->nx / 2)) * geom->scale_rad;
    const double m =
        geom->m0 + (at[1] - (double)(geom->ny / 2)) * tess_geom_scale_m(geom);
    const double lmn1[3] = {l, m, tess_geom_nm1(l * l + m * m)};
    if (!(l * l + m * m < 1)) return false;
    tess_sky_place(lmn1, image->ra_rad, image->dec_rad, ra_rad, dec_rad);
    return true;
}

static int compare_numbers(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

int64_t facet_spans(const tess_facets *facets, int64_t facet, double y,
                    double *crossing, facet_span *span)
{
    const tess_facet *of = &facets->facet[facet];
    int64_t count = 0;
    for (int64_t k = of->first_edge; k < of->end_edge; ++k) {
        const tess_facet_edge *edge = &facets->edge[k];
        const double *low = edge->low, *high = edge->high;
        if (low[1] > y || high[1] <= y) continue;
        crossing[count++] =
            low[0] + (y - low[1]) * ((high[0] - low[0]) / (high[1] - low[1]));
    }
    qsort(crossing, (size_t)count, sizeof *crossing, compare_numbers);
    for (int64_t k = 0; k + 1 < count; k += 2)
        span[k / 2] = (facet_span){crossing[k], crossing[k + 1], facet};
    return count / 2;
}

double facet_edge_distance2(const tess_facet_edge *edge, double x, double y)
{
    const double dx = edge->high[0] - edge->low[0], dy = edge->high[1] - edge->low[1];
    const double length2 = dx * dx + dy * dy;
    const double along = (x - edge->low[0]) * dx + (y - edge->low[1]) * dy;
    const double part = length2 > 0 ? fmin(fmax(along / length2, 0), 1) : 0;
    const double off_x = x - edge->low[0] - part * dx;
    const double off_y = y - edge->low[1] - part * dy;
    return off_x * off_x + off_y * off_y;
}

void facet_span_pixels(const facet_span *span, int64_t nx, int64_t *first, int64_t *end)
{
    *first = (int64_t)fmin(fmax(ceil(span->first), 0), (double)nx);
    *end = (int64_t)fmin(fmax(ceil(span->end), 0), (double)nx);
}
