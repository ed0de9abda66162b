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

/** Cubic convolution between the samples (Keys 1981, IEEE Trans. ASSP 29, 1153, a =
 *  −1/2); 0 outside of them, and where one of the samples around is not finite. */
double beam_map_at(const beam_map *map, double x, double y);

/** Weights of the four samples around a place that is `t` beyond the second. */
void beam_cubic_weights(double t, double weight[4]);

#endif
