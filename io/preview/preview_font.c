/* A stroke font. A glyph is its advance and its strokes; coordinates are base-36
 * digits, x then y, on a grid where the baseline is at y = 6, small letters end at 19,
 * capitals at 24, descenders at 0. A stroke is straight from point to point; after '~'
 * its points control a uniform quadratic B-spline, after '@' a closed one, so that the
 * four corners of a rectangle make an O. */
#include <math.h>
#include <string.h>

#include "preview.h"

enum { BASELINE = 6, CAPITAL = 18, MAX_POINTS = 16, CURVE_STEPS = 8 };

typedef struct glyph_entry {
    char code;
    const char *strokes; /* first digit: advance */
} glyph_entry;

static const glyph_entry glyphs[] = {
    {' ', "8"},
    {'!', "50o0c 0607"},
    {'"', "90o0k 4o4k"},
    {'#', "k366o 96co 1ifi 0cec"},
    {'$', "h~ckao0o0gcec6160a 6q64"},
    {'%', "j06eo @0i0o6o6i @868cece6"},
    {'&', "j~e63k3obobi0d06a6ed"},
    {'\'', "50o0k"},
    {'(', "a~5q0k0953"},
    {')', "a~0q5k5903"},
    {'*', "f0lah 0hal 5o5e"},
    {'+', "h0fcf 696l"},
    {',', "61703"},
    {'-', "c0d7d"},
    {'.', "50607"},
    {'/', "d048q"},
    {'0', "h@060ococ6"},
    {'1', "h3k8o86"},
    {'2', "h~0j0ococg06 06c6"},
    {'3', "h~0k1obobf4f ~4fcfc6060a"},
    {'4', "h969o0bcb"},
    {'5', "hbo1o0f ~0f3icic61609"},
    {'6', "h@060hchc6 ~bl9o0o0b"},
    {'7', "h0oco46"},
    {'8', "h@1f1obobf @060fcfc6"},
    {'9', "h@0d0ococd ~1936c6cj"},
    {':', "50607 0h0i"},
    {';', "61703 1h1i"},
    {'<', "hcl0fc9"},
    {'=', "h0ici 0ccc"},
    {'>', "h0lcf09"},
    {'?', "g~0k1obobh5g5b 5657"},
    {'@', "k@060ofof6 @595lblb9"},
    {'A', "k068og6 3cdc"},
    {'B', "i060o ~0obobg0g ~0gdgd606"},
    {'C', "j~ekco0o06c6ea"},
    {'D', "j060o ~0oeoe606"},
    {'E', "g060o 0obo 06b6 0f9f"},
    {'F', "f060o 0obo 0f9f"},
    {'G', "k~ekco0o06f6fe fe9e"},
    {'H', "j060o e6eo 0fef"},
    {'I', "5060o"},
    {'J', "e~9o96060b"},
    {'K', "i060o do0c 5gd6"},
    {'L', "f0o06a6"},
    {'M', "l060o8ago g6go"},
    {'N', "j060oe6eo"},
    {'O', "k@060ofof6"},
    {'P', "h060o ~0ococe0e"},
    {'Q', "k@060ofof6 9ag4"},
    {'R', "i060o ~0ococe0e 6ed6"},
    {'S', "h~ckao0o0gcec6160a"},
    {'T', "i0oeo 7o76"},
    {'U', "j~0o06e6eo"},
    {'V', "i0o76eo"},
    {'W', "m0o469le6io"},
    {'X', "h06do 0od6"},
    {'Y', "i0o7eeo 7e76"},
    {'Z', "h0odo06d6"},
    {'[', "94q0q0343"},
    {'\\', "d0q84"},
    {']', "90q4q4303"},
    {'^', "h0g6ocg"},
    {'_', "e02c2"},
    {'`', "80o3l"},
    {'a', "f@060jaja6 a6aj"},
    {'b', "g060o @060jbjb6"},
    {'c', "e~ag8j0j0686a9"},
    {'d', "gb6bo @060jbjb6"},
    {'e', "g0dbd ~bdbj0j0696a9"},
    {'f', "c~8o4o4k46 0j8j"},
    {'g', "g@060jbjb6 ~bjb4b01003"},
    {'h', "f060o ~0d0jaja6"},
    {'i', "5060j 0n0o"},
    {'j', "8~3j333000 3n3o"},
    {'k', "e060o 9j0b 3ea6"},
    {'l', "5060o"},
    {'m', "l060j ~0d0j8j86 ~8d8jgjg6"},
    {'n', "f060j ~0d0jaja6"},
    {'o', "g@060jbjb6"},
    {'p', "g000j @060jbjb6"},
    {'q', "gb0bj @060jbjb6"},
    {'r', "b060j ~0d0j7j"},
    {'s', "d~9g8j0j0d9c960609"},
    {'t', "c~4n4a4686 0j8j"},
    {'u', "f~0j06a6ac a6aj"},
    {'v', "e0j56aj"},
    {'w', "k0j468hc6gj"},
    {'x', "d069j 0j96"},
    {'y', "e0j56 aj30"},
    {'z', "d0j9j0696"},
    {'{', "9~5q2q2f0f ~0f2f2353"},
    {'|', "50q02"},
    {'}', "9~0q3q3f5f ~5f3f3303"},
    {'~', "h~0d4h8dch"},
    {'\001', "f000j ~0j06a6ac a6aj"}, /* TEXT_MU */
    {'\002', "b@0i0o6o6i"},           /* TEXT_DEGREE */
    {'\003', "72o0j"},                /* TEXT_PRIME */
    {'\004', "b2o0j 6o4j"},           /* TEXT_SECOND */
    {'\005', "50e0f"},                /* TEXT_DOT */
    {'\006', "h0fcf"},                /* TEXT_MINUS */
    {'\007', "h29ak 2ka9"},           /* TEXT_TIMES */
};

static int digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static const char *find_glyph(char code)
{
    const char *unknown = "";
    for (size_t k = 0; k < sizeof glyphs / sizeof *glyphs; ++k) {
        if (glyphs[k].code == code) return glyphs[k].strokes;
        if (glyphs[k].code == '?') unknown = glyphs[k].strokes;
    }
    return unknown;
}

/* Where the grid of a glyph lies on the canvas. */
typedef struct text_pen {
    preview_canvas *canvas;
    double x, y;  /* of the origin at the baseline */
    double scale; /* pixels per unit */
    double raise; /* units */
    double weight;
    bool upright;
} text_pen;

static void to_canvas(const text_pen *pen, const double point[2], double at[2])
{
    const double along = point[0] * pen->scale;
    const double up = (point[1] - BASELINE) * pen->scale + pen->raise;
    at[0] = pen->upright ? pen->x - up : pen->x + along;
    at[1] = pen->upright ? pen->y - along : pen->y - up;
}

static void draw_line(const text_pen *pen, const double from[2], const double to[2])
{
    double a[2], b[2];
    to_canvas(pen, from, a);
    to_canvas(pen, to, b);
    tess_canvas_line(pen->canvas, a, b, pen->weight);
}

static void middle(const double a[2], const double b[2], double out[2])
{
    out[0] = 0.5 * (a[0] + b[0]);
    out[1] = 0.5 * (a[1] + b[1]);
}

/* Draws the parabola that leaves `from` towards `control` and arrives at `to`. */
static void draw_parabola(const text_pen *pen, const double from[2],
                          const double control[2], const double to[2])
{
    double last[2] = {from[0], from[1]};
    for (int k = 1; k <= CURVE_STEPS; ++k) {
        const double t = (double)k / CURVE_STEPS, s = 1 - t;
        double next[2];
        for (int c = 0; c < 2; ++c)
            next[c] = s * s * from[c] + 2 * s * t * control[c] + t * t * to[c];
        draw_line(pen, last, next);
        memcpy(last, next, sizeof last);
    }
}

static void draw_curve(const text_pen *pen, double (*point)[2], int count, bool closed)
{
    const int first = closed ? 0 : 1, end = closed ? count : count - 1;
    for (int k = first; k < end; ++k) {
        const double *before = point[(k + count - 1) % count];
        const double *after = point[(k + 1) % count];
        double from[2], to[2];
        middle(before, point[k], from);
        middle(point[k], after, to);
        if (!closed && k == first) draw_line(pen, before, from);
        draw_parabola(pen, from, point[k], to);
        if (!closed && k == end - 1) draw_line(pen, to, after);
    }
}

static void draw_glyph(const text_pen *pen, const char *stroke)
{
    while (*stroke) {
        double point[MAX_POINTS][2];
        int count = 0;
        char kind = 0;
        if (*stroke == '~' || *stroke == '@') kind = *stroke++;
        for (; stroke[0] && stroke[0] != ' ' && count < MAX_POINTS;
             stroke += 2, ++count) {
            point[count][0] = digit(stroke[0]);
            point[count][1] = digit(stroke[1]);
        }
        if (kind)
            draw_curve(pen, point, count, kind == '@');
        else
            for (int k = 0; k + 1 < count; ++k)
                draw_line(pen, point[k], point[k + 1]);
        while (*stroke == ' ')
            ++stroke;
    }
}

/* Draws with a pen, or measures only if its canvas is NULL. Returns the width. */
static double run_text(text_pen *pen, const char *text)
{
    const double full = pen->scale;
    double width = 0;
    for (; *text; ++text) {
        if (*text == TEXT_RAISE[0] || *text == TEXT_LOWER[0]) {
            const bool raised = *text == TEXT_RAISE[0];
            pen->scale = raised ? 0.6 * full : full;
            pen->raise = raised ? 0.45 * CAPITAL * full : 0;
            if (raised) width -= 1.5 * full; /* closer than a full letter */
            if (raised && pen->canvas && !pen->upright) pen->x -= 1.5 * full;
            continue;
        }
        const char *glyph = find_glyph(*text);
        const double advance = digit(glyph[0]) * pen->scale;
        if (pen->canvas) {
            draw_glyph(pen, glyph + 1);
            if (pen->upright)
                pen->y -= advance;
            else
                pen->x += advance;
        }
        width += advance;
    }
    return width;
}

double tess_text_width(const preview_text *style, const char *text)
{
    text_pen pen = {.scale = style->size / CAPITAL};
    const double width = run_text(&pen, text);
    return width > 0 ? width - 5 * pen.scale : 0; /* no gap after the last letter */
}

void tess_text_draw(preview_canvas *canvas, const preview_text *style, double x,
                    double y, const char *text)
{
    const double back = style->align * tess_text_width(style, text);
    text_pen pen = {.canvas = canvas,
                    .x = style->upright ? x : x - back,
                    .y = style->upright ? y + back : y,
                    .scale = style->size / CAPITAL,
                    .weight = style->weight,
                    .upright = style->upright};
    run_text(&pen, text);
    tess_canvas_paint(canvas, style->colour, 1);
}
