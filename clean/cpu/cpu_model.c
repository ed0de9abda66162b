/* Adds components to model images: at each pixel of a component a kernel that is
 * multiplied by its flux, in double precision. */
#include "clean_scales.h"
#include "cpu_work.h"
#include "tess_mem.h"

/* Adds a row of the kernel, times the flux, to columns of a model row. */
static void add_row(double *line, int64_t nx, int64_t x, int64_t half,
                    const double *kernel, double flux)
{
    const int64_t begin = x - half < 0 ? -x : -half;
    const int64_t end = x + half >= nx ? nx - 1 - x : half;
    for (int64_t dx = begin; dx <= end; ++dx)
        line[x + dx] += flux * kernel[dx + half];
}

/* Adds components to one row. They are sorted by pixel, so that the sum of a pixel is
 * always in the same order. */
static void add_to_row(const tess_clean_images *images, int64_t row,
                       const clean_components *merged, int64_t half,
                       const double *kernel, double *const *model)
{
    const int64_t nx = images->nx, y = images->row_first + row;
    const int64_t low = y - half < 0 ? 0 : y - half;
    const int64_t end = clean_components_from(merged, (y + half + 1) * nx);
    for (int64_t c = clean_components_from(merged, low * nx); c < end; ++c) {
        const int64_t cx = merged->index[c] % nx, cy = merged->index[c] / nx;
        const double *line = kernel + (y - cy + half) * (2 * half + 1);
        for (int k = 0; k < merged->num_images; ++k)
            add_row(model[k] + row * nx, nx, cx, half, line,
                    merged->flux[c * merged->num_images + k]);
    }
}

tess_status cpu_add(clean_work *work, int scale, const clean_components *merged,
                    double *const *model)
{
    tess_status status = TESS_OK;
    const clean_setup *setup = work->setup;
    const double alpha = setup->scale_px[scale];
    const int64_t half = clean_kernel_half(setup->opts.shape, alpha);
    double *kernel = tess_alloc((2 * half + 1) * (2 * half + 1), sizeof *kernel);
    if (!kernel) TESS_FAIL(TESS_ERR_ALLOC, "kernel of scale %g", alpha);
    clean_kernel_fill(setup->opts.shape, alpha, kernel);
#pragma omp parallel for schedule(dynamic, 8) num_threads(setup->opts.threads)
    for (int64_t row = 0; row < setup->images.num_rows; ++row)
        add_to_row(&setup->images, row, merged, half, kernel, model);
cleanup:
    tess_free(kernel);
    return status;
}
