/** @file tess_mask_regions.h
 *  Regions within which components of CLEAN may be: files of CASA (CRTF, which begin
 *  with "#CRTF") and of ds9.
 *
 *      #CRTFv0                                        # Region file format: DS9
 *      global coord=J2000                             fk5
 *      circle[[4h0m0s, -30d0m0s], 20arcsec]           circle(60.0,-30.0,20")
 *      -box[[100pix, 90pix], [110pix, 95pix]]         -box(105,92,10,5,0)
 *
 *  CRTF: box, centerbox, rotbox, circle, ellipse, annulus and poly; coordinates in
 * J2000, B1950, ICRS, GALACTIC or pixels (from 0), `range` in channels or frequencies.
 *  Annotations ("ann ...", line, vector, text, symbol) are skipped. ds9: circle,
 *  ellipse, box, annulus and polygon, in fk5, fk4, icrs, galactic or image coordinates
 *  (from 1). A region with "-" takes its pixels out of those before it; if it comes
 *  first, out of the whole image.
 */
#ifndef TESS_MASK_REGIONS_H
#define TESS_MASK_REGIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"
#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tess_mask_shape {
    TESS_MASK_ELLIPSE, /**< `half`: its axes, halved */
    TESS_MASK_ANNULUS, /**< `half`: inner and outer radius */
    TESS_MASK_BOX,     /**< `half`: its sides, halved */
    TESS_MASK_POLYGON, /**< vertices */
    TESS_MASK_CORNERS  /**< a box along pixels between two vertices */
} tess_mask_shape;

/** A length or position: in pixels (from 0), or in radians. */
typedef struct tess_mask_region {
    tess_mask_shape shape;
    bool leaves;         /**< its pixels are taken out */
    bool at_pixels;      /**< centre and vertices are pixels; else J2000 */
    bool half_in_pixels; /**< else [rad] */
    double centre[2];    /**< right ascension, declination; or x, y */
    double half[2];      /**< along x and y before the turn */
    double turn_rad;     /**< counter-clockwise: from North through East */
    int64_t first_vertex, num_vertices;
    double from, to; /**< channels of this range only; from > to: all */
    bool by_freq;    /**< the range is in Hz, and else counts output channels */
} tess_mask_region;

/** Zeroed is empty. */
typedef struct tess_mask_regions {
    tess_mask_region *region; /**< [num] */
    int64_t num, capacity;
    double (*vertex)[2]; /**< [num_vertices] as `centre` */
    int64_t num_vertices, vertex_capacity;
} tess_mask_regions;

/** Read on rank 0, parse everywhere. TESS_ERR_IO; TESS_ERR_INPUT naming file and line,
 *  also where there is no region. Collective. */
tess_status tess_mask_regions_read(tess_comm *comm, const char *path,
                                   tess_mask_regions *regions);

/** Parse a text that was read from `path`. Local. */
tess_status tess_mask_regions_parse(const char *path, const char *text,
                                    tess_mask_regions *regions);

void tess_mask_regions_free(tess_mask_regions *regions); /**< Local. */

#ifdef __cplusplus
}
#endif
#endif
