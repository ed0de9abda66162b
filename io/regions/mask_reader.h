/** @file mask_reader.h  (private to io/regions/)
 *  What readers of regions for masks share. All functions are Local; those with a
 * status return TESS_ERR_INPUT that names file and line, or TESS_ERR_ALLOC.
 */
#ifndef TESS_MASK_READER_H
#define TESS_MASK_READER_H

#include "sky_frame.h"
#include "tess_mask_regions.h"

typedef enum mask_system {
    MASK_J2000,
    MASK_B1950,
    MASK_ICRS,
    MASK_GALACTIC,
    MASK_PIXELS,
    MASK_UNREAD /**< coordinates that are not read */
} mask_system;

typedef struct mask_reader {
    const char *path;
    int64_t line;       /**< from 1 */
    mask_system system; /**< of coordinates that do not say it */
    tess_mask_regions regions;
} mask_reader;

/** "FILE: line 3 WHAT 'quoted'MORE". */
tess_status mask_refuse(const mask_reader *reader, const char *what, const char *quoted,
                        const char *more);

/** Append a region, and vertices to the last one; a length is in [0, 1e9], a coordinate
 *  finite. */
tess_status mask_add_region(mask_reader *reader, const tess_mask_region *region);
tess_status mask_add_vertex(mask_reader *reader, const double place[2]);

/** Bring a direction of a system to J2000. */
void mask_to_j2000(mask_system system, double place[2]);

/** Parse an angle: with its unit, or in degrees. */
bool mask_angle(const char *text, double *rad);

/** ds9_mask.c, crtf_mask.c: parse all lines. `text` may be changed. */
tess_status mask_read_ds9(mask_reader *reader, char *text);
tess_status mask_read_crtf(mask_reader *reader, char *text);

#endif
