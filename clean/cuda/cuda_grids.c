/* Images of large scales on the device, by way of coarser grids. */
#include "cuda_grids.h"

#include <math.h>

#include "tess_device.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_minmax.h"
#include "tess_real.h"

/* Up to so many rows of a spectrum stand for as many, when grids are chosen: the host
 * looks at one of them, and at LEAST_ROWS if there are as many. */
enum { ROW_STEP = 128, LEAST_ROWS = 256 };

/* Rows of spectra on the host. */
typedef struct row_room {
    void *psf, *kernel; /* in the precision of the transforms */
    double *magnitude;
} row_room;

/* Makes plan and weights of a grid, unless they are there. */
static tess_status use_grid(clean_work *work, int number)
{
    tess_status status = TESS_OK;
    cuda_grid *grid = &work->grid[number];
    const cuda_shape *shape = &work->shape;
    const int cell = clean_grid_cell(number), count = cell * CLEAN_GRID_CELLS;
    double weight[CLEAN_GRID_COARSEST * CLEAN_GRID_CELLS];
    void *real = NULL; /* of the shape's precision */
    if (grid->fft) return TESS_OK;
    real = tess_alloc(count, (size_t)work->bytes.real);
    if (!real) TESS_FAIL(TESS_ERR_ALLOC, "weights of a grid");
    clean_grid_weights(number, weight);
    for (int k = 0; k < count; ++k)
        tess_real_set(real, shape->is_double, k, weight[k]);
    TESS_TRY(tess_device_alloc(count * work->bytes.real, "weights of a grid",
                               &grid->weight));
    TESS_TRY(tess_device_upload(grid->weight, real, count * work->bytes.real));
    TESS_TRY(tess_device_wait());
    TESS_TRY(tess_device_fft_create(shape->lx / cell, shape->ly / cell,
                                    shape->is_double, &grid->fft));
cleanup:
    tess_free(real);
    return status;
}

/* ---- the choice ---- */

/* magnitude[half] := Σ over images of share · |PSF| in a row. */
static tess_status sum_magnitudes(const clean_work *work, int64_t row,
                                  const row_room *room)
{
    tess_status status = TESS_OK;
    const int64_t half = work->shape.half, bytes = 2 * half * work->bytes.real;
    const bool is_double = work->shape.is_double;
    for (int64_t k = 0; k < half; ++k)
        room->magnitude[k] = 0;
    for (int i = 0; i < work->setup->images.num_images; ++i) {
        if (!cuda_has_data(work, i)) continue;
        TESS_TRY(tess_device_download(room->psf,
                                      (const char *)work->psf[i] + row * bytes, bytes));
        for (int64_t k = 0; k < half; ++k)
            room->magnitude[k] += work->setup->join.share[i] *
                                  hypot(tess_real_at(room->psf, is_double, 2 * k),
                                        tess_real_at(room->psf, is_double, 2 * k + 1));
    }
cleanup:
    return status;
}

/* Adds a row's variance at all scales. */
static tess_status add_row(const clean_work *work, int64_t row, const row_room *room,
                           clean_grid_variance *variance)
{
    tess_status status = TESS_OK;
    const cuda_shape *shape = &work->shape;
    const int64_t half = shape->half, bytes = half * work->bytes.real;
    const int64_t near = tess_min_i64(row, shape->ly - row);
    const int held = clean_grids_with((double)near / (double)shape->ly);
    TESS_TRY(sum_magnitudes(work, row, room));
    for (int s = 0; s < work->setup->num_scales; ++s) {
        const char *kernel = work->scale[s].kernel;
        if (!kernel) continue;
        TESS_TRY(tess_device_download(room->kernel, kernel + row * bytes, bytes));
        for (int64_t k = 0; k < half; ++k) {
            const double value = tess_real_at(room->kernel, shape->is_double, k);
            const int own = clean_grids_with((double)k / (double)shape->lx);
            variance[s].by_grids[own < held ? own : held] +=
                room->magnitude[k] * value * value;
        }
    }
cleanup:
    return status;
}

static tess_status measure(const clean_work *work, clean_grid_variance *variance)
{
    tess_status status = TESS_OK;
    const int64_t half = work->shape.half;
    const int64_t step =
        tess_max_i64(1, tess_min_i64(ROW_STEP, work->shape.ly / LEAST_ROWS));
    row_room room = {.psf = tess_alloc(2 * half, (size_t)work->bytes.real),
                     .kernel = tess_alloc(half, (size_t)work->bytes.real),
                     .magnitude = tess_alloc(half, sizeof(double))};
    if (!room.psf || !room.kernel || !room.magnitude)
        TESS_FAIL(TESS_ERR_ALLOC, "grids of scales");
    for (int64_t row = 0; row < work->shape.ly; row += step)
        TESS_TRY(add_row(work, row, &room, variance));
cleanup:
    tess_free(room.psf);
    tess_free(room.kernel);
    tess_free(room.magnitude);
    return status;
}

tess_status cuda_grids_choose(clean_work *work)
{
    tess_status status = TESS_OK;
    const clean_setup *setup = work->setup;
    const int64_t lx = work->shape.lx, ly = work->shape.ly;
    clean_grid_variance variance[TESS_CLEAN_MOST_SCALES] = {0};
    if (work->has_grids || !clean_grid_fits(setup, 0, lx, ly)) return TESS_OK;
    TESS_TRY(measure(work, variance));
    for (int s = 0; s < setup->num_scales; ++s) {
        const int grid = clean_grid_of(setup, lx, ly, &variance[s]);
        work->scale[s].grid = work->scale[s].kernel ? grid : -1;
        if (work->scale[s].grid < 0) continue;
        TESS_TRY(use_grid(work, grid));
        tess_log_debug("scale %.4g pixels: cells of %d pixels", setup->scale_px[s],
                       clean_grid_cell(grid));
    }
    work->has_grids = true;
cleanup:
    return status;
}

/* ---- images ---- */

tess_status cuda_grid_image(clean_work *work, int scale, const void *spectrum,
                            const void *factor, void *image)
{
    tess_status status = TESS_OK;
    const cuda_grid *grid = &work->grid[work->scale[scale].grid];
    const cuda_shape *shape = &work->shape;
    const int shift = work->scale[scale].grid + 1;
    TESS_TRY(cuda_multiply_low(shape, shift, spectrum, work->scale[scale].kernel,
                               work->product));
    work->transforms += 1;
    TESS_TRY(tess_device_fft_back(grid->fft, work->product, work->plane));
    /* the product has been used, and its memory is larger than the rows */
    TESS_TRY(cuda_refine_rows(shape, shift, work->plane, grid->weight, work->product));
    TESS_TRY(cuda_refine(shape, shift, work->product, grid->weight, factor, image));
cleanup:
    return status;
}
