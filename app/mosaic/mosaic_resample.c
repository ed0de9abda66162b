/* Finds values between pixels, and adds them to the sums of a mosaic. */
#include "mosaic_resample.h"

#include <math.h>

#include "tess_const.h"

/* Lanczos' kernel has this many lobes to each side. */
enum { LOBES = 3, MOST_TAPS = 2 * LOBES };

/* A place this close to a pixel [pixels] is the pixel's, so that images whose pixels
 * agree are not interpolated. Differences of rounding are much smaller, and an
 * interpolated value would differ by less than single precision. */
static const double SAME_PLACE = 1e-7;

/* The pixels along one axis that a value is made of, and their weights. */
typedef struct taps {
    int64_t first;
    int num;
    double weight[MOST_TAPS];
} taps;

int64_t mosaic_kernel_reach(tess_mosaic_kernel kernel)
{
    return kernel == TESS_MOSAIC_LANCZOS ? LOBES : 1;
}

static taps linear_taps(double place)
{
    const double first = floor(place), between = place - first;
    taps at = {.first = (int64_t)first, .num = 2};
    at.weight[0] = 1 - between;
    at.weight[1] = between;
    if (between < SAME_PLACE || between > 1 - SAME_PLACE) {
        at.first = (int64_t)floor(place + 0.5);
        at.num = 1;
        at.weight[0] = 1;
    }
    return at;
}

#define HALF_SQRT3 0.86602540378443864676

/* Cosine and sine of π (2 − k) / 3, for the pixels k of Lanczos' kernel. */
static const double TURN[MOST_TAPS][2] = {
    {-0.5, HALF_SQRT3}, {0.5, HALF_SQRT3},   {1, 0},
    {0.5, -HALF_SQRT3}, {-0.5, -HALF_SQRT3}, {-1, 0}};

/* sinc(x) sinc(x/3) at the distances x of six pixels, over their sum, so that a
 * constant stays what it is. From pixel to pixel sin(πx) only changes its sign, and
 * sin(πx/3) is turned by 60 degrees, so that one sine and one cosine serve all. */
static taps lanczos_taps(double place)
{
    taps at = linear_taps(place);
    if (at.num == 1) return at;
    const double between = at.weight[1];
    const double s = sin(TESS_PI * between / LOBES), c = cos(TESS_PI * between / LOBES);
    const double sine = s * (3 - 4 * s * s); /* of three times the angle */
    double sum = 0;
    at.first -= LOBES - 1;
    at.num = MOST_TAPS;
    for (int k = 0; k < MOST_TAPS; ++k) {
        const double x = between + (double)(LOBES - 1 - k);
        const double turned = k % 2 ? -sine : sine;
        at.weight[k] = turned * (s * TURN[k][0] + c * TURN[k][1]) / (x * x);
        sum += at.weight[k];
    }
    for (int k = 0; k < MOST_TAPS; ++k)
        at.weight[k] /= sum;
    return at;
}

/* NaN where a pixel is outside of the strip, or NaN. */
static double value_at(const mosaic_strip *strip, const double *pixel, const taps *x,
                       const taps *y)
{
    const int64_t row = y->first - strip->row_first;
    double value = 0;
    if (x->first < 0 || x->first + x->num > strip->nx || row < 0 ||
        row + y->num > strip->num_rows)
        return (double)NAN;
    for (int j = 0; j < y->num; ++j) {
        const double *from = pixel + (row + j) * strip->nx + x->first;
        double line = 0;
        for (int i = 0; i < x->num; ++i)
            line += x->weight[i] * from[i];
        value += y->weight[j] * line;
    }
    return value;
}

static void add_pixel(const mosaic_strip *strip, tess_mosaic_kernel kernel, double x,
                      double y, double per_variance, double *flux, double *weight)
{
    const bool is_lanczos = kernel == TESS_MOSAIC_LANCZOS;
    const taps near_x = linear_taps(x), near_y = linear_taps(y);
    const double beam = value_at(strip, strip->beam, &near_x, &near_y);
    if (!isfinite(beam)) return;
    const taps far_x = is_lanczos ? lanczos_taps(x) : near_x;
    const taps far_y = is_lanczos ? lanczos_taps(y) : near_y;
    const double value = value_at(strip, strip->image, &far_x, &far_y);
    if (!isfinite(value)) return;
    *flux += beam * value * per_variance;
    *weight += beam * beam * per_variance;
}

void mosaic_sums_add(const tess_mosaic_opts *opts, const mosaic_way *way,
                     const mosaic_strip *strip, const mosaic_box *box, double noise_jy,
                     const mosaic_sums *sums)
{
    const double per_variance = 1 / (noise_jy * noise_jy);
#pragma omp parallel for schedule(dynamic, 16) num_threads(opts->threads)
    for (int64_t row = box->y[0]; row < box->y[1]; ++row) {
        const int64_t at = (row - sums->row_first) * sums->nx;
        for (int64_t i = box->x[0]; i < box->x[1]; ++i) {
            double x, y;
            if (mosaic_way_go(way, (double)i, (double)row, &x, &y))
                add_pixel(strip, opts->kernel, x, y, per_variance, &sums->flux[at + i],
                          &sums->weight[at + i]);
        }
    }
}
