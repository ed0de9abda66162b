/** @file tess_map.h
 *  A map of a grid, such as how often each of its cells is added to, as a FITS image
 *  and as a picture. Both appear under their names only when they are complete.
 */
#ifndef TESS_MAP_H
#define TESS_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

/** value[nu][nv]; in the files, u is the second axis and v the first, [cells] from the
 *  middle of the grid. */
typedef struct tess_map {
    int64_t nu, nv;
    const float *value;
    const char *unit, *history;
} tess_map;

/** TESS_ERR_IO when the two files of a map could not be written later, or exist and not
 *  `overwrite`. Local. */
tess_status tess_map_check(const char *name, bool overwrite);

/** Write NAME.fits (BITPIX −32) and NAME.png. The picture has at most 1024 pixels a
 *  side; a pixel shows the logarithm of the largest value of its cells. TESS_ERR_IO
 * when a file exists and not `overwrite`, or cannot be written; TESS_ERR_ALLOC. Local.
 */
tess_status tess_map_write(const char *name, bool overwrite, const tess_map *map);

#endif
