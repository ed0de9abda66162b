/** @file tess_facets.h
 *  The facets of an image: polygons of a region file in pixels, which pixels belong to
 *  which of them, and tessellations of an image around directions.
 *
 *  A vertex is where its direction lies in the image; edges are straight between
 * pixels. A pixel belongs to a facet if its centre lies in it, by the rule of even and
 * odd, so that polygons may be concave. Of two facets with a common edge, each pixel
 * belongs to one of them. A vertex beyond the horizon is moved to the horizon.
 *
 *  With a feather of F pixels a facet's weight falls from 1 to 0 within F/2 pixels on
 *  both sides of its border with another facet: with the distance d from the border,
 *  inside positive, it is r(d) / Σ r(d) of all facets, r(d) = ½ + ½ sin(π d / F).
 * Weights sum to 1 in all pixels of facets and are 0 elsewhere, also beside outer
 * borders.
 *
 *  Every rank holds the vertices of all facets and a line about each, and no pixel.
 *  Functions are Local unless they say otherwise, and give the same on all ranks.
 */
#ifndef TESS_FACETS_H
#define TESS_FACETS_H

#include <stdint.h>

#include "tess_comm.h"
#include "tess_fits.h"
#include "tess_geom.h"
#include "tess_region_file.h"
#include "tess_rows.h"
#include "tess_solutions.h"
#include "tess_source_list.h"
#include "tess_status.h"

/** An image's pixels on the sky. */
typedef struct tess_facet_image {
    tess_geom geom;
    double ra_rad, dec_rad; /**< of l = m = 0, J2000 */
} tess_facet_image;

/** The pixels of an image of a file or a run. Local. */
tess_facet_image tess_facet_image_of(const tess_image_meta *meta);

/** Pixels of columns [x0, x1) and rows [y0, y1), of which none may be in the image. */
typedef struct tess_facet_box {
    int64_t x0, y0, x1, y1;
} tess_facet_box;

/** An edge of an outline, from its lower end to its upper one, so that two facets have
 *  a common edge in the same numbers: x and y of both [pixels, from 0]. */
typedef struct tess_facet_edge {
    double low[2], high[2];
} tess_facet_edge;

typedef struct tess_facet {
    char name[TESS_REGION_NAME];  /**< that of the file, or "facetN", N from 1 */
    int64_t line;                 /**< of the file */
    double ra_rad, dec_rad;       /**< its direction: the point of the file, or else the
                                       centroid of what is in the image */
    int64_t num_pixels;           /**< that belong to it */
    tess_facet_box box;           /**< of the image; weights outside of it are 0 */
    int64_t first_edge, end_edge; /**< of the list of edges */
} tess_facet;

/** Zeroed is empty; tess_facets_free. */
typedef struct tess_facets {
    tess_facet_image image;
    double feather;    /**< [pixels] */
    tess_facet *facet; /**< [num_facets] in the order of the file */
    int64_t num_facets;
    int64_t
        num_outside; /**< polygons without a pixel in the image, which are left out */
    tess_facet_edge *edge; /**< those of all facets, one after the other */
    int64_t most_edges;    /**< private: of a facet */
} tess_facets;

/** The facets of `regions`, which were read from `path`. TESS_ERR_INPUT naming file and
 *  line: facets that overlap by more than half a pixel, or none that has a pixel in the
 *  image. TESS_ERR_ALLOC. */
tess_status tess_facets_create(const char *path, const tess_region_list *regions,
                               const tess_facet_image *image, double feather,
                               tess_facets *facets);
void tess_facets_free(tess_facets *facets);

/** A facet's box with `padding` times its width and height, even numbers of pixels and
 *  the same middle, which may reach beyond the image. */
tess_facet_box tess_facets_padded(const tess_facet *facet, double padding);

/** Where the direction of a facet lies: x, y [pixels, from 0]; beyond the horizon, on
 *  it. */
void tess_facets_place(const tess_facets *facets, int64_t facet, double at[2]);

/** Angle between two directions [rad]. */
double tess_facets_angle(double ra_rad, double dec_rad, double other_ra_rad,
                         double other_dec_rad);

/* ---- weights ---- */

/** What a thread needs to compute weights: four numbers for each column of the image.
 */
typedef struct tess_facet_work tess_facet_work;
tess_status tess_facet_work_create(const tess_facets *facets, tess_facet_work **work);
void tess_facet_work_destroy(tess_facet_work *work); /**< NULL is fine. */

/** Weights of a facet in columns [x0, x1) of a row, weight[x1 - x0], all within the
 *  image. Threads with a work of their own may call this at the same time. */
void tess_facets_weights(const tess_facets *facets, tess_facet_work *work,
                         int64_t facet, int64_t row, int64_t x0, int64_t x1,
                         double *weight);

/* ---- tessellations ---- */

/** The Voronoi cells of directions of a file within the image's rectangle, in the plane
 * of its pixels, as regions with their directions and names. Cells without a part of
 * the image are left out. TESS_ERR_INPUT for two directions in one place, a direction
 *  beyond the horizon, or an image that reaches beyond it. TESS_ERR_ALLOC. */
tess_status tess_facets_tessellate(const char *path, const tess_facet_image *image,
                                   const tess_region *direction, int64_t num_directions,
                                   tess_region_list *cells);

/** The directions of the `most` brightest sources in an image, the brightest first,
 *  none closer to a brighter one than `separation_rad`. `most` 0: all.
 *  direction[*num_directions] are named dir1, dir2, ...; freed with tess_free().
 *  TESS_ERR_ALLOC. */
tess_status tess_facets_brightest(const tess_facet_image *image,
                                  const tess_source_list *list, int64_t most,
                                  double separation_rad, tess_region **direction,
                                  int64_t *num_directions);

/** How far apart the directions of `number` facets are unless somebody says otherwise:
 *  a third of the side of an average facet, so that the components of one source do not
 *  get facets of their own [rad]. */
double tess_facets_separation(const tess_geom *geom, int64_t number);

/** The directions of the largest pixels of an image that is distributed by rows, the
 *  largest first, as tess_facets_brightest(): none is below `least`, and none closer to
 *  a larger one than `separation_rad`. NaN pixels do not count. Pixels of `rows`, which
 *  are in host memory, are changed. TESS_ERR_ALLOC. Collective. */
tess_status tess_facets_peaks(tess_comm *comm, const tess_facet_image *image,
                              const tess_rows *rows, double least, int64_t most,
                              double separation_rad, tess_region **direction,
                              int64_t *num_directions);

/* ---- solutions ---- */

/** The directions of a file of solutions; freed with tess_free(). Errors of
 *  tess_solutions_sources(). Collective. */
tess_status tess_facets_solved(tess_comm *comm, const char *path,
                               tess_region **direction, int64_t *num_directions);

/** Solutions in the directions of facets, which take the place of those of `opts`.
 *  Errors of tess_solutions_read(), and TESS_ERR_INPUT if the nearest direction of a
 *  file with several is farther from a facet than half the side of a square of its
 *  area; rank 0 warns of it with `any_direction`. Collective. */
tess_status tess_facets_solutions(tess_comm *comm, const tess_facets *facets,
                                  const tess_solutions_opts *opts,
                                  tess_solutions **solutions);

#endif
