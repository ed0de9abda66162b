/* Computes the scales of multiscale CLEAN: their sizes, biases and kernels. */
#include "clean_scales.h"

#include <math.h>

#include "clean_ops.h"
#include "tess_const.h"
#include "tess_minmax.h"

double clean_beam_px(const tess_clean_opts *opts)
{
    return opts->scale_beam_px > 0 ? opts->scale_beam_px : opts->beam.major_px;
}

/* Lists the automatic scales: 0, then 4 beams, then twice the scale before as long as
 * it is below half the image. */
static int scales_by_beam(const tess_clean_images *images, const tess_clean_opts *opts,
                          double *scale_px)
{
    const int64_t side = images->nx < images->ny ? images->nx : images->ny;
    const int most = opts->most_scales > 0 && opts->most_scales < TESS_CLEAN_MOST_SCALES
                         ? opts->most_scales
                         : TESS_CLEAN_MOST_SCALES;
    int count = 0;
    scale_px[count++] = 0;
    for (double scale = 4 * clean_beam_px(opts);
         count < most && scale < 0.5 * (double)side; scale *= 2)
        scale_px[count++] = scale;
    return count;
}

int tess_clean_scales(const tess_clean_images *images, const tess_clean_opts *opts,
                      double *scale_px, double *bias)
{
    double scale[TESS_CLEAN_MOST_SCALES] = {0};
    int count = 1;
    if (opts->multiscale && opts->num_scales > 0) {
        count = opts->num_scales;
        for (int s = 0; s < count; ++s)
            scale[s] = opts->scale_px[s];
    } else if (opts->multiscale)
        count = scales_by_beam(images, opts, scale);
    for (int s = 0; s < count; ++s) {
        if (scale_px) scale_px[s] = scale[s];
        if (bias)
            bias[s] =
                scale[s] > 0 && opts->method.scale_rule == TESS_CLEAN_BY_BIAS
                    ? pow(opts->scale_bias, -log2(scale[s] / (2 * clean_beam_px(opts))))
                    : 1;
    }
    return count;
}

/* Width [pixels] of the box that holds a tapered quadratic: the n of tess_clean.h. */
static int64_t quadratic_width(double scale_px)
{
    return 2 * (int64_t)ceil(scale_px / 2) + 1;
}

int64_t clean_kernel_half(tess_clean_shape shape, double scale_px)
{
    if (!(scale_px > 0)) return 0;
    if (shape == TESS_CLEAN_GAUSSIAN) return (int64_t)ceil(6 * scale_px * 3 / 16);
    /* The kernel is 0 at the next pixel, r = (n + 1)/2, where its taper is 1 + cos π.
     */
    return quadratic_width(scale_px) / 2;
}

static double kernel_at(tess_clean_shape shape, double scale_px, double r)
{
    if (shape == TESS_CLEAN_GAUSSIAN) {
        const double sigma = 3 * scale_px / 16;
        return exp(-0.5 * (r / sigma) * (r / sigma));
    }
    const double width = (double)quadratic_width(scale_px) + 1;
    if (r > width / 2 || r >= scale_px) return 0;
    return 0.5 * (1 + cos(2 * TESS_PI * r / width)) *
           (1 - (r / scale_px) * (r / scale_px));
}

void clean_kernel_fill(tess_clean_shape shape, double scale_px, double *kernel)
{
    const int64_t half = clean_kernel_half(shape, scale_px), width = 2 * half + 1;
    double sum = 0;
    if (half == 0) {
        kernel[0] = 1;
        return;
    }
    for (int64_t y = -half; y <= half; ++y)
        for (int64_t x = -half; x <= half; ++x) {
            const double r = hypot((double)x, (double)y);
            const double value = kernel_at(shape, scale_px, r);
            kernel[(y + half) * width + x + half] = value;
            sum += value;
        }
    for (int64_t k = 0; k < width * width; ++k)
        kernel[k] /= sum;
}

int64_t clean_scale_border(double scale_px)
{
    return (int64_t)ceil(scale_px / 2);
}

void clean_inside(const clean_setup *setup, int scale, int64_t x_range[2],
                  int64_t y_range[2])
{
    const int64_t edge = clean_scale_border(setup->scale_px[scale]);
    const int64_t border_x = tess_max_i64(edge, setup->border_x);
    const int64_t border_y = tess_max_i64(edge, setup->border_y);
    x_range[0] = border_x;
    x_range[1] = setup->images.nx - border_x;
    y_range[0] = border_y;
    y_range[1] = setup->images.ny - border_y;
}

int64_t clean_reach(const clean_setup *setup)
{
    int64_t reach = 0;
    for (int s = 0; s < setup->num_scales; ++s) {
        const double alpha = setup->scale_px[s];
        const int64_t over =
            clean_kernel_half(setup->opts.shape, alpha) - clean_scale_border(alpha);
        if (2 * over > reach) reach = 2 * over;
    }
    return reach;
}

static int64_t half_of(int64_t pixels, int64_t border, int64_t reach)
{
    return tess_max_i64(0, tess_min_i64(pixels - 1 - 2 * border, pixels / 2 + reach));
}

void clean_window_half(const clean_setup *setup, int scale, int64_t *half_x,
                       int64_t *half_y)
{
    const double alpha = setup->scale_px[scale];
    const int64_t reach = 2 * clean_kernel_half(setup->opts.shape, alpha);
    const int64_t edge = clean_scale_border(alpha);
    *half_x = half_of(setup->images.nx, tess_max_i64(edge, setup->border_x), reach);
    *half_y = half_of(setup->images.ny, tess_max_i64(edge, setup->border_y), reach);
}
