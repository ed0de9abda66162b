/* Draws sources into rows of images: each thread adds all sources to rows of its own,
 * in the order of the list. */
#include <math.h>

#include "clean_gaussian.h"
#include "tess_const.h"
#include "tess_draw.h"

/* Pixels that a point reaches to each side of it, and how far from the middle of a
 * pixel it is no longer in that one alone: what is neglected is as much of its flux. */
enum { REACH = 32 };
static const double CENTRED = 1e-7;

/* Gaussians of fewer pixels (FWHM) across are drawn as points: the sum of a sampled one
 * of σ pixels depends on its place by 2 exp(−2π²σ²), here 1e-6. */
static const double LEAST_WIDTH = 2;

/* The distance of points along an axis [σ], which is at most a pixel, and the distance
 * of the farthest point from the middle [σ]. */
static const double STEP = 1.2, FARTHEST = 4.8;

/* Gaussians end where they are this much of their height. */
static const double LEAST_HEIGHT = 1e-12;

/* Where a thread draws. */
typedef struct drawing {
    const tess_clean_images *images;
    double *rows;
    int64_t first, end; /* rows of this thread, of the image */
} drawing;

/* ---- points ---- */

/* sinc(t) below a Hann window. */
static double sinc(double t)
{
    if (!(fabs(t) < REACH)) return 0;
    const double window = 0.5 + 0.5 * cos(TESS_PI * t / REACH);
    return fabs(t) > 0 ? window * sin(TESS_PI * t) / (TESS_PI * t) : 1;
}

/* Values at the 2·REACH pixels around `at`, of sum 1; returns the first pixel. */
static int64_t sinc_values(double at, double value[2 * REACH])
{
    const int64_t first = (int64_t)floor(at) - REACH + 1;
    double sum = 0;
    if (fabs(at - round(at)) <= CENTRED) at = round(at);
    for (int k = 0; k < 2 * REACH; ++k)
        sum += value[k] = sinc((double)(first + k) - at);
    for (int k = 0; k < 2 * REACH; ++k)
        value[k] /= sum;
    return first;
}

static void draw_point(const drawing *to, double x0, double y0, double flux_jy)
{
    double along_x[2 * REACH], along_y[2 * REACH];
    const int64_t nx = to->images->nx;
    /* places far away, or nowhere, have no pixel that an integer counts */
    if (!(x0 > -REACH - 1 && x0 < (double)nx + REACH)) return;
    if (!(y0 > (double)to->first - REACH - 1 && y0 < (double)to->end + REACH)) return;
    const int64_t first_y = (int64_t)floor(y0) - REACH + 1;
    const int64_t first_x = sinc_values(x0, along_x);
    sinc_values(y0, along_y);
    for (int j = 0; j < 2 * REACH; ++j) {
        const int64_t y = first_y + j;
        if (y < to->first || y >= to->end || !(fabs(along_y[j]) > 0)) continue;
        double *row = to->rows + (y - to->images->row_first) * nx;
        for (int i = 0; i < 2 * REACH; ++i)
            if (first_x + i >= 0 && first_x + i < nx)
                row[first_x + i] += flux_jy * along_y[j] * along_x[i];
    }
}

/* ---- Gaussians ---- */

static int64_t clamp(double value, int64_t low, int64_t high)
{
    if (value < (double)low) return low;
    return value > (double)high ? high : (int64_t)value;
}

static void draw_gaussian(const drawing *to, double x0, double y0,
                          const clean_widths *widths, double height)
{
    const int64_t nx = to->images->nx;
    const clean_exponent e = clean_exponent_of(widths);
    /* an ellipse of FWHM w along an axis, at all angles, ends at w · reach */
    const double reach = sqrt(-log(LEAST_HEIGHT) / (4 * log(2)));
    const double dx = reach * sqrt(widths->xx), dy = reach * sqrt(widths->yy);
    const int64_t first_x = clamp(ceil(x0 - dx), 0, nx);
    const int64_t end_x = clamp(floor(x0 + dx) + 1, 0, nx);
    const int64_t first_y = clamp(ceil(y0 - dy), to->first, to->end);
    const int64_t end_y = clamp(floor(y0 + dy) + 1, to->first, to->end);
    for (int64_t j = first_y; j < end_y; ++j) {
        double *row = to->rows + (j - to->images->row_first) * nx;
        const double y = (double)j - y0;
        for (int64_t i = first_x; i < end_x; ++i) {
            const double x = (double)i - x0;
            row[i] += height *
                      exp(-(e.along_x * x * x + e.along_y * y * y + e.across * x * y));
        }
    }
}

/* Area below a Gaussian of height 1 [pixels]. */
static double area_of(const clean_widths *widths)
{
    return TESS_GAUSSIAN_AREA * sqrt(clean_widths_determinant(widths));
}

/* Points along one axis of a Gaussian, at k · step with k from −num to num. */
typedef struct points {
    int64_t num;
    double step, sigma;
} points;

static points points_of(double width_px)
{
    const double sigma = width_px / (2 * sqrt(2 * log(2)));
    const double step = fmin(STEP * sigma, 1);
    return (points){step > 0 ? (int64_t)(FARTHEST * sigma / step) : 0, step, sigma};
}

static double weight_of(const points *axis, int64_t k)
{
    const double z = axis->sigma > 0 ? (double)k * axis->step / axis->sigma : 0;
    return exp(-z * z / 2);
}

static double weight_of_all(const points *axis)
{
    double sum = 0;
    for (int64_t k = -axis->num; k <= axis->num; ++k)
        sum += weight_of(axis, k);
    return sum;
}

/* A narrow Gaussian as points along both axes. */
static void draw_narrow(const drawing *to, const tess_drawn_source *source)
{
    const double c = cos(source->angle_rad), s = sin(source->angle_rad);
    const points major = points_of(source->major_px),
                 minor = points_of(source->minor_px);
    const double each =
        source->flux_jy / (weight_of_all(&major) * weight_of_all(&minor));
    for (int64_t a = -major.num; a <= major.num; ++a)
        for (int64_t b = -minor.num; b <= minor.num; ++b) {
            const double along = (double)a * major.step, aside = (double)b * minor.step;
            draw_point(to, source->x - along * s + aside * c,
                       source->y + along * c + aside * s,
                       each * weight_of(&major, a) * weight_of(&minor, b));
        }
}

static void draw_source(const drawing *to, const tess_drawn_source *source)
{
    if (!source->is_gaussian) {
        draw_point(to, source->x, source->y, source->flux_jy);
    } else if (source->minor_px < LEAST_WIDTH) {
        draw_narrow(to, source);
    } else {
        const clean_widths widths =
            clean_widths_of(source->major_px, source->minor_px, source->angle_rad);
        draw_gaussian(to, source->x, source->y, &widths,
                      source->flux_jy / area_of(&widths));
    }
}

/* ---- threads ---- */

/* Rows of thread `k` of `num`. */
static drawing share(const tess_clean_images *images, int k, int num, double *rows)
{
    return (drawing){.images = images,
                     .rows = rows,
                     .first = images->row_first + images->num_rows * k / num,
                     .end = images->row_first + images->num_rows * (k + 1) / num};
}

void tess_draw_model(const tess_clean_images *images, const tess_drawn_source *source,
                     int64_t num_sources, int threads, double *rows)
{
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int t = 0; t < threads; ++t) {
        const drawing to = share(images, t, threads, rows);
        for (int64_t k = 0; k < num_sources; ++k)
            draw_source(&to, &source[k]);
    }
}

void tess_draw_restored(const tess_clean_images *images, const tess_clean_beam *beam,
                        const tess_drawn_source *source, int64_t num_sources,
                        int threads, double *rows)
{
    const clean_widths own =
        clean_widths_of(beam->major_px, beam->minor_px, beam->angle_rad);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int t = 0; t < threads; ++t) {
        const drawing to = share(images, t, threads, rows);
        for (int64_t k = 0; k < num_sources; ++k) {
            const tess_drawn_source *s = &source[k];
            clean_widths widths = own;
            if (s->is_gaussian) {
                const clean_widths more =
                    clean_widths_of(s->major_px, s->minor_px, s->angle_rad);
                widths.xx += more.xx;
                widths.yy += more.yy;
                widths.xy += more.xy;
            }
            draw_gaussian(&to, s->x, s->y, &widths,
                          s->flux_jy * area_of(&own) / area_of(&widths));
        }
    }
}
