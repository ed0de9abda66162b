/* Finds values between pixels, and adds them to the sums of a mosaic. */
#include "mosaic_resample.h"

#include <math.h>

#include "tess_const.h"
#include "tess_real.h"

int64_t mosaic_kernel_reach(tess_mosaic_kernel kernel)
{
    return kernel == TESS_MOSAIC_LANCZOS ? MOSAIC_LOBES : 1;
}

/* ---- Lanczos' kernel ---- */

static double sinc(double x)
{
    return x > 0 || x < 0 ? sin(TESS_PI * x) / (TESS_PI * x) : 1;
}

/* sinc(x) sinc(x/3) at the distances of six pixels from a place `between` pixels behind
 * the third, over their sum, so that a constant stays what it is. */
static void lanczos(double between, double weight[MOSAIC_TAPS])
{
    double sum = 0;
    for (int k = 0; k < MOSAIC_TAPS; ++k) {
        const double x = between + (double)(MOSAIC_LOBES - 1 - k);
        weight[k] = sinc(x) * sinc(x / MOSAIC_LOBES);
        sum += weight[k];
    }
    for (int k = 0; k < MOSAIC_TAPS; ++k)
        weight[k] /= sum;
}

void mosaic_weights_fill(mosaic_weights *weights)
{
    for (int step = 0; step <= MOSAIC_STEPS; ++step) {
        double weight[MOSAIC_LANES] = {0};
        lanczos((double)step / MOSAIC_STEPS, weight);
        for (int k = 0; k < MOSAIC_LANES; ++k) {
            weights->both[step][k] = weight[k];
            weights->single[step][k] = (float)weight[k];
        }
    }
}

/* ---- sums ---- */

/* Adds what was found to `count` pixels of the mosaic from pixel `at` on. */
static void add_line(const mosaic_line *line, double per_variance, int64_t at,
                     const mosaic_sums *sums)
{
    double *restrict flux = sums->flux + at, *restrict weight = sums->weight + at;
    for (int k = 0; k < line->count; ++k) {
        const double power = line->power[k] * per_variance;
        const double product = line->value[k] * power;
        if (!isfinite(product)) continue;
        flux[k] += product;
        weight[k] += line->power[k] * power;
    }
}

/* Pixels of an image of the mosaic's grid, from (x, y) of the strip on. */
static void copy_line(const mosaic_strip *strip, int64_t x, int64_t y,
                      mosaic_line *line)
{
    for (int k = 0; k < line->count; ++k) {
        const int64_t column = x + k;
        const bool is_here =
            y >= 0 && y < strip->num_rows && column >= 0 && column < strip->nx;
        const int64_t at = is_here ? y * strip->nx + column : 0;
        line->value[k] =
            is_here ? tess_real_at(strip->image, strip->is_double, at) : (double)NAN;
        line->power[k] =
            is_here ? tess_real_at(strip->beam, strip->is_double, at) : (double)NAN;
    }
}

/* Where the pixels of a line lie in the strip, whose first row is 0. */
static void place_line(const mosaic_source *source, int64_t x, int64_t row,
                       mosaic_line *line)
{
    mosaic_way_row(source->way, x, row, line->count, line->x, line->y);
    for (int k = 0; k < line->count; ++k)
        line->y[k] -= (double)source->strip->row_first;
}

void mosaic_sums_add(const mosaic_source *source, const mosaic_box *box, int threads,
                     const mosaic_sums *sums)
{
    const mosaic_strip *strip = source->strip;
    const double per_variance = 1 / (source->noise_jy * source->noise_jy);
    mosaic_line_fill *fill = mosaic_loops_best()->fill[strip->is_double];
    int64_t shift[2];
    const bool is_shift = mosaic_way_is_shift(source->way, box, shift);
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads)
    for (int64_t row = box->y[0]; row < box->y[1]; ++row) {
        mosaic_line line = {.image = strip->image,
                            .beam = strip->beam,
                            .nx = strip->nx,
                            .num_rows = strip->num_rows};
        for (int64_t x = box->x[0]; x < box->x[1]; x += MOSAIC_LINE) {
            const int64_t rest = box->x[1] - x;
            line.count = rest < MOSAIC_LINE ? (int)rest : MOSAIC_LINE;
            if (is_shift) {
                copy_line(strip, x + shift[0], row + shift[1] - strip->row_first,
                          &line);
            } else {
                place_line(source, x, row, &line);
                fill(source->weights, &line);
            }
            add_line(&line, per_variance, (row - sums->row_first) * sums->nx + x, sums);
        }
    }
}
