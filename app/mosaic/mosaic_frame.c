/* Finds the pixels of a mosaic, and where they lie in its images. */
#include "mosaic_frame.h"

#include "mosaic_lines.h"
#include "tess_const.h"
#include "tess_geom.h"

mosaic_grid mosaic_grid_of_image(const tess_fits_model *image)
{
    return (mosaic_grid){.nx = image->nx,
                         .ny = image->ny,
                         .ra_rad = image->ra_rad,
                         .dec_rad = image->dec_rad,
                         .x0 = image->crpix_x - 1,
                         .y0 = image->crpix_y - 1,
                         .step_x = image->scale_x_rad,
                         .step_y = image->scale_y_rad};
}

mosaic_grid mosaic_grid_of_frame(const tess_mosaic_frame *frame)
{
    return (mosaic_grid){.nx = frame->nx,
                         .ny = frame->ny,
                         .ra_rad = frame->ra_rad,
                         .dec_rad = frame->dec_rad,
                         .x0 = (double)(frame->nx / 2),
                         .y0 = (double)(frame->ny / 2),
                         .step_x = -frame->scale_rad,
                         .step_y = frame->scale_rad};
}

mosaic_way mosaic_way_between(const mosaic_grid *from, const mosaic_grid *to)
{
    mosaic_way way = {.from = *from, .to = *to};
    tess_rotation_between(from->ra_rad, from->dec_rad, to->ra_rad, to->dec_rad,
                          way.rotation);
    return way;
}

/* ---- boxes ---- */

/* The range of places along the border of a box. The way is continuous and has no
 * turning points, so what is inside of the border comes to lie inside of its image.
 * False: a pixel of the border is beyond the horizon. */
static bool find_range(const mosaic_way *way, const mosaic_box *box, double x[2],
                       double y[2])
{
    x[0] = y[0] = INFINITY;
    x[1] = y[1] = -INFINITY;
    for (int64_t j = box->y[0]; j < box->y[1]; ++j) {
        const bool is_edge = j == box->y[0] || j == box->y[1] - 1;
        const int64_t last = box->x[1] - 1 - box->x[0];
        const int64_t step = is_edge || last == 0 ? 1 : last;
        for (int64_t i = box->x[0]; i < box->x[1]; i += step) {
            double to_x, to_y;
            if (!mosaic_way_go(way, (double)i, (double)j, &to_x, &to_y)) return false;
            x[0] = fmin(x[0], to_x);
            x[1] = fmax(x[1], to_x);
            y[0] = fmin(y[0], to_y);
            y[1] = fmax(y[1], to_y);
        }
    }
    return true;
}

/* Whole pixels around a range, of 0 to size. */
static void cut(const double range[2], int64_t margin, int64_t size, int64_t out[2])
{
    const double least = floor(range[0]) - (double)margin;
    const double most = ceil(range[1]) + (double)margin + 1;
    out[0] = (int64_t)fmin(fmax(least, 0), (double)size);
    out[1] = (int64_t)fmin(fmax(most, (double)out[0]), (double)size);
}

mosaic_box mosaic_way_box(const mosaic_way *way, const mosaic_box *box, int64_t margin)
{
    mosaic_box found = {0};
    double x[2], y[2];
    if (box->x[0] >= box->x[1] || box->y[0] >= box->y[1]) return found;
    if (!find_range(way, box, x, y))
        return (mosaic_box){{0, way->to.nx}, {0, way->to.ny}};
    cut(x, margin, way->to.nx, found.x);
    cut(y, margin, way->to.ny, found.y);
    return found;
}

/* ---- rows ---- */

/* The largest error of a place that is found by a parabola [pixels]. A value changes by
 * less than its peak over its width in pixels times that. */
static const double NEAR = 1e-6;

/* A way along a row is r₀ l + r₁ m + r₂ n in pixels of the other grid, of which n =
 * √(1 − l² − m²) alone is curved: its third derivative is −3 l (1 − m²) / n⁵. A
 * parabola through three places h pixels from one another misses by at most h³ / (9 √3)
 * times that of the way (Davis 1975, Interpolation and Approximation, section 3.1). */
void mosaic_way_choose_stride(mosaic_way *way, const mosaic_box *box)
{
    const mosaic_grid *from = &way->from;
    /* the last parabola of a row may end behind it */
    const double end_x = (double)(box->x[1] + MOSAIC_LINE) - from->x0;
    const double end_y = (double)box->y[1] - from->y0;
    const double first_x = (double)box->x[0] - from->x0;
    const double first_y = (double)box->y[0] - from->y0;
    const double l = fmax(fabs(first_x), fabs(end_x)) * fabs(from->step_x);
    const double m = fmax(fabs(first_y), fabs(end_y)) * fabs(from->step_y);
    const double n2 = 1 - l * l - m * m;
    int stride = MOSAIC_LINE / 2;
    way->stride = 0;
    if (!(n2 > 0) || !(way->rotation[2][2] > 0)) return;
    const double turn = fmax(fabs(way->rotation[0][2] / way->to.step_x),
                             fabs(way->rotation[1][2] / way->to.step_y));
    const double third = turn * pow(fabs(from->step_x), 3) * 3 * l / pow(n2, 2.5);
    while (stride > 1 && pow(stride, 3) / (9 * sqrt(3)) * third > NEAR)
        stride /= 2;
    way->stride = stride > 1 ? stride : 0;
}

static void go(const mosaic_way *way, int64_t x, int64_t row, double *to_x,
               double *to_y)
{
    if (mosaic_way_go(way, (double)x, (double)row, to_x, to_y)) return;
    *to_x = *to_y = (double)NAN;
}

/* Places of `count` pixels by the parabola through three places `stride` apart. */
static void go_by_parabola(const double at[3], int stride, int count, double *to)
{
    const double per = 1.0 / stride;
    const double slope = (-1.5 * at[0] + 2 * at[1] - 0.5 * at[2]) * per;
    const double bend = (0.5 * at[0] - at[1] + 0.5 * at[2]) * per * per;
    for (int k = 0; k < count; ++k)
        to[k] = at[0] + k * (slope + k * bend);
}

/* False: there is a horizon between the three places. */
static bool go_by_stride(const mosaic_way *way, int64_t x, int64_t row, int count,
                         double *to_x, double *to_y)
{
    double at_x[3], at_y[3];
    for (int i = 0; i < 3; ++i)
        go(way, x + i * way->stride, row, &at_x[i], &at_y[i]);
    if (!isfinite(at_x[0] + at_x[1] + at_x[2])) return false;
    go_by_parabola(at_x, way->stride, count, to_x);
    go_by_parabola(at_y, way->stride, count, to_y);
    return true;
}

void mosaic_way_row(const mosaic_way *way, int64_t x, int64_t row, int count,
                    double *to_x, double *to_y)
{
    const int step = way->stride > 0 ? 2 * way->stride : count;
    for (int k = 0; k < count; k += step) {
        const int some = count - k < step ? count - k : step;
        if (way->stride > 0 && go_by_stride(way, x + k, row, some, to_x + k, to_y + k))
            continue;
        for (int i = k; i < k + some; ++i)
            go(way, x + i, row, &to_x[i], &to_y[i]);
    }
}

/* A place this close to a pixel [pixels] is the pixel's. Differences of rounding are
 * much smaller, and an interpolated value would differ by less than single precision.
 */
static const double SAME_PLACE = 1e-7;

bool mosaic_way_is_shift(const mosaic_way *way, const mosaic_box *box, int64_t shift[2])
{
    const double x[5] = {0, 1, 0, 1, 0.5}, y[5] = {0, 0, 1, 1, 0.5};
    for (int k = 0; k < 5; ++k) {
        const double at_x =
            (double)box->x[0] + floor(x[k] * (double)(box->x[1] - box->x[0]));
        const double at_y =
            (double)box->y[0] + floor(y[k] * (double)(box->y[1] - box->y[0]));
        double to_x, to_y;
        if (!mosaic_way_go(way, at_x, at_y, &to_x, &to_y)) return false;
        const double by_x = to_x - at_x, by_y = to_y - at_y;
        if (k == 0) {
            shift[0] = (int64_t)floor(by_x + 0.5);
            shift[1] = (int64_t)floor(by_y + 0.5);
        }
        if (fabs(by_x - (double)shift[0]) > SAME_PLACE ||
            fabs(by_y - (double)shift[1]) > SAME_PLACE)
            return false;
    }
    return true;
}

/* ---- the frame ---- */

/* The mean direction of the middles of the images. */
static void find_center(const mosaic_input *input, int num, tess_mosaic_frame *frame)
{
    double sum[3] = {0};
    for (int k = 0; k < num; ++k) {
        const mosaic_grid grid = mosaic_grid_of_image(&input[k].image);
        const double l = ((double)(grid.nx / 2) - grid.x0) * grid.step_x;
        const double m = ((double)(grid.ny / 2) - grid.y0) * grid.step_y;
        const double lmn1[3] = {l, m, tess_geom_nm1(l * l + m * m)};
        double ra, dec;
        tess_sky_place(lmn1, grid.ra_rad, grid.dec_rad, &ra, &dec);
        sum[0] += cos(dec) * cos(ra);
        sum[1] += cos(dec) * sin(ra);
        sum[2] += sin(dec);
    }
    frame->ra_rad = atan2(sum[1], sum[0]);
    if (frame->ra_rad < 0) frame->ra_rad += 2 * TESS_PI;
    frame->dec_rad = atan2(sum[2], hypot(sum[0], sum[1]));
}

/* Half the pixels of the largest mosaic along an axis. */
static const double MOST_HALF = 1 << 19;

/* The size that holds the borders of all images, around the centre. Local. */
static tess_status find_size(const mosaic_input *input, int num,
                             tess_mosaic_frame *frame)
{
    tess_status status = TESS_OK;
    double half_x = 0, half_y = 0;
    /* a grid whose pixel (0, 0) is its centre: places are distances from there */
    const tess_mosaic_frame middle = {.ra_rad = frame->ra_rad,
                                      .dec_rad = frame->dec_rad,
                                      .scale_rad = frame->scale_rad};
    const mosaic_grid to = mosaic_grid_of_frame(&middle);
    for (int k = 0; k < num; ++k) {
        const mosaic_grid from = mosaic_grid_of_image(&input[k].image);
        const mosaic_way way = mosaic_way_between(&from, &to);
        const mosaic_box all = {{0, from.nx}, {0, from.ny}};
        double x[2], y[2];
        if (!find_range(&way, &all, x, y))
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: a part of it lies 90 degrees or more from its own or the "
                      "mosaic's centre; give --center and --size",
                      input[k].image.path);
        half_x = fmax(half_x, fmax(-x[0], x[1]));
        half_y = fmax(half_y, fmax(-y[0], y[1]));
    }
    if (!(fmax(half_x, half_y) < MOST_HALF))
        TESS_FAIL(TESS_ERR_INPUT,
                  "the images would take %.3g x %.3g pixels of --scale; choose larger "
                  "ones, or --size",
                  2 * half_x, 2 * half_y);
    frame->nx = 2 * (int64_t)ceil(half_x) + 2;
    frame->ny = 2 * (int64_t)ceil(half_y) + 2;
cleanup:
    return status;
}

tess_status mosaic_frame_find(const mosaic_input *input, int num,
                              tess_mosaic_frame *frame)
{
    tess_status status = TESS_OK;
    if (!frame->has_center) find_center(input, num, frame);
    if (!(frame->scale_rad > 0)) frame->scale_rad = INFINITY;
    if (isinf(frame->scale_rad))
        for (int k = 0; k < num; ++k)
            frame->scale_rad = fmin(frame->scale_rad, fabs(input[k].image.scale_y_rad));
    if (frame->nx == 0) TESS_TRY(find_size(input, num, frame));
cleanup:
    return status;
}
