/* Draws lines, and points with texts, over the image of a preview. */
#include <math.h>

#include "preview.h"

static const preview_colour mark_colour = {120, 220, 170};

/* Canvas position of a pixel of the image. */
static void place(const preview_layout *layout, const double at[2], double on[2])
{
    on[0] = layout->left + (at[0] + 0.5) * layout->pixel_x;
    on[1] = layout->bottom - (at[1] + 0.5) * layout->pixel_y;
}

/* A small cross with its text to the right. */
static void draw_point(preview_canvas *canvas, const preview_layout *layout,
                       const tess_preview_point *point)
{
    static const double ARM = 5;
    const preview_text style = {layout->size - 1, layout->weight, mark_colour, 0,
                                false};
    double on[2];
    place(layout, point->at, on);
    if (!(on[0] > layout->left && on[0] < layout->right && on[1] > layout->top &&
          on[1] < layout->bottom))
        return;
    for (int k = -1; k <= 1; k += 2) {
        const double from[2] = {on[0] - ARM, on[1] - k * ARM};
        const double to[2] = {on[0] + ARM, on[1] + k * ARM};
        tess_canvas_line(canvas, from, to, 1.4);
    }
    tess_canvas_paint(canvas, mark_colour, 1);
    tess_text_draw(canvas, &style, on[0] + ARM + 4, on[1] + 4, point->text);
}

void tess_preview_marks_draw(preview_canvas *canvas, const preview_layout *layout,
                             const tess_preview_marks *marks)
{
    tess_canvas_clip(canvas, layout->left, layout->top, layout->right, layout->bottom);
    for (int64_t k = 0; k < marks->num_lines; ++k) {
        double from[2], to[2];
        place(layout, marks->line[k].from, from);
        place(layout, marks->line[k].to, to);
        tess_canvas_line(canvas, from, to, 1.4);
    }
    tess_canvas_paint(canvas, mark_colour, 0.85);
    for (int64_t k = 0; k < marks->num_points; ++k)
        draw_point(canvas, layout, &marks->point[k]);
    tess_canvas_clip(canvas, 0, 0, canvas->width, canvas->height);
}
