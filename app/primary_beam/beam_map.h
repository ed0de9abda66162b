/** @file beam_map.h  (private to app/primary_beam/)
 *  A power pattern on a regular grid.
 */
#ifndef BEAM_MAP_H
#define BEAM_MAP_H

#include <stdint.h>

/** value[row][column] at x = (column − x0) dx, y = (row − y0) dy [sines]. */
typedef struct beam_map {
    int64_t nx, ny;
    double x0, y0, dx, dy;
    double *value; /**< from tess_alloc */
} beam_map;

/** The power at a place, by cubic interpolation (tess_cubic.h); 0 beyond the samples,
 *  and where one of the samples around is not finite. */
double beam_map_at(const beam_map *map, double x, double y);

#endif
