/* Computes colour maps in the Oklab space (B. Ottosson 2020), whose L is perceived
 * lightness: even steps of value are even steps of lightness. */
#include <math.h>

#include "preview.h"
#include "tess_const.h"

typedef struct knot {
    double chroma, hue_deg;
} knot;

enum { NUM_KNOTS = 6 };

/* indigo, purple, crimson, orange, amber, pale yellow */
static const knot heat[NUM_KNOTS] = {{0.040, 278}, {0.125, 300}, {0.168, 345},
                                     {0.172, 386}, {0.148, 432}, {0.065, 466}};

/* Converts linear Oklab to sRGB. Returns whether the colour exists. */
static bool to_srgb(double lightness, double chroma, double hue, double rgb[3])
{
    const double a = chroma * cos(hue), b = chroma * sin(hue);
    const double l = lightness + 0.3963377774 * a + 0.2158037573 * b;
    const double m = lightness - 0.1055613458 * a - 0.0638541728 * b;
    const double s = lightness - 0.0894841775 * a - 1.2914855480 * b;
    const double l3 = l * l * l, m3 = m * m * m, s3 = s * s * s;
    const double linear[3] = {
        4.0767416621 * l3 - 3.3077115913 * m3 + 0.2309699292 * s3,
        -1.2684380046 * l3 + 2.6097574011 * m3 - 0.3413193965 * s3,
        -0.0041960863 * l3 - 0.7034186147 * m3 + 1.7076147010 * s3};
    bool exists = true;
    for (int c = 0; c < 3; ++c) {
        exists = exists && linear[c] >= -1e-4 && linear[c] <= 1 + 1e-4;
        const double v = fmin(fmax(linear[c], 0), 1);
        rgb[c] = v <= 0.0031308 ? 12.92 * v : 1.055 * pow(v, 1 / 2.4) - 0.055;
    }
    return exists;
}

/* Returns the colour, with as much less chroma as the screen needs. */
static preview_colour colour_of(double lightness, double chroma, double hue_deg)
{
    const double hue = hue_deg * TESS_RAD_PER_DEG;
    double rgb[3], low = 0, high = chroma;
    if (!to_srgb(lightness, chroma, hue, rgb)) {
        for (int k = 0; k < 20; ++k) {
            const double middle = 0.5 * (low + high);
            if (to_srgb(lightness, middle, hue, rgb))
                low = middle;
            else
                high = middle;
        }
        to_srgb(lightness, low, hue, rgb);
    }
    return (preview_colour){(uint8_t)lround(255 * rgb[0]),
                            (uint8_t)lround(255 * rgb[1]),
                            (uint8_t)lround(255 * rgb[2])};
}

/* Interpolates the knots by Catmull and Rom. */
static double between(double a, double b, double c, double d, double t)
{
    return b +
           0.5 * t *
               (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
}

static preview_colour heat_colour(double t)
{
    const double at = t * (NUM_KNOTS - 1);
    const int k = at < NUM_KNOTS - 1 ? (int)at : NUM_KNOTS - 2;
    const knot *b = &heat[k], *c = &heat[k + 1];
    const knot *a = k > 0 ? b - 1 : b, *d = k + 2 < NUM_KNOTS ? c + 1 : c;
    return colour_of(
        0.13 + 0.84 * t,
        fmax(0, between(a->chroma, b->chroma, c->chroma, d->chroma, at - k)),
        between(a->hue_deg, b->hue_deg, c->hue_deg, d->hue_deg, at - k));
}

/* Blue stands for negative values, orange for positive ones, and near black for zero.
 */
static preview_colour signed_colour(double t)
{
    const double side = fabs(2 * t - 1);
    const double chroma = 0.15 * sin(TESS_PI * (0.08 + 0.74 * side));
    return colour_of(0.16 + 0.76 * side, side > 0.01 ? chroma : 0.02,
                     t < 0.5 ? 258 - 50 * side : 35 + 55 * side);
}

void tess_preview_map(preview_map_kind kind, preview_colour map[PREVIEW_COLOURS])
{
    for (int k = 0; k < PREVIEW_COLOURS; ++k) {
        const double t = (double)k / (PREVIEW_COLOURS - 1);
        map[k] = kind == PREVIEW_HEAT ? heat_colour(t) : signed_colour(t);
    }
}

static double drawn(const preview_stretch *stretch, double value)
{
    return stretch->soft > 0 ? asinh(value / stretch->soft) : value;
}

void tess_preview_stretch_choose(const preview_image *image, bool both_signs,
                                 preview_stretch *stretch)
{
    /* above this ratio of peak to noise a linear scale shows a black field with dots */
    const double linear_up_to = 100;
    const double largest = fmax(fabs(image->min), fabs(image->max));
    *stretch = (preview_stretch){.kind = both_signs ? PREVIEW_SIGNED : PREVIEW_HEAT,
                                 .low = both_signs ? -largest : image->low,
                                 .high = both_signs ? largest : image->max};
    if (image->sigma > 0 && largest > linear_up_to * image->sigma) {
        stretch->soft = 3 * image->sigma;
        if (!both_signs) stretch->low = fmax(image->low, -5 * image->sigma);
    }
    if (!(stretch->high > stretch->low)) { /* a constant image */
        const double half = largest > 0 ? largest : 1;
        stretch->low -= half;
        stretch->high += half;
    }
    stretch->from = drawn(stretch, stretch->low);
    stretch->to = drawn(stretch, stretch->high);
}

double tess_preview_stretch_at(const preview_stretch *stretch, double value)
{
    return (drawn(stretch, value) - stretch->from) / (stretch->to - stretch->from);
}
