/** @file crowded_rows.h  (tests)
 *  Rows whose bricks are hot, and the distance of two images.
 */
#ifndef TESS_CROWDED_ROWS_H
#define TESS_CROWDED_ROWS_H

#include <math.h>

#include "draw.h"

/** uvw_m[rows][3], of which a third reach far and the others crowd near the centre,
 * with |w| up to a limit; freq_hz[chans] from 100 MHz on. */
static inline void draw_crowded_rows(draw *from, int rows, double w_most_m,
                                     double (*uvw_m)[3], int chans, double *freq_hz)
{
    for (int c = 0; c < chans; ++c)
        freq_hz[c] = 1e8 * (1 + 0.02 * c);
    for (int k = 0; k < rows; ++k) {
        const double spread = k % 3 ? 30.0 : 480.0;
        uvw_m[k][0] = draw_uniform(from, -spread, spread);
        uvw_m[k][1] = draw_uniform(from, -spread, spread);
        uvw_m[k][2] = draw_uniform(from, -w_most_m, w_most_m);
    }
}

/** weight[num] of samples, one in seven of which has none, and the parts of their
 * visibilities, vis[num][parts]. */
static inline void draw_samples(draw *from, int num, int parts, double *vis,
                                double *weight)
{
    for (int k = 0; k < num; ++k) {
        weight[k] = k % 7 == 0 ? 0 : draw_uniform(from, 0.1, 2);
        for (int i = 0; i < parts; ++i)
            vis[k * parts + i] = draw_normal(from);
    }
}

/** L2 norm of a − b over that of b. */
static inline double relative(const double *a, const double *b, int n)
{
    double difference = 0, size = 0;
    for (int k = 0; k < n; ++k) {
        difference += (a[k] - b[k]) * (a[k] - b[k]);
        size += b[k] * b[k];
    }
    return sqrt(difference / size);
}

#endif
