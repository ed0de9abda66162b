/** @file facet_outline.h  (private to app/facets/)
 *  Outlines of facets as edges in pixels. All Local.
 */
#ifndef FACET_OUTLINE_H
#define FACET_OUTLINE_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_facets.h"

/** What of a row is in a facet: columns x with first <= x < end. */
typedef struct facet_span {
    double first, end;
    int64_t facet;
} facet_span;

/** Pixel of a direction. Beyond the horizon, that of the horizon, and false. */
bool facet_place(const tess_facet_image *image, double ra_rad, double dec_rad,
                 double at[2]);

/** Direction of a pixel; false beyond the horizon. */
bool facet_direction(const tess_facet_image *image, const double at[2], double *ra_rad,
                     double *dec_rad);

/** The spans of a facet in a row, from left to right, which are at most as many as its
 *  edges: their number. `crossing` has room for as many numbers as it has edges. */
int64_t facet_spans(const tess_facets *facets, int64_t facet, double y,
                    double *crossing, facet_span *span);

/** Square of the distance of a pixel from an edge. */
double facet_edge_distance2(const tess_facet_edge *edge, double x, double y);

/** The pixels of a span in a row of `nx`: [first, end). */
void facet_span_pixels(const facet_span *span, int64_t nx, int64_t *first,
                       int64_t *end);

/** TESS_ERR_INPUT when two facets overlap by more than half a pixel, which is more than
 *  rounding in a file. */
tess_status facet_check_overlap(const char *path, const tess_facets *facets);

#endif
