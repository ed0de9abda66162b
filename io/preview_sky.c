/* Lines of constant right ascension and declination through an orthographic (SIN)
 * image, and their labels where they cross its edges. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "preview.h"
#include "tess_const.h"

enum { SAMPLES = 65, LINE_STEPS = 360 };

static const double rad_per_s = TESS_PI / 43200; /* of time */

/* What part of the sky the plot shows; right ascension relative to the centre. */
typedef struct sky_range {
    double ra_first, ra_last, dec_first, dec_last;
} sky_range;

/* False beyond the horizon. */
static bool to_sky(const tess_image_meta *meta, double l, double m, double *ra_offset,
                   double *dec)
{
    const double r2 = l * l + m * m;
    if (!(r2 < 1)) return false;
    const double n = sqrt(1 - r2), s = sin(meta->dec_rad), c = cos(meta->dec_rad);
    *dec = asin(fmin(fmax(n * s + m * c, -1), 1));
    *ra_offset = atan2(l, n * c - m * s);
    return true;
}

static bool from_sky(const tess_image_meta *meta, double ra_offset, double dec,
                     double *l, double *m)
{
    const double s = sin(meta->dec_rad), c = cos(meta->dec_rad);
    *l = cos(dec) * sin(ra_offset);
    *m = sin(dec) * c - cos(dec) * s * cos(ra_offset);
    return sin(dec) * s + cos(dec) * c * cos(ra_offset) > 0;
}

static bool is_inside(const preview_layout *layout, const double at[2])
{
    return at[0] >= layout->left && at[0] <= layout->right && at[1] >= layout->top &&
           at[1] <= layout->bottom;
}

static sky_range find_range(const tess_image_meta *meta, const preview_layout *layout)
{
    sky_range range = {0, 0, meta->dec_rad, meta->dec_rad};
    for (int j = 0; j < SAMPLES; ++j)
        for (int i = 0; i < SAMPLES; ++i) {
            const double x = (double)i / (SAMPLES - 1), y = (double)j / (SAMPLES - 1);
            double l, m, ra, dec;
            tess_preview_direction(
                meta, layout, layout->left + x * (layout->right - layout->left),
                layout->top + y * (layout->bottom - layout->top), &l, &m);
            if (!to_sky(meta, l, m, &ra, &dec)) continue;
            range.ra_first = fmin(range.ra_first, ra);
            range.ra_last = fmax(range.ra_last, ra);
            range.dec_first = fmin(range.dec_first, dec);
            range.dec_last = fmax(range.dec_last, dec);
        }
    for (int sign = -1; sign <= 1; sign += 2) { /* a pole in view */
        double l, m, at[2];
        if (!from_sky(meta, 0, sign * TESS_PI / 2, &l, &m)) continue;
        tess_preview_place(meta, layout, l, m, at);
        if (!is_inside(layout, at)) continue;
        range.ra_first = -TESS_PI;
        range.ra_last = TESS_PI;
        if (sign > 0)
            range.dec_last = TESS_PI / 2;
        else
            range.dec_first = -TESS_PI / 2;
    }
    return range;
}

/* The smallest step of the table, in its units, that is at least `least`. */
static double round_step(const double *table, int count, double least)
{
    if (least < table[0]) return tess_preview_step(least, 1);
    for (int k = 0; k < count; ++k)
        if (table[k] >= least) return table[k];
    return table[count - 1];
}

static double ra_step_s(const sky_range *range, int most)
{
    static const double table[] = {1,   2,   5,    10,   15,   30,    60,    120,  300,
                                   600, 900, 1800, 3600, 7200, 10800, 14400, 21600};
    return round_step(table, (int)(sizeof table / sizeof *table),
                      (range->ra_last - range->ra_first) / rad_per_s / most);
}

static double dec_step_asec(const sky_range *range, int most)
{
    static const double table[] = {1,    2,    5,     10,    15,    30,
                                   60,   120,  300,   600,   900,   1800,
                                   3600, 7200, 18000, 36000, 54000, 108000};
    return round_step(table, (int)(sizeof table / sizeof *table),
                      (range->dec_last - range->dec_first) / TESS_RAD_PER_ASEC / most);
}

/* Split a count of seconds (of time or arc) into h, m, s or d, m, s, rounded as shown.
 */
static void split(double seconds, double step, int *whole, int *minutes, double *rest,
                  int *decimals)
{
    *decimals = step < 1 ? (int)fmin(ceil(-log10(step) - 1e-9), 6) : 0;
    const double unit = step >= 60 ? 60 : pow(10, -*decimals);
    const double rounded = round(seconds / unit) * unit;
    *whole = (int)floor(rounded / 3600 + 1e-12);
    *minutes = (int)floor((rounded - 3600.0 * *whole) / 60 + 1e-9);
    *rest = fmax(0, rounded - 3600.0 * *whole - 60.0 * *minutes);
}

void tess_preview_ra_text(double ra_rad, double step_s, char text[64])
{
    int hours, minutes, decimals;
    double rest, turns = ra_rad / TESS_TWO_PI;
    turns -= floor(turns);
    split(turns * 86400, step_s, &hours, &minutes, &rest, &decimals);
    hours %= 24;
    if (step_s >= 3600 && minutes == 0)
        snprintf(text, 64, "%d" TEXT_RAISE "h" TEXT_LOWER, hours);
    else if (step_s >= 60)
        snprintf(text, 64,
                 "%d" TEXT_RAISE "h" TEXT_LOWER " %02d" TEXT_RAISE "m" TEXT_LOWER,
                 hours, minutes);
    else
        snprintf(text, 64,
                 "%d" TEXT_RAISE "h" TEXT_LOWER " %02d" TEXT_RAISE "m" TEXT_LOWER
                 " %0*.*f" TEXT_RAISE "s" TEXT_LOWER,
                 hours, minutes, decimals > 0 ? decimals + 3 : 2, decimals, rest);
}

void tess_preview_dec_text(double dec_rad, double step_asec, char text[64])
{
    int degrees, minutes, decimals;
    double rest;
    const char *sign = dec_rad < -0.5e-9 * step_asec ? TEXT_MINUS : "+";
    split(fabs(dec_rad) / TESS_RAD_PER_ASEC, step_asec, &degrees, &minutes, &rest,
          &decimals);
    if (step_asec >= 3600)
        snprintf(text, 64, "%s%d" TEXT_DEGREE, sign, degrees);
    else if (step_asec >= 60)
        snprintf(text, 64, "%s%d" TEXT_DEGREE "%02d" TEXT_PRIME, sign, degrees,
                 minutes);
    else
        snprintf(text, 64, "%s%d" TEXT_DEGREE "%02d" TEXT_PRIME "%0*.*f" TEXT_SECOND,
                 sign, degrees, minutes, decimals > 0 ? decimals + 3 : 2, decimals,
                 rest);
}

/* A line of constant RA (or Dec) to the mask. */
static void add_sky_line(preview_canvas *canvas, const tess_image_meta *meta,
                         const preview_layout *layout, bool constant_ra, double value,
                         const sky_range *range)
{
    const double first = constant_ra ? range->dec_first : range->ra_first;
    const double last = constant_ra ? range->dec_last : range->ra_last;
    double before[2] = {0, 0};
    bool connected = false;
    for (int k = 0; k <= LINE_STEPS; ++k) {
        const double along = first + (last - first) * k / LINE_STEPS;
        double l, m, at[2];
        const bool visible = from_sky(meta, constant_ra ? value : along,
                                      constant_ra ? along : value, &l, &m);
        tess_preview_place(meta, layout, l, m, at);
        if (visible && connected &&
            (is_inside(layout, at) || is_inside(layout, before)))
            tess_canvas_line(canvas, before, at, 1.0);
        connected = visible;
        memcpy(before, at, sizeof before);
    }
}

/* Positions along the bottom (or left) edge where RA (or Dec) passes `value`. */
static int edge_crossings(const tess_image_meta *meta, const preview_layout *layout,
                          bool bottom, double value, double found[4])
{
    int count = 0;
    double before = NAN;
    const int first = bottom ? layout->left : layout->top;
    const int last = bottom ? layout->right : layout->bottom;
    for (int k = first; k <= last && count < 4; ++k) {
        double l, m, ra, dec;
        tess_preview_direction(meta, layout, bottom ? k : layout->left,
                               bottom ? layout->bottom : k, &l, &m);
        if (!to_sky(meta, l, m, &ra, &dec)) {
            before = NAN;
            continue;
        }
        /* wrapped, so that the seam opposite the centre is crossed as well */
        const double now = bottom ? remainder(ra - value, TESS_TWO_PI) : dec - value;
        if (fabs(now - before) < 0.5 && now * before <= 0 && now < before + 1e-300 + 1)
            found[count++] = k - (fabs(now - before) > 0 ? now / (now - before) : 0);
        before = now;
    }
    return count;
}

typedef struct label {
    double at;
    char text[64];
} label;

enum { MAX_LABELS = 48 };

/* Labels of one axis in the order of their ticks; those that would touch are left out.
 */
static int find_labels(const tess_image_meta *meta, const preview_layout *layout,
                       bool bottom, const sky_range *range, double step,
                       label labels[MAX_LABELS])
{
    const preview_text style = {.size = layout->size};
    const double unit = bottom ? rad_per_s : TESS_RAD_PER_ASEC;
    const double origin = bottom ? meta->ra_rad : 0;
    const double first =
        (origin + (bottom ? range->ra_first : range->dec_first)) / unit;
    const double last = (origin + (bottom ? range->ra_last : range->dec_last)) / unit;
    int count = 0;
    for (double k = ceil(first / step); k * step <= last; ++k) {
        double found[4];
        const int crossings =
            edge_crossings(meta, layout, bottom, k * step * unit - origin, found);
        for (int c = 0; c < crossings && count < MAX_LABELS; ++c) {
            label *made = &labels[count];
            bool clear = true;
            made->at = found[c];
            if (bottom)
                tess_preview_ra_text(k * step * unit, step, made->text);
            else
                tess_preview_dec_text(k * step * unit, step, made->text);
            for (int other = 0; other < count; ++other) {
                const double need =
                    bottom ? 0.5 * (tess_text_width(&style, made->text) +
                                    tess_text_width(&style, labels[other].text)) +
                                 1.2 * layout->size
                           : 2 * layout->size;
                clear = clear && fabs(labels[other].at - made->at) >= need;
            }
            count += clear;
        }
    }
    return count;
}

static void draw_labels(preview_canvas *canvas, const preview_layout *layout,
                        bool bottom, const label *labels, int count)
{
    const preview_text style = {layout->size, layout->weight, layout->text,
                                bottom ? 0.5 : 1.0, false};
    for (int k = 0; k < count; ++k) {
        const double at = labels[k].at;
        const double from[2] = {bottom ? at : layout->left - 1,
                                bottom ? layout->bottom + 1 : at};
        const double to[2] = {bottom ? at : layout->left - 7,
                              bottom ? layout->bottom + 7 : at};
        tess_canvas_line(canvas, from, to, 1.4);
        tess_canvas_paint(canvas, layout->line, 1);
        if (bottom)
            tess_text_draw(canvas, &style, at, layout->bottom + 16 + layout->size,
                           labels[k].text);
        else
            tess_text_draw(canvas, &style, layout->left - 12, at + layout->size / 2,
                           labels[k].text);
    }
}

bool tess_preview_graticule(preview_canvas *canvas, const tess_image_meta *meta,
                            const preview_layout *layout, bool labels)
{
    const sky_range range = find_range(meta, layout);
    label ra[MAX_LABELS], dec[MAX_LABELS];
    const int most_x = (layout->right - layout->left) / 120 + 1;
    const int most_y = (layout->bottom - layout->top) / 110 + 1;
    const double ra_step = ra_step_s(&range, most_x),
                 dec_step = dec_step_asec(&range, most_y);
    const int num_ra =
        labels ? find_labels(meta, layout, true, &range, ra_step, ra) : 0;
    const int num_dec =
        labels ? find_labels(meta, layout, false, &range, dec_step, dec) : 0;
    if (labels && (num_ra < 2 || num_dec < 2)) return false;
    tess_canvas_clip(canvas, layout->left, layout->top, layout->right, layout->bottom);
    const double ra_unit = ra_step * rad_per_s, dec_unit = dec_step * TESS_RAD_PER_ASEC;
    for (double k = ceil((meta->ra_rad + range.ra_first) / ra_unit);
         k * ra_unit <= meta->ra_rad + range.ra_last; ++k)
        add_sky_line(canvas, meta, layout, true, k * ra_unit - meta->ra_rad, &range);
    for (double k = ceil(range.dec_first / dec_unit); k * dec_unit <= range.dec_last;
         ++k)
        add_sky_line(canvas, meta, layout, false, k * dec_unit, &range);
    tess_canvas_paint(canvas, layout->text, 0.16);
    tess_canvas_clip(canvas, 0, 0, canvas->width, canvas->height);
    draw_labels(canvas, layout, true, ra, num_ra);
    draw_labels(canvas, layout, false, dec, num_dec);
    return true;
}
