/* Draws ticks, numbers and titles along the plot and the colour bar. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "preview.h"
#include "tess_const.h"

enum { TICK = 6 };

const char *tess_preview_number(double value, double step, char text[48])
{
    char plain[40];
    const int decimals = (int)fmin(fmax(ceil(-log10(step) - 1e-9), 0), 12);
    if (fabs(value) < 1e-6 * step) value = 0;
    if (fabs(value) >= 1e7 || decimals > 8)
        snprintf(plain, sizeof plain, "%.3g", fabs(value));
    else
        snprintf(plain, sizeof plain, "%.*f", decimals, fabs(value));
    snprintf(text, 48, "%s%s", value < 0 ? TEXT_MINUS : "", plain);
    return text;
}

const char *tess_preview_angle_unit(double rad, double *unit_rad)
{
    static const struct {
        const char *name;
        double asec, up_to_asec;
    } units[] = {{TEXT_MU "as", 1e-6, 2e-3},
                 {"mas", 1e-3, 2},
                 {"arcsec", 1, 300},
                 {"arcmin", 60, 18000}};
    for (size_t k = 0; k < sizeof units / sizeof *units; ++k)
        if (rad < units[k].up_to_asec * TESS_RAD_PER_ASEC) {
            *unit_rad = units[k].asec * TESS_RAD_PER_ASEC;
            return units[k].name;
        }
    *unit_rad = TESS_RAD_PER_DEG;
    return "deg";
}

static void tick(preview_canvas *canvas, const preview_layout *layout, double x,
                 double y, double dx, double dy)
{
    const double from[2] = {x, y}, to[2] = {x + dx, y + dy};
    tess_canvas_line(canvas, from, to, 1.4);
    tess_canvas_paint(canvas, layout->line, 1);
}

/* Makes labels of one axis at round numbers of `unit_rad`. */
static void offset_labels(const tess_image_meta *meta, const preview_layout *layout,
                          bool across, double unit_rad, preview_axes *axes)
{
    const int pixels =
        across ? layout->right - layout->left : layout->bottom - layout->top;
    double first_l, first_m, last_l, last_m;
    tess_preview_direction(meta, layout, layout->right, layout->bottom, &first_l,
                           &first_m);
    tess_preview_direction(meta, layout, layout->left, layout->top, &last_l, &last_m);
    const double first = (across ? first_l : first_m) / unit_rad;
    const double last = (across ? last_l : last_m) / unit_rad;
    const double step = tess_preview_step(last - first, pixels / 95 + 1);
    for (double k = ceil(first / step); k * step <= last; ++k) {
        if (axes->num == PREVIEW_MAX_LABELS) return;
        preview_label *made = &axes->label[axes->num++];
        const double angle = k * step * unit_rad;
        double at[2];
        tess_preview_place(meta, layout, across ? angle : 0, across ? 0 : angle, at);
        *made = (preview_label){.edge = across ? PREVIEW_BOTTOM : PREVIEW_LEFT,
                                .across = across,
                                .value = angle,
                                .x = across ? at[0] : layout->left,
                                .y = across ? layout->bottom : at[1]};
        tess_preview_number(k * step, step, made->text);
    }
}

void tess_preview_axes_choose(const tess_image_meta *meta, const preview_layout *layout,
                              preview_axes *axes)
{
    /* below, coordinates are longer than what they tell apart */
    const double narrow_rad = 180 * TESS_RAD_PER_ASEC;
    const double field =
        (double)(meta->nx > meta->ny ? meta->nx : meta->ny) * meta->scale_rad;
    double unit_rad = 1;
    const char *unit = tess_preview_angle_unit(field, &unit_rad);
    *axes = (preview_axes){.graticule = field >= narrow_rad};
    if (axes->graticule && tess_preview_sky_labels(meta, layout, axes)) return;
    offset_labels(meta, layout, true, unit_rad, axes);
    offset_labels(meta, layout, false, unit_rad, axes);
    snprintf(axes->title_x, sizeof axes->title_x, "Relative right ascension (%s)",
             unit);
    snprintf(axes->title_y, sizeof axes->title_y, "Relative declination (%s)", unit);
}

static void draw_label(preview_canvas *canvas, const preview_layout *layout,
                       const preview_label *label)
{
    const double pad = 5, half = layout->size / 2;
    preview_text style = {layout->size, layout->weight, layout->text, 0.5, false};
    if (label->edge == PREVIEW_BOTTOM) {
        tick(canvas, layout, label->x, layout->bottom + 1, 0, TICK);
        tess_text_draw(canvas, &style, label->x, layout->bottom + 15 + layout->size,
                       label->text);
    } else if (label->edge == PREVIEW_LEFT) {
        style.align = 1;
        tick(canvas, layout, layout->left - 1, label->y, -TICK, 0);
        tess_text_draw(canvas, &style, layout->left - 12, label->y + half, label->text);
    } else {
        const double wide = 0.5 * tess_text_width(&style, label->text) + pad;
        tess_canvas_fill(canvas, label->x - wide, label->y - half - pad,
                         label->x + wide, label->y + half + pad, layout->background,
                         0.62);
        tess_text_draw(canvas, &style, label->x, label->y + half, label->text);
    }
}

void tess_preview_axes_draw(preview_canvas *canvas, const tess_image_meta *meta,
                            const preview_layout *layout, const preview_axes *axes)
{
    const double size = layout->size * 1.08;
    const preview_text across = {size, layout->weight, layout->muted, 0.5, false};
    const preview_text up = {size, layout->weight, layout->muted, 0.5, true};
    if (axes->graticule) {
        tess_canvas_clip(canvas, layout->left, layout->top, layout->right,
                         layout->bottom);
        tess_preview_sky_lines(canvas, meta, layout);
        tess_canvas_paint(canvas, layout->text, axes->strong ? 0.3 : 0.16);
        tess_canvas_clip(canvas, 0, 0, canvas->width, canvas->height);
    }
    for (int k = 0; k < axes->num; ++k)
        draw_label(canvas, layout, &axes->label[k]);
    tess_text_draw(canvas, &across, 0.5 * (layout->left + layout->right),
                   layout->bottom + 34 + 2 * layout->size, axes->title_x);
    tess_text_draw(canvas, &up, 34, 0.5 * (layout->top + layout->bottom),
                   axes->title_y);
}

/* Turns "JY/BEAM" into "Jy/beam". Units in mixed case are left as they are. */
static void readable_unit(const char *unit, char text[40])
{
    bool shout = true;
    for (const char *c = unit; *c; ++c)
        shout = shout && !islower((unsigned char)*c);
    snprintf(text, 40, "%.30s", unit);
    for (char *c = text + 1; shout && text[0] && *c; ++c)
        *c = (char)tolower((unsigned char)*c);
}

double tess_preview_unit(const char *unit, double largest, char text[48])
{
    static const struct {
        const char *prefix;
        double size, from;
    } prefixes[] = {{"M", 1e6, 1e6},   {"k", 1e3, 2e3},       {"", 1, 0.1},
                    {"m", 1e-3, 1e-4}, {TEXT_MU, 1e-6, 1e-7}, {"n", 1e-9, 0}};
    char plain[40];
    readable_unit(unit, plain);
    snprintf(text, 48, "%s", plain);
    if (strncasecmp(unit, "jy", 2) != 0 || !(largest > 0)) return 1;
    for (size_t k = 0; k < sizeof prefixes / sizeof *prefixes; ++k)
        if (largest >= prefixes[k].from) {
            snprintf(text, 48, "%s%s", prefixes[k].prefix, plain);
            return prefixes[k].size;
        }
    return 1;
}

typedef struct bar_ticks {
    preview_canvas *canvas;
    const preview_layout *layout;
    const preview_stretch *stretch;
    double right; /* of the bar */
    double unit;
    double taken[64]; /* positions of labels so far */
    int num_taken;
} bar_ticks;

/* Draws a labelled tick, unless it would touch one that is there. */
static void bar_tick(bar_ticks *bar, double value, double step)
{
    const preview_layout *layout = bar->layout;
    const double part = tess_preview_stretch_at(bar->stretch, value * bar->unit);
    const double y = layout->bottom - part * (layout->bottom - layout->top);
    if (!(part >= -1e-9 && part <= 1 + 1e-9) || bar->num_taken >= 64) return;
    for (int k = 0; k < bar->num_taken; ++k)
        if (fabs(bar->taken[k] - y) < 2.2 * layout->size) return;
    bar->taken[bar->num_taken++] = y;
    const preview_text style = {layout->size, layout->weight, layout->text, 0, false};
    char text[48];
    tick(bar->canvas, layout, bar->right + 1, y, TICK, 0);
    tess_text_draw(bar->canvas, &style, bar->right + 13, y + layout->size / 2,
                   tess_preview_number(value, step, text));
}

/* Draws zero and powers of ten first, and then what fits between. */
static void logarithmic_ticks(bar_ticks *bar, double largest)
{
    static const double multiples[] = {1, 3, 2, 5};
    const int top = (int)ceil(log10(largest));
    bar_tick(bar, 0, 1);
    for (size_t k = 0; k < sizeof multiples / sizeof *multiples; ++k)
        for (int decade = top; decade > top - 8; --decade) {
            const double size = pow(10, decade);
            bar_tick(bar, multiples[k] * size, size);
            bar_tick(bar, -multiples[k] * size, size);
        }
}

void tess_preview_bar(preview_canvas *canvas, const preview_layout *layout, int left,
                      const preview_stretch *stretch, const preview_colour *map,
                      const char *unit)
{
    enum { WIDTH = 24 };
    const int height = layout->bottom - layout->top;
    const double largest = fmax(fabs(stretch->low), fabs(stretch->high));
    char name[48];
    bar_ticks bar = {canvas, layout, stretch, left + WIDTH, 1, {0}, 0};
    /* on a logarithmic bar the unit suits the middle of it */
    bar.unit = tess_preview_unit(
        unit, stretch->soft > 0 ? sqrt(largest * stretch->soft) : largest, name);
    for (int y = 0; y < height; ++y) {
        const int index = (height - 1 - y) * (PREVIEW_COLOURS - 1) / (height - 1);
        tess_canvas_fill(canvas, left, layout->top + y, left + WIDTH,
                         layout->top + y + 1, map[index], 1);
    }
    tess_canvas_frame(canvas, left, layout->top, left + WIDTH, layout->bottom,
                      layout->line);
    if (stretch->soft > 0) {
        logarithmic_ticks(&bar, largest / bar.unit);
    } else {
        const int most = (int)fmax(2, height / (4.5 * layout->size));
        const double low = stretch->low / bar.unit, high = stretch->high / bar.unit;
        const double step = tess_preview_step(high - low, most);
        for (double k = ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k)
            bar_tick(&bar, k * step, step);
    }
    const preview_text style = {layout->size * 1.08, layout->weight, layout->muted, 0.5,
                                true};
    tess_text_draw(canvas, &style, left + WIDTH + 100,
                   0.5 * (layout->top + layout->bottom), name);
}
