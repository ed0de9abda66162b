/* Interpolates power patterns that are known on a grid. */
#include "beam_map.h"

#include <math.h>

void beam_cubic_weights(double t, double weight[4])
{
    const double t2 = t * t, t3 = t2 * t;
    weight[0] = -0.5 * t3 + t2 - 0.5 * t;
    weight[1] = 1.5 * t3 - 2.5 * t2 + 1;
    weight[2] = -1.5 * t3 + 2 * t2 + 0.5 * t;
    weight[3] = 0.5 * t3 - 0.5 * t2;
}

static int64_t inside(int64_t k, int64_t count)
{
    return k < 0 ? 0 : k >= count ? count - 1 : k;
}

double beam_map_at(const beam_map *map, double x, double y)
{
    const double column = x / map->dx + map->x0, row = y / map->dy + map->y0;
    double in_x[4], in_y[4], sum = 0;
    if (!(column >= 0 && column <= (double)(map->nx - 1)) ||
        !(row >= 0 && row <= (double)(map->ny - 1)))
        return 0;
    const int64_t i = (int64_t)column, j = (int64_t)row;
    beam_cubic_weights(column - (double)i, in_x);
    beam_cubic_weights(row - (double)j, in_y);
    for (int b = 0; b < 4; ++b) {
        const double *line = map->value + inside(j + b - 1, map->ny) * map->nx;
        for (int a = 0; a < 4; ++a)
            sum += in_y[b] * in_x[a] * line[inside(i + a - 1, map->nx)];
    }
    return isfinite(sum) ? sum : 0;
}
