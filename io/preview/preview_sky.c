/* Draws lines of constant right ascension and declination through an orthographic (SIN)
 * image, with labels where they cross its edges, or inside. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "preview.h"
#include "tess_const.h"

enum { SAMPLES = 65, LINE_STEPS = 360, MAX_LINES = 40 };

static const double rad_per_s = TESS_PI / 43200; /* of time */

/* The part of the sky that the plot shows. Right ascension is relative to the centre.
 */
typedef struct sky_range {
    double ra_first, ra_last, dec_first, dec_last;
} sky_range;

/* The lines that are drawn. Right ascensions are relative to the centre. */
typedef struct graticule {
    const tess_image_meta *meta;
    const preview_layout *layout;
    sky_range range;
    double ra_step_s, dec_step_asec;
    double ra[MAX_LINES], dec[MAX_LINES];
    int num_ra, num_dec;
} graticule;

/* Returns false beyond the horizon. */
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
    for (int sign = -1; sign <= 1;
         sign += 2) { /* a pole in view, not just on the horizon */
        double l, m, at[2];
        if (!from_sky(meta, 0, sign * TESS_PI / 2, &l, &m) ||
            fabs(meta->dec_rad) < 0.02)
            continue;
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

/* Returns the smallest step of the table, in its units, that is at least `least`. */
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

/* Splits a count of seconds (of time or arc) into h, m, s or d, m, s, rounded as shown.
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
        snprintf(text, 64, "%s%d" TEXT_DEGREE, degrees ? sign : "", degrees);
    else if (step_asec >= 60)
        snprintf(text, 64, "%s%d" TEXT_DEGREE "%02d" TEXT_PRIME, sign, degrees,
                 minutes);
    else
        snprintf(text, 64, "%s%d" TEXT_DEGREE "%02d" TEXT_PRIME "%0*.*f" TEXT_SECOND,
                 sign, degrees, minutes, decimals > 0 ? decimals + 3 : 2, decimals,
                 rest);
}

/* Lists multiples of `unit` from first to last, relative to origin, without poles and
 * without the line that closes a circle. */
static int find_lines(double origin, double first, double last, double unit,
                      double limit, double line[MAX_LINES])
{
    int count = 0;
    for (double k = ceil((origin + first) / unit - 1e-9); count < MAX_LINES; ++k) {
        const double value = k * unit - origin;
        if (value > last + 1e-9 * unit || value >= first + TESS_TWO_PI - 0.5 * unit)
            break;
        if (fabs(value) < limit) line[count++] = value;
    }
    return count;
}

static void make_graticule(const tess_image_meta *meta, const preview_layout *layout,
                           graticule *made)
{
    const sky_range range = find_range(meta, layout);
    *made = (graticule){.meta = meta, .layout = layout, .range = range};
    /* around a pole lines are apart by angle, not by the width of the plot */
    const bool circle = range.ra_last - range.ra_first > 1.99 * TESS_PI;
    const int across = circle ? 8 : (layout->right - layout->left) / 110 + 1;
    for (int most = across; most < MAX_LINES; ++most) {
        made->ra_step_s = ra_step_s(&range, most);
        made->num_ra = find_lines(meta->ra_rad, range.ra_first, range.ra_last,
                                  made->ra_step_s * rad_per_s, INFINITY, made->ra);
        if (made->num_ra >= 2) break;
    }
    for (int most = (layout->bottom - layout->top) / 90 + 1; most < MAX_LINES; ++most) {
        made->dec_step_asec = dec_step_asec(&range, most);
        made->num_dec = find_lines(0, range.dec_first, range.dec_last,
                                   made->dec_step_asec * TESS_RAD_PER_ASEC,
                                   TESS_PI / 2 - 1e-9, made->dec);
        if (made->num_dec >= 2) break;
    }
}

/* Adds a line of constant RA (or Dec) to the mask. */
static void add_sky_line(preview_canvas *canvas, const graticule *sky, bool constant_ra,
                         double value)
{
    const sky_range *range = &sky->range;
    const double first = constant_ra ? range->dec_first : range->ra_first;
    const double last = constant_ra ? range->dec_last : range->ra_last;
    double before[2] = {0, 0};
    bool connected = false;
    for (int k = 0; k <= LINE_STEPS; ++k) {
        const double along = first + (last - first) * k / LINE_STEPS;
        double l, m, at[2];
        const bool visible = from_sky(sky->meta, constant_ra ? value : along,
                                      constant_ra ? along : value, &l, &m);
        tess_preview_place(sky->meta, sky->layout, l, m, at);
        if (visible && connected &&
            (is_inside(sky->layout, at) || is_inside(sky->layout, before)))
            tess_canvas_line(canvas, before, at, 1.0);
        connected = visible;
        memcpy(before, at, sizeof before);
    }
}

void tess_preview_sky_lines(preview_canvas *canvas, const tess_image_meta *meta,
                            const preview_layout *layout)
{
    graticule sky;
    make_graticule(meta, layout, &sky);
    for (int k = 0; k < sky.num_ra; ++k)
        add_sky_line(canvas, &sky, true, sky.ra[k]);
    for (int k = 0; k < sky.num_dec; ++k)
        add_sky_line(canvas, &sky, false, sky.dec[k]);
    for (int k = 0; k < LINE_STEPS; ++k) { /* the horizon */
        const double a = TESS_TWO_PI * k / LINE_STEPS,
                     b = TESS_TWO_PI * (k + 1) / LINE_STEPS;
        double from[2], to[2];
        tess_preview_place(meta, layout, cos(a), sin(a), from);
        tess_preview_place(meta, layout, cos(b), sin(b), to);
        if (is_inside(layout, from) || is_inside(layout, to))
            tess_canvas_line(canvas, from, to, 1.0);
    }
}

/* ---- labels ---- */

/* Returns RA relative to `value`, wrapped so that the seam opposite the centre is no
 * step, or Dec less `value`; NAN beyond the horizon. */
static double beside_line(const graticule *sky, bool across, double value, double x,
                          double y)
{
    double l, m, ra, dec;
    tess_preview_direction(sky->meta, sky->layout, x, y, &l, &m);
    if (!to_sky(sky->meta, l, m, &ra, &dec)) return NAN;
    return across ? remainder(ra - value, TESS_TWO_PI) : dec - value;
}

/* Whether a line crosses the bottom (or left) edge once, and so steeply that a tick
 * tells which line it belongs to, and where. */
static bool crosses_edge(const graticule *sky, bool across, double value, double *where)
{
    const preview_layout *layout = sky->layout;
    const double edge = across ? layout->bottom : layout->left;
    const double least_sine = 0.5;
    const int first = across ? layout->left : layout->top;
    const int last = across ? layout->right : layout->bottom;
    int count = 0;
    double before = NAN;
    for (int k = first; k <= last; ++k) {
        const double now =
            beside_line(sky, across, value, across ? k : edge, across ? edge : k);
        /* beyond a quarter turn it is the other side of the pole */
        if (before * now <= 0 && fabs(now - before) < TESS_PI / 2 && now != 0) {
            *where = k - now / (now - before);
            ++count;
        }
        before = now;
    }
    if (count != 1) return false;
    const double x = across ? *where : edge, y = across ? edge : *where;
    const double dx = beside_line(sky, across, value, x + 1, y) -
                      beside_line(sky, across, value, x - 1, y);
    const double dy = beside_line(sky, across, value, x, y + 1) -
                      beside_line(sky, across, value, x, y - 1);
    return fabs(across ? dx : dy) >= least_sine * hypot(dx, dy);
}

static bool is_seen(const graticule *sky, bool across, double value)
{
    const sky_range *range = &sky->range;
    const double first = across ? range->dec_first : range->ra_first;
    const double last = across ? range->dec_last : range->ra_last;
    for (int k = 0; k <= LINE_STEPS; ++k) {
        const double along = first + (last - first) * k / LINE_STEPS;
        double l, m, at[2];
        if (!from_sky(sky->meta, across ? value : along, across ? along : value, &l,
                      &m))
            continue;
        tess_preview_place(sky->meta, sky->layout, l, m, at);
        if (is_inside(sky->layout, at)) return true;
    }
    return false;
}

static preview_label make_label(const graticule *sky, bool across, double value)
{
    preview_label made = {.across = across, .value = value};
    if (across) {
        made.value += sky->meta->ra_rad;
        tess_preview_ra_text(made.value, sky->ra_step_s, made.text);
    } else {
        tess_preview_dec_text(value, sky->dec_step_asec, made.text);
    }
    return made;
}

/* Adds a label, unless it would touch one that is there. */
static bool add_label(const preview_layout *layout, const preview_label *made,
                      preview_axes *axes)
{
    const preview_text style = {.size = layout->size};
    const double wide = tess_text_width(&style, made->text);
    for (int k = 0; k < axes->num; ++k) {
        const preview_label *other = &axes->label[k];
        if (other->edge != made->edge) continue;
        if (fabs(other->x - made->x) <
                0.5 * (wide + tess_text_width(&style, other->text)) +
                    1.2 * layout->size &&
            fabs(other->y - made->y) < 2 * layout->size)
            return false;
    }
    if (axes->num == PREVIEW_MAX_LABELS) return false;
    axes->label[axes->num++] = *made;
    return true;
}

/* Adds labels at the bottom (or left) edge, if most of the lines in view can have one
 * there. */
static bool add_edge_labels(const graticule *sky, bool across, preview_axes *axes)
{
    const double *line = across ? sky->ra : sky->dec;
    const int count = across ? sky->num_ra : sky->num_dec;
    const int had = axes->num;
    int seen = 0, crossing = 0;
    for (int k = 0; k < count; ++k) {
        preview_label made = make_label(sky, across, line[k]);
        double where = 0;
        seen += is_seen(sky, across, line[k]);
        if (!crosses_edge(sky, across, line[k], &where)) continue;
        ++crossing;
        made.edge = across ? PREVIEW_BOTTOM : PREVIEW_LEFT;
        made.x = across ? where : sky->layout->left;
        made.y = across ? sky->layout->bottom : where;
        add_label(sky->layout, &made, axes);
    }
    if (5 * crossing >= 3 * seen && axes->num - had >= 2) return true;
    axes->num = had;
    return false;
}

/* Labels a line of RA (or Dec) where Dec (or RA) is `along`, if that is well inside. */
static bool add_inside(const graticule *sky, bool across, double value, double along,
                       preview_axes *axes)
{
    const preview_layout *layout = sky->layout;
    const preview_text style = {.size = layout->size};
    const double farthest2 =
        0.97; /* of l² + m²: farther out, the sky is seen edge on */
    preview_label made = make_label(sky, across, value);
    const double wide = 0.5 * tess_text_width(&style, made.text) + layout->size;
    double l, m, at[2];
    if (fabs(across ? along : value) > TESS_PI / 2 ||
        !from_sky(sky->meta, across ? value : along, across ? along : value, &l, &m) ||
        l * l + m * m > farthest2)
        return false;
    tess_preview_place(sky->meta, layout, l, m, at);
    if (at[0] < layout->left + wide || at[0] > layout->right - wide ||
        at[1] < layout->top + layout->size + 4 ||
        at[1] > layout->bottom - layout->size - 4)
        return false;
    made.edge = PREVIEW_INSIDE;
    made.x = at[0];
    made.y = at[1];
    return add_label(layout, &made, axes);
}

/* Adds up the distances of the labels from `first` on to the nearest other label, up to
 * a distance beyond which more is no better. */
static double room_between(const preview_layout *layout, const preview_axes *axes,
                           int first)
{
    double room = 0;
    for (int i = first; i < axes->num; ++i) {
        double nearest = 12 * layout->size;
        for (int j = first; j < axes->num; ++j)
            if (j != i)
                nearest = fmin(nearest, hypot(axes->label[j].x - axes->label[i].x,
                                              axes->label[j].y - axes->label[i].y));
        room += nearest;
    }
    return room;
}

/* Finds where labels of RA (or Dec) lines do best: half way between two of the other
 * lines, where they have most room; among equals, next to the centre. */
static double best_row(const graticule *sky, bool across, const preview_axes *axes)
{
    const double *line = across ? sky->ra : sky->dec;
    const double *other = across ? sky->dec : sky->ra;
    const int count = across ? sky->num_ra : sky->num_dec;
    const int num_other = across ? sky->num_dec : sky->num_ra;
    const double centre = across ? sky->meta->dec_rad : 0;
    const double half = 0.5 * (across ? sky->dec_step_asec * TESS_RAD_PER_ASEC
                                      : sky->ra_step_s * rad_per_s);
    double best = centre, most = -1;
    for (int k = 0; k <= num_other; ++k) {
        const double along =
            k < num_other ? other[k] - half : other[num_other - 1] + half;
        preview_axes trial = *axes;
        for (int i = 0; i < count; ++i)
            add_inside(sky, across, line[i], along, &trial);
        const double room = room_between(sky->layout, &trial, axes->num);
        if (room < most ||
            (room <= most && fabs(along - centre) >= fabs(best - centre)))
            continue;
        most = room;
        best = along;
    }
    return best;
}

/* Labels each line in view, and puts the labels beside each other if possible. */
static void add_inside_labels(const graticule *sky, bool across, preview_axes *axes)
{
    const sky_range *range = &sky->range;
    const double *line = across ? sky->ra : sky->dec;
    const int count = across ? sky->num_ra : sky->num_dec;
    const double along = best_row(sky, across, axes);
    const double step = (across ? range->dec_last - range->dec_first
                                : range->ra_last - range->ra_first) /
                        LINE_STEPS;
    for (int i = 0; i < count; ++i)
        for (int k = 0; k <= LINE_STEPS; ++k)
            if (add_inside(sky, across, line[i], along + k * step, axes) ||
                add_inside(sky, across, line[i], along - k * step, axes))
                break;
    axes->strong = true;
}

bool tess_preview_sky_labels(const tess_image_meta *meta, const preview_layout *layout,
                             preview_axes *axes)
{
    preview_axes made = *axes;
    graticule sky;
    int num[2] = {0, 0};
    make_graticule(meta, layout, &sky);
    if (sky.num_ra < 2 || sky.num_dec < 2) return false;
    if (add_edge_labels(&sky, true, &made))
        snprintf(made.title_x, sizeof made.title_x, "Right ascension");
    else
        add_inside_labels(&sky, true, &made);
    if (add_edge_labels(&sky, false, &made))
        snprintf(made.title_y, sizeof made.title_y, "Declination");
    else
        add_inside_labels(&sky, false, &made);
    for (int k = 0; k < made.num; ++k)
        ++num[made.label[k].across];
    if (num[0] < 2 || num[1] < 2) return false;
    *axes = made;
    return true;
}
