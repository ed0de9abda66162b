/* A canvas with anti-aliased lines, and where directions lie on it. Coverage of a pixel
 * falls off over one pixel at the edge of a line, which is what a box filter gives for
 * edges. */
#include <math.h>
#include <string.h>

#include "preview.h"
#include "tess_mem.h"

tess_status tess_canvas_create(int width, int height, preview_colour background,
                               preview_canvas *canvas)
{
    tess_status status = TESS_OK;
    preview_canvas made = {
        .width = width, .height = height, .left = width, .top = height};
    const int64_t pixels = (int64_t)width * height;
    made.rgb = tess_alloc(pixels, 3);
    made.mask = tess_alloc_zero(pixels, 1);
    if (!made.rgb || !made.mask) TESS_FAIL(TESS_ERR_ALLOC, "no memory for a preview");
    for (int64_t k = 0; k < pixels; ++k) {
        made.rgb[3 * k] = background.red;
        made.rgb[3 * k + 1] = background.green;
        made.rgb[3 * k + 2] = background.blue;
    }
    tess_canvas_clip(&made, 0, 0, width, height);
    *canvas = made;
    made = (preview_canvas){0};
cleanup:
    tess_canvas_destroy(&made);
    return status;
}

void tess_canvas_destroy(preview_canvas *canvas)
{
    tess_free(canvas->rgb);
    tess_free(canvas->mask);
    *canvas = (preview_canvas){0};
}

static int limit(double value, int low, int high)
{
    return value > low ? (value < high ? (int)value : high) : low;
}

void tess_canvas_clip(preview_canvas *canvas, int left, int top, int right, int bottom)
{
    const int clip[4] = {left, top, right, bottom};
    memcpy(canvas->clip, clip, sizeof clip);
}

void tess_canvas_line(preview_canvas *canvas, const double from[2], const double to[2],
                      double thickness)
{
    const double reach = thickness / 2 + 0.5;
    const double dx = to[0] - from[0], dy = to[1] - from[1];
    const double length2 = dx * dx + dy * dy;
    const int *clip = canvas->clip;
    if (!isfinite(length2)) return;
    const int left = limit(floor(fmin(from[0], to[0]) - reach), clip[0], clip[2]);
    const int right = limit(ceil(fmax(from[0], to[0]) + reach), clip[0], clip[2]);
    const int top = limit(floor(fmin(from[1], to[1]) - reach), clip[1], clip[3]);
    const int bottom = limit(ceil(fmax(from[1], to[1]) + reach), clip[1], clip[3]);
    for (int y = top; y < bottom; ++y)
        for (int x = left; x < right; ++x) {
            const double px = x + 0.5 - from[0], py = y + 0.5 - from[1];
            double along = length2 > 0 ? (px * dx + py * dy) / length2 : 0;
            along = fmin(fmax(along, 0), 1);
            const double cover = reach - hypot(px - along * dx, py - along * dy);
            if (cover <= 0) continue;
            uint8_t *mask = &canvas->mask[(int64_t)y * canvas->width + x];
            const uint8_t value = (uint8_t)lround(255 * fmin(cover, 1));
            if (value > *mask) *mask = value;
        }
    if (left >= right || top >= bottom) return;
    canvas->left = left < canvas->left ? left : canvas->left;
    canvas->top = top < canvas->top ? top : canvas->top;
    canvas->right = right > canvas->right ? right : canvas->right;
    canvas->bottom = bottom > canvas->bottom ? bottom : canvas->bottom;
}

static uint8_t mix(uint8_t from, uint8_t to, double part)
{
    return (uint8_t)(from + part * ((double)to - from) + 0.5);
}

preview_colour tess_colour_mix(preview_colour from, preview_colour to, double part)
{
    return (preview_colour){mix(from.red, to.red, part),
                            mix(from.green, to.green, part),
                            mix(from.blue, to.blue, part)};
}

static void blend(uint8_t *rgb, preview_colour colour, double part)
{
    const preview_colour mixed =
        tess_colour_mix((preview_colour){rgb[0], rgb[1], rgb[2]}, colour, part);
    rgb[0] = mixed.red;
    rgb[1] = mixed.green;
    rgb[2] = mixed.blue;
}

void tess_canvas_paint(preview_canvas *canvas, preview_colour colour, double opacity)
{
    for (int y = canvas->top; y < canvas->bottom; ++y)
        for (int x = canvas->left; x < canvas->right; ++x) {
            const int64_t k = (int64_t)y * canvas->width + x;
            if (canvas->mask[k] == 0) continue;
            blend(&canvas->rgb[3 * k], colour, opacity * canvas->mask[k] / 255.0);
            canvas->mask[k] = 0;
        }
    canvas->left = canvas->width;
    canvas->top = canvas->height;
    canvas->right = canvas->bottom = 0;
}

void tess_canvas_fill(preview_canvas *canvas, double left, double top, double right,
                      double bottom, preview_colour colour, double opacity)
{
    const int *clip = canvas->clip;
    const int x1 = limit(round(right), clip[0], clip[2]);
    const int y1 = limit(round(bottom), clip[1], clip[3]);
    for (int y = limit(round(top), clip[1], clip[3]); y < y1; ++y)
        for (int x = limit(round(left), clip[0], clip[2]); x < x1; ++x)
            blend(&canvas->rgb[3 * ((int64_t)y * canvas->width + x)], colour, opacity);
}

void tess_canvas_frame(preview_canvas *canvas, int left, int top, int right, int bottom,
                       preview_colour colour)
{
    tess_canvas_fill(canvas, left - 1, top - 1, right + 1, top, colour, 1);
    tess_canvas_fill(canvas, left - 1, bottom, right + 1, bottom + 1, colour, 1);
    tess_canvas_fill(canvas, left - 1, top, left, bottom, colour, 1);
    tess_canvas_fill(canvas, right, top, right + 1, bottom, colour, 1);
}

/* ---- where directions lie, and round steps between ticks ---- */

void tess_preview_place(const tess_image_meta *meta, const preview_layout *layout,
                        double l, double m, double at[2])
{
    /* pixel i covers [i, i + 1) pixel widths from the plot's left edge */
    const double i = (double)(meta->nx / 2) + 0.5 - (l - meta->l0) / meta->scale_rad;
    const double j = (double)(meta->ny / 2) + 0.5 + (m - meta->m0) / meta->scale_rad;
    at[0] = layout->left + i * layout->pixel_x;
    at[1] = layout->bottom - j * layout->pixel_y;
}

void tess_preview_direction(const tess_image_meta *meta, const preview_layout *layout,
                            double x, double y, double *l, double *m)
{
    const double i = (x - layout->left) / layout->pixel_x - 0.5;
    const double j = (layout->bottom - y) / layout->pixel_y - 0.5;
    *l = meta->l0 + ((double)(meta->nx / 2) - i) * meta->scale_rad;
    *m = meta->m0 + (j - (double)(meta->ny / 2)) * meta->scale_rad;
}

double tess_preview_step(double range, int most)
{
    static const double round_numbers[] = {1, 2, 5, 10};
    const double least = range / most;
    if (!(least > 0) || !isfinite(least)) return 1;
    const double decade = pow(10, floor(log10(least)));
    for (size_t k = 0; k < 4; ++k)
        if (round_numbers[k] * decade >= least * (1 - 1e-9))
            return round_numbers[k] * decade;
    return 10 * decade;
}
