/** @file tess_region_file.h
 *  Region files of ds9, of which polygons and points are read: the facets of an image.
 *
 *      fk5
 *      polygon(123.6,32.8, 124.5,32.8, 124.7,35.1) # text={A}
 *      point(124.1,33.9)
 *      -polygon(124.0,33.0, 124.1,33.0, 124.1,33.1)
 *
 *  A point belongs to the polygon before it, of which it is the direction; of several
 *  points the last one counts. `# text=NAME`, `text={NAME}` and `text="NAME"` behind
 *  either name the polygon. A polygon that is excluded ("-polygon") is a hole in the
 *  polygon before it. Numbers are degrees, or sexagesimal (hh:mm:ss and dd:mm:ss, or
 *  with letters), separated by commas or blanks. The coordinates are fk5 (J2000) unless
 *  a line says icrs, or fk4 (B1950). Other shapes are counted and skipped.
 */
#ifndef TESS_REGION_FILE_H
#define TESS_REGION_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"
#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TESS_REGION_NAME = 128 };

/** A polygon of vertices [first_vertex, first_vertex + num_vertices) of the list. */
typedef struct tess_region {
    int64_t first_vertex, num_vertices;
    bool is_hole;                /**< in the polygon before it, which is none */
    bool has_point;              /**< a direction is given */
    double ra_rad, dec_rad;      /**< that direction, J2000 */
    int64_t line;                /**< of the file that it was read from; 0: none */
    char name[TESS_REGION_NAME]; /**< "": it has none. Safe for a terminal */
} tess_region;

/** Zeroed is empty; tess_region_list_free. */
typedef struct tess_region_list {
    tess_region *region; /**< [num_regions] */
    int64_t num_regions, capacity;
    double (
        *vertex)[2]; /**< [num_vertices] right ascension, declination [rad], J2000 */
    int64_t num_vertices, capacity_vertices;
    int64_t num_skipped; /**< shapes other than polygons and points, and points before
                              the first polygon */
} tess_region_list;

/** Read on rank 0, parse everywhere. TESS_ERR_IO; TESS_ERR_INPUT naming file and line:
 *  a polygon that is none, coordinates of another system, a word that ds9 does not
 *  know; a file without polygons. Collective. */
tess_status tess_region_file_read(tess_comm *comm, const char *path,
                                  tess_region_list *list);

/** Parse a text that was read from `path`. Local. */
tess_status tess_region_file_parse(const char *path, const char *text,
                                   tess_region_list *list);

/** Append a region without vertices, which becomes `list->region[num_regions - 1]`, and
 *  a vertex to the last region [rad]. TESS_ERR_ALLOC. Local. */
tess_status tess_region_list_add(tess_region_list *list, const tess_region *region);
tess_status tess_region_list_add_vertex(tess_region_list *list, double ra_rad,
                                        double dec_rad);

/** The list as a region file, with positions to 1e-10 degrees. `*text` is freed with
 *  tess_free(). TESS_ERR_ALLOC. Local. */
tess_status tess_region_file_text(const tess_region_list *list, char **text);

void tess_region_list_free(tess_region_list *list); /**< Local. */

#ifdef __cplusplus
}
#endif
#endif
