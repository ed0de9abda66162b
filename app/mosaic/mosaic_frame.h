/** @file mosaic_frame.h  (private to app/mosaic/)
 *  The pixels of the mosaic, and where they lie in an image.
 *
 *  Both are SIN projections. So a direction (l, m, n) of the one is that of the other
 *  after a rotation, and no angle is computed for a pixel (Calabretta and Greisen 2002,
 *  A&A 395, 1077, sections 2 and 5.1.5).
 */
#ifndef TESS_MOSAIC_FRAME_H
#define TESS_MOSAIC_FRAME_H

#include "mosaic_input.h"

/** Direction cosines of pixels from a centre: pixel (x, y), counted from 0, is at
 *  l = (x − x0)·step_x, m = (y − y0)·step_y. */
typedef struct mosaic_grid {
    int64_t nx, ny;
    double ra_rad, dec_rad;
    double x0, y0, step_x, step_y;
} mosaic_grid;

/** From pixels of one grid to those of another. */
typedef struct mosaic_way {
    mosaic_grid from, to;
    double rotation[3][3];
    int stride; /**< places along a row are computed at so many pixels from one another,
                     and by a parabola in between; 0: at every pixel */
} mosaic_way;

mosaic_grid mosaic_grid_of_image(const tess_fits_model *image);   /**< Local. */
mosaic_grid mosaic_grid_of_frame(const tess_mosaic_frame *frame); /**< Local. */

mosaic_way mosaic_way_between(const mosaic_grid *from, const mosaic_grid *to);

/** Where pixel (x, y) of `from` lies in `to`. False: it is beyond the horizon of
 *  either. Local. */
static inline bool mosaic_way_go(const mosaic_way *way, double x, double y,
                                 double *to_x, double *to_y);

/** Where pixels x to x + count − 1 of a row lie, NaN beyond a horizon, to
 *  1e-6 pixels. Local. */
void mosaic_way_row(const mosaic_way *way, int64_t x, int64_t row, int count,
                    double *to_x, double *to_y);

/** Pixels of a grid: [first, end) of columns and rows. */
typedef struct mosaic_box {
    int64_t x[2], y[2];
} mosaic_box;

/** The least box of pixels of way->to that holds all that lies in `box` of way->from,
 *  and `margin` pixels around it. All of way->to where a part of the box's border lies
 *  beyond the horizon. Local. */
mosaic_box mosaic_way_box(const mosaic_way *way, const mosaic_box *box, int64_t margin);

/** Choose the stride of a way for pixels of a box. Local. */
void mosaic_way_choose_stride(mosaic_way *way, const mosaic_box *box);

/** Whether all pixels of a box lie on pixels of way->to, at pixel (x + shift[0],
 *  y + shift[1]), so that nothing is interpolated. Local. */
bool mosaic_way_is_shift(const mosaic_way *way, const mosaic_box *box,
                         int64_t shift[2]);

/** Find what a frame leaves open. TESS_ERR_INPUT: an image lies 90 degrees or more from
 *  the centre, or the mosaic would be too large. Local. */
tess_status mosaic_frame_find(const mosaic_input *input, int num,
                              tess_mosaic_frame *frame);

/* ---- */

#include <math.h>

static inline bool mosaic_way_go(const mosaic_way *way, double x, double y,
                                 double *to_x, double *to_y)
{
    const double l = (x - way->from.x0) * way->from.step_x;
    const double m = (y - way->from.y0) * way->from.step_y;
    const double n2 = 1 - l * l - m * m;
    if (!(n2 > 0)) return false;
    const double n = sqrt(n2);
    const double(*r)[3] = way->rotation;
    if (!(r[2][0] * l + r[2][1] * m + r[2][2] * n > 0)) return false;
    *to_x = way->to.x0 + (r[0][0] * l + r[0][1] * m + r[0][2] * n) / way->to.step_x;
    *to_y = way->to.y0 + (r[1][0] * l + r[1][1] * m + r[1][2] * n) / way->to.step_y;
    return true;
}

#endif
