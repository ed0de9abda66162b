/* Finds facets that overlap: row by row, where the span of one facet begins before that
 * of another one ends. */
#include <math.h>
#include <stdlib.h>

#include "facet_outline.h"
#include "tess_mem.h"

/* Rounding of positions in files moves edges by less. */
static const double TOLERANCE = 0.5;

/* Room for the spans of a row. */
typedef struct overlap_row {
    double *crossing;
    facet_span *span;
    int64_t num_spans;
} overlap_row;

static int compare_spans(const void *a, const void *b)
{
    const facet_span *left = a, *right = b;
    if (left->first != right->first) return left->first > right->first ? 1 : -1;
    return (left->facet > right->facet) - (left->facet < right->facet);
}

/* Whether a pixel is farther from all edges of a facet than rounding. */
static bool is_deep(const tess_facets *facets, int64_t facet, double x, double y)
{
    const tess_facet *of = &facets->facet[facet];
    for (int64_t k = of->first_edge; k < of->end_edge; ++k)
        if (facet_edge_distance2(&facets->edge[k], x, y) <= TOLERANCE * TOLERANCE)
            return false;
    return true;
}

/* The first pixel of a row that is deep in both facets of two spans, or −1. */
static int64_t deep_pixel(const tess_facets *facets, const facet_span *left,
                          const facet_span *right, int64_t row)
{
    const facet_span both = {right->first, fmin(left->end, right->end), 0};
    int64_t first, end;
    if (left->facet == right->facet || both.end - both.first < 2 * TOLERANCE) return -1;
    facet_span_pixels(&both, facets->image.geom.nx, &first, &end);
    for (int64_t x = first; x < end; ++x)
        if (is_deep(facets, left->facet, (double)x, (double)row) &&
            is_deep(facets, right->facet, (double)x, (double)row))
            return x;
    return -1;
}

static tess_status check_row(const char *path, const tess_facets *facets, int64_t row,
                             overlap_row *at)
{
    tess_status status = TESS_OK;
    at->num_spans = 0;
    for (int64_t k = 0; k < facets->num_facets; ++k)
        if (row >= facets->facet[k].box.y0 && row < facets->facet[k].box.y1)
            at->num_spans += facet_spans(facets, k, (double)row, at->crossing,
                                         at->span + at->num_spans);
    qsort(at->span, (size_t)at->num_spans, sizeof *at->span, compare_spans);
    for (int64_t k = 0; k < at->num_spans; ++k)
        for (int64_t next = k + 1;
             next < at->num_spans && at->span[next].first < at->span[k].end; ++next) {
            const int64_t x = deep_pixel(facets, &at->span[k], &at->span[next], row);
            const int64_t one = at->span[k].facet, other = at->span[next].facet;
            const tess_facet *before = &facets->facet[one < other ? one : other];
            const tess_facet *after = &facets->facet[one < other ? other : one];
            if (x >= 0)
                TESS_FAIL(TESS_ERR_INPUT,
                          "%s: line %lld: facet '%s' overlaps facet '%s' of line %lld, "
                          "in pixel %lld,%lld",
                          path, (long long)after->line, after->name, before->name,
                          (long long)before->line, (long long)x + 1,
                          (long long)row + 1);
        }
cleanup:
    return status;
}

tess_status facet_check_overlap(const char *path, const tess_facets *facets)
{
    tess_status status = TESS_OK;
    int64_t num_edges = 0;
    overlap_row at = {0};
    for (int64_t k = 0; k < facets->num_facets; ++k)
        num_edges += facets->facet[k].end_edge - facets->facet[k].first_edge;
    at.crossing = tess_alloc(facets->most_edges, sizeof *at.crossing);
    at.span = tess_alloc(num_edges, sizeof *at.span);
    if (!at.crossing || !at.span)
        TESS_FAIL(TESS_ERR_ALLOC, "%s: no memory for facets", path);
    for (int64_t row = 0; row < facets->image.geom.ny; ++row)
        TESS_TRY(check_row(path, facets, row, &at));
cleanup:
    tess_free(at.crossing);
    tess_free(at.span);
    return status;
}
