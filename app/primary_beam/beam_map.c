/* Interpolates power patterns that are known on a grid. */
#include "beam_map.h"

#include <math.h>

#include "tess_cubic.h"
#include "tess_minmax.h"

double beam_map_at(const beam_map *map, double x, double y)
{
    const double column = x / map->dx + map->x0, row = y / map->dy + map->y0;
    double in_x[4], in_y[4], sum = 0;
    if (!(column >= 0 && column <= (double)(map->nx - 1)) ||
        !(row >= 0 && row <= (double)(map->ny - 1)))
        return 0;
    const int64_t i = (int64_t)column, j = (int64_t)row;
    tess_cubic_weights(column - (double)i, in_x);
    tess_cubic_weights(row - (double)j, in_y);
    for (int b = 0; b < 4; ++b) {
        const double *line =
            map->value + tess_clamp_i64(j + b - 1, 0, map->ny - 1) * map->nx;
        for (int a = 0; a < 4; ++a)
            sum += in_y[b] * in_x[a] * line[tess_clamp_i64(i + a - 1, 0, map->nx - 1)];
    }
    return isfinite(sum) ? sum : 0;
}
