/* Weights of facets in a row of the image: 1 inside, and with a feather a slope across
 * borders between facets. */
#include <math.h>
#include <string.h>

#include "facet_outline.h"
#include "tess_const.h"
#include "tess_mem.h"
#include "tess_minmax.h"

struct tess_facet_work {
    double *crossing;                /* [most_edges] */
    facet_span *span;                /* [most_edges] */
    double *distance2, *slope, *sum; /* [nx] */
    bool *inside;                    /* [nx] */
};

tess_status tess_facet_work_create(const tess_facets *facets, tess_facet_work **out)
{
    tess_status status = TESS_OK;
    const int64_t nx = facets->image.geom.nx;
    tess_facet_work *work = tess_alloc_zero(1, sizeof *work);
    if (!work) TESS_FAIL(TESS_ERR_ALLOC, "no memory for weights of facets");
    work->crossing = tess_alloc(facets->most_edges, sizeof *work->crossing);
    work->span = tess_alloc(facets->most_edges, sizeof *work->span);
    work->distance2 = tess_alloc(nx, sizeof *work->distance2);
    work->slope = tess_alloc(nx, sizeof *work->slope);
    work->sum = tess_alloc(nx, sizeof *work->sum);
    work->inside = tess_alloc(nx, sizeof *work->inside);
    if (!work->crossing || !work->span || !work->distance2 || !work->slope ||
        !work->sum || !work->inside)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for weights of facets");
    *out = work;
    work = NULL;
cleanup:
    tess_facet_work_destroy(work);
    return status;
}

void tess_facet_work_destroy(tess_facet_work *work)
{
    if (!work) return;
    tess_free(work->crossing);
    tess_free(work->span);
    tess_free(work->distance2);
    tess_free(work->slope);
    tess_free(work->sum);
    tess_free(work->inside);
    tess_free(work);
}

/* Columns [x0, x1) of a row. */
typedef struct row_part {
    int64_t row, x0, x1;
} row_part;

/* Those columns of a part that may be closer to an edge than `reach`: [first, end). */
static void columns_near(const tess_facet_edge *edge, double reach, row_part part,
                         int64_t *first, int64_t *end)
{
    const double *low = edge->low, *high = edge->high, y = (double)part.row;
    double left = low[0], right = high[0];
    *first = *end = part.x0;
    if (low[1] > y + reach || high[1] < y - reach) return;
    if (high[1] > low[1]) { /* the piece of the edge that is near the row */
        const double slope = (high[0] - low[0]) / (high[1] - low[1]);
        left = low[0] + slope * (fmax(low[1], y - reach) - low[1]);
        right = low[0] + slope * (fmin(high[1], y + reach) - low[1]);
    }
    const double from = fmin(left, right) - reach, to = fmax(left, right) + reach;
    *first = (int64_t)fmin(fmax(floor(from), (double)part.x0), (double)part.x1);
    *end = (int64_t)fmin(fmax(ceil(to) + 1, (double)part.x0), (double)part.x1);
}

/* Squares of distances from a facet's border where it is closer than `reach`, and
 * reach² elsewhere: distance2[x1 - x0]. */
static void measure_distances(const tess_facets *facets, int64_t facet, double reach,
                              row_part part, double *distance2)
{
    const tess_facet *of = &facets->facet[facet];
    for (int64_t x = part.x0; x < part.x1; ++x)
        distance2[x - part.x0] = reach * reach;
    for (int64_t k = of->first_edge; k < of->end_edge; ++k) {
        const tess_facet_edge *edge = &facets->edge[k];
        int64_t first, end;
        columns_near(edge, reach, part, &first, &end);
        for (int64_t x = first; x < end; ++x)
            distance2[x - part.x0] =
                fmin(distance2[x - part.x0],
                     facet_edge_distance2(edge, (double)x, (double)part.row));
    }
}

/* r(d) of a facet, slope[x1 - x0]; sets inside[x1 - x0] in its pixels. */
static void find_slope(const tess_facets *facets, tess_facet_work *work, int64_t facet,
                       row_part part, double *slope, bool *inside)
{
    const double reach = 0.5 * facets->feather;
    const int64_t num =
        facet_spans(facets, facet, (double)part.row, work->crossing, work->span);
    memset(slope, 0, (size_t)(part.x1 - part.x0) * sizeof *slope);
    for (int64_t k = 0; k < num; ++k) {
        int64_t first, end;
        facet_span_pixels(&work->span[k], part.x1, &first, &end);
        for (int64_t x = tess_max_i64(first, part.x0); x < end; ++x) {
            slope[x - part.x0] = 1;
            inside[x - part.x0] = true;
        }
    }
    if (!(reach > 0)) return;
    measure_distances(facets, facet, reach, part, work->distance2);
    for (int64_t k = 0; k < part.x1 - part.x0; ++k) {
        if (!(work->distance2[k] < reach * reach)) continue;
        const double near = sqrt(work->distance2[k]) / reach;
        const double half = 0.5 * sin(0.5 * TESS_PI * near);
        slope[k] = slope[k] > 0 ? 0.5 + half : 0.5 - half;
    }
}

/* The columns of a part that are in a facet's box, which may be none. */
static row_part part_of_box(const tess_facet_box *box, row_part part)
{
    const bool is_in = part.row >= box->y0 && part.row < box->y1;
    const int64_t x0 = tess_max_i64(box->x0, part.x0);
    const int64_t x1 = tess_min_i64(box->x1, part.x1);
    return (row_part){part.row, x0, is_in ? tess_max_i64(x0, x1) : x0};
}

void tess_facets_weights(const tess_facets *facets, tess_facet_work *work,
                         int64_t facet, int64_t row, int64_t x0, int64_t x1,
                         double *weight)
{
    const row_part own =
        part_of_box(&facets->facet[facet].box, (row_part){row, x0, x1});
    const int64_t count = own.x1 - own.x0;
    memset(weight, 0, (size_t)(x1 - x0) * sizeof *weight);
    if (count == 0) return;
    weight += own.x0 - x0;
    memset(work->inside, 0, (size_t)count * sizeof *work->inside);
    find_slope(facets, work, facet, own, weight, work->inside);
    memcpy(work->sum, weight, (size_t)count * sizeof *weight);
    for (int64_t k = 0; k < facets->num_facets; ++k) {
        const row_part part = part_of_box(&facets->facet[k].box, own);
        if (k == facet || part.x0 == part.x1) continue;
        find_slope(facets, work, k, part, work->slope,
                   work->inside + (part.x0 - own.x0));
        for (int64_t x = part.x0; x < part.x1; ++x)
            work->sum[x - own.x0] += work->slope[x - part.x0];
    }
    for (int64_t x = 0; x < count; ++x)
        weight[x] = work->inside[x] && work->sum[x] > 0 ? weight[x] / work->sum[x] : 0;
}
