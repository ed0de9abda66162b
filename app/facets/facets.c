/* Facets of an image from the polygons of a region file: their edges and pixels, and
 * what is refused. */
#include "tess_facets.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "facet_outline.h"
#include "tess_const.h"
#include "tess_mem.h"
#include "tess_minmax.h"

tess_facet_image tess_facet_image_of(const tess_image_meta *meta)
{
    return (tess_facet_image){.geom = {.nx = meta->nx,
                                       .ny = meta->ny,
                                       .scale_rad = meta->scale_rad,
                                       .l0 = meta->l0,
                                       .m0 = meta->m0},
                              .ra_rad = meta->ra_rad,
                              .dec_rad = meta->dec_rad};
}

/* ---- edges ---- */

/* Appends the edges of a region. Those of one height are never crossed by a row, but
 * have a distance. */
static void add_edges(const tess_region_list *regions, const tess_region *region,
                      tess_facets *facets, tess_facet *facet)
{
    double from[2], to[2];
    const double(*vertex)[2] =
        (const double(*)[2])regions->vertex + region->first_vertex;
    const double *last = vertex[region->num_vertices - 1];
    facet_place(&facets->image, last[0], last[1], from);
    for (int64_t k = 0; k < region->num_vertices; ++k) {
        facet_place(&facets->image, vertex[k][0], vertex[k][1], to);
        const bool up = from[1] < to[1] || (from[1] == to[1] && from[0] < to[0]);
        tess_facet_edge *edge = &facets->edge[facet->end_edge++];
        memcpy(edge->low, up ? from : to, sizeof from);
        memcpy(edge->high, up ? to : from, sizeof from);
        memcpy(from, to, sizeof from);
    }
}

/* ---- pixels ---- */

/* What is summed over the pixels of a facet. */
typedef struct facet_sums {
    int64_t count;
    double x, y;
} facet_sums;

static void grow_box(tess_facet_box *box, int64_t first, int64_t end, int64_t row)
{
    box->x0 = tess_min_i64(box->x0, first);
    box->x1 = tess_max_i64(box->x1, end);
    box->y0 = tess_min_i64(box->y0, row);
    box->y1 = tess_max_i64(box->y1, row + 1);
}

/* Counts the pixels of a facet, and finds their box. */
static facet_sums count_pixels(const tess_facets *facets, int64_t facet,
                               double *crossing, facet_span *span, tess_facet_box *box)
{
    const tess_geom *geom = &facets->image.geom;
    const tess_facet *of = &facets->facet[facet];
    double low = INFINITY, high = -INFINITY;
    facet_sums sums = {0};
    *box = (tess_facet_box){geom->nx, geom->ny, 0, 0};
    for (int64_t k = of->first_edge; k < of->end_edge; ++k) {
        low = fmin(low, facets->edge[k].low[1]);
        high = fmax(high, facets->edge[k].high[1]);
    }
    const int64_t begin = (int64_t)fmin(fmax(ceil(low), 0), (double)geom->ny);
    const int64_t end = (int64_t)fmin(fmax(floor(high) + 1, 0), (double)geom->ny);
    for (int64_t row = begin; row < end; ++row) {
        const int64_t num = facet_spans(facets, facet, (double)row, crossing, span);
        for (int64_t k = 0; k < num; ++k) {
            int64_t first, last;
            facet_span_pixels(&span[k], geom->nx, &first, &last);
            if (last <= first) continue;
            const double count = (double)(last - first);
            sums.count += last - first;
            sums.x += count * 0.5 * (double)(first + last - 1);
            sums.y += count * (double)row;
            grow_box(box, first, last, row);
        }
    }
    return sums;
}

/* A border lies less than a pixel beyond the pixels of its facet. */
static void add_feather(const tess_geom *geom, double feather, tess_facet_box *box)
{
    const int64_t more = feather > 0 ? (int64_t)ceil(0.5 * feather) + 1 : 0;
    box->x0 = tess_max_i64(box->x0 - more, 0);
    box->y0 = tess_max_i64(box->y0 - more, 0);
    box->x1 = tess_min_i64(box->x1 + more, geom->nx);
    box->y1 = tess_min_i64(box->y1 + more, geom->ny);
}

/* ---- facets ---- */

static void name_facet(const tess_region *region, int64_t number, tess_facet *facet)
{
    if (*region->name)
        snprintf(facet->name, sizeof facet->name, "%s", region->name);
    else
        snprintf(facet->name, sizeof facet->name, "facet%lld", (long long)number);
    facet->line = region->line;
}

/* Completes a facet whose edges are there. Returns whether it has any pixel. */
static bool finish_facet(const tess_region *region, tess_facets *facets, int64_t k,
                         double *crossing, facet_span *span)
{
    tess_facet *facet = &facets->facet[k];
    const facet_sums sums = count_pixels(facets, k, crossing, span, &facet->box);
    if (sums.count == 0) return false;
    const double count = (double)sums.count;
    const double middle[2] = {sums.x / count, sums.y / count};
    facet->num_pixels = sums.count;
    facet->ra_rad = region->ra_rad;
    facet->dec_rad = region->dec_rad;
    if (!region->has_point &&
        !facet_direction(&facets->image, middle, &facet->ra_rad, &facet->dec_rad)) {
        facet->ra_rad = facets->image.ra_rad; /* a ring around the whole sky */
        facet->dec_rad = facets->image.dec_rad;
    }
    add_feather(&facets->image.geom, facets->feather, &facet->box);
    return true;
}

/* Adds the facets of all polygons with their holes. */
static void add_facets(const tess_region_list *regions, tess_facets *facets,
                       double *crossing, facet_span *span)
{
    int64_t number = 0, num_edges = 0;
    for (int64_t k = 0; k < regions->num_regions;) {
        const tess_region *region = &regions->region[k];
        tess_facet *facet = &facets->facet[facets->num_facets];
        *facet = (tess_facet){.first_edge = num_edges, .end_edge = num_edges};
        name_facet(region, ++number, facet);
        do
            add_edges(regions, &regions->region[k], facets, facet);
        while (++k < regions->num_regions && regions->region[k].is_hole);
        if (finish_facet(region, facets, facets->num_facets, crossing, span)) {
            num_edges = facet->end_edge;
            facets->most_edges =
                tess_max_i64(facets->most_edges, facet->end_edge - facet->first_edge);
            facets->num_facets++;
        } else {
            facets->num_outside++;
        }
    }
}

tess_status tess_facets_create(const char *path, const tess_region_list *regions,
                               const tess_facet_image *image, double feather,
                               tess_facets *facets_out)
{
    tess_status status = TESS_OK;
    tess_facets facets = {.image = *image, .feather = feather};
    double *crossing = tess_alloc(regions->num_vertices, sizeof *crossing);
    facet_span *span = tess_alloc(regions->num_vertices, sizeof *span);
    facets.edge = tess_alloc(regions->num_vertices, sizeof *facets.edge);
    facets.facet = tess_alloc(regions->num_regions, sizeof *facets.facet);
    if (!crossing || !span || !facets.edge || !facets.facet)
        TESS_FAIL(TESS_ERR_ALLOC, "%s: no memory for facets", path);
    add_facets(regions, &facets, crossing, span);
    if (facets.num_facets == 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: line %lld: this polygon has no pixel in the image, and no other "
                  "has",
                  path, (long long)regions->region[0].line);
    TESS_TRY(facet_check_overlap(path, &facets));
    *facets_out = facets;
    facets = (tess_facets){0};
cleanup:
    tess_free(crossing);
    tess_free(span);
    tess_facets_free(&facets);
    return status;
}

void tess_facets_free(tess_facets *facets)
{
    tess_free(facets->facet);
    tess_free(facets->edge);
    *facets = (tess_facets){0};
}

/* Grows a range about its middle to an even number of pixels. */
static void pad_range(double padding, int64_t *first, int64_t *end)
{
    const int64_t length = *end - *first;
    int64_t padded = (int64_t)ceil((double)length * fmax(padding, 1));
    padded += padded % 2;
    *first -= (padded - length) / 2;
    *end = *first + padded;
}

tess_facet_box tess_facets_padded(const tess_facet *facet, double padding)
{
    tess_facet_box box = facet->box;
    pad_range(padding, &box.x0, &box.x1);
    pad_range(padding, &box.y0, &box.y1);
    return box;
}

void tess_facets_place(const tess_facets *facets, int64_t facet, double at[2])
{
    facet_place(&facets->image, facets->facet[facet].ra_rad,
                facets->facet[facet].dec_rad, at);
}

double tess_facets_angle(double ra_rad, double dec_rad, double other_ra_rad,
                         double other_dec_rad)
{
    /* Exact for small angles and for antipodes (Vincenty's form). */
    const double d_ra = other_ra_rad - ra_rad;
    const double across = cos(other_dec_rad) * sin(d_ra);
    const double along = cos(dec_rad) * sin(other_dec_rad) -
                         sin(dec_rad) * cos(other_dec_rad) * cos(d_ra);
    const double ahead = sin(dec_rad) * sin(other_dec_rad) +
                         cos(dec_rad) * cos(other_dec_rad) * cos(d_ra);
    return atan2(hypot(across, along), ahead);
}
