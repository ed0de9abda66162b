/* Kernels of scales: their tables, and components of a scale in models. */
#include "cuda_each.cuh"

#include "tess_const.h"
#include "tess_mem.h"

namespace
{

enum { THREADS = CUDA_EACH_THREADS, LANES = 32 };

/* As kernel_at() of clean_scales.c; `width` is n + 1. */
struct table_value {
    bool gaussian;
    double alpha, width;
    int64_t half;
    double *table;
    __device__ void operator()(int64_t row, int64_t column) const
    {
        const double x = (double)(column - half), y = (double)(row - half);
        const double r = hypot(x, y), of_sigma = r / (3 * alpha / 16);
        double value = 0;
        if (half == 0)
            value = 1;
        else if (gaussian)
            value = exp(-0.5 * of_sigma * of_sigma);
        else if (r <= width / 2 && r < alpha)
            value = 0.5 * (1 + cos(2 * TESS_PI * r / width)) *
                    (1 - r / alpha * (r / alpha));
        table[row * (2 * half + 1) + column] = value;
    }
};

struct divide_value {
    double sum, *table;
    __device__ void operator()(int64_t k) const
    {
        table[k] /= sum;
    }
};

/* A block adds up a row, in the same order every time. */
__global__ void row_sum_kernel(int64_t width, const double *table, double *sums)
{
    __shared__ double part[THREADS];
    const double *row = table + (int64_t)blockIdx.x * width;
    double sum = 0;
    for (int64_t x = threadIdx.x; x < width; x += THREADS)
        sum += row[x];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int step = THREADS / 2; step > 0; step /= 2) {
        if ((int)threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

tess_status sum_of(const cuda_table *table, double *sum)
{
    tess_status status = TESS_OK;
    const int64_t rows = 2 * table->half + 1;
    const int64_t bytes = rows * (int64_t)sizeof(double);
    void *sums = NULL;
    double *own = (double *)tess_alloc(rows, sizeof *own);
    if (!own) TESS_FAIL(TESS_ERR_ALLOC, "kernel of a scale");
    TESS_TRY(tess_device_alloc(bytes, "kernel of a scale", &sums));
    tess_launch(row_sum_kernel, rows, THREADS, 0, rows, (const double *)table->value,
                (double *)sums);
    TESS_CUDA_LAUNCHED();
    TESS_TRY(tess_device_download(own, sums, bytes));
    *sum = 0;
    for (int64_t k = 0; k < rows; ++k)
        *sum += own[k];
cleanup:
    tess_device_free(sums);
    tess_free(own);
    return status;
}

template <typename R> struct pad_table {
    int64_t nx, ny, lx, ly, half;
    const double *table;
    R *plane;
    __device__ void operator()(int64_t row, int64_t column) const
    {
        const int64_t dy = cuda_distance(row, ly, half);
        const int64_t dx = cuda_distance(column, lx, half);
        const int64_t y = ny / 2 + dy, x = nx / 2 + dx;
        const bool inside =
            dy <= half && dx <= half && y >= 0 && y < ny && x >= 0 && x < nx;
        plane[row * lx + column] =
            (R)(inside ? table[(dy + half) * (2 * half + 1) + dx + half] : 0.0);
    }
};

/* ---- components ---- */

/* Tiles of pixels, one for each block: columns × rows. */
enum { TILE_X = 64, TILE_Y = 16, EACH = TILE_X * TILE_Y / THREADS };

/* The first component at or behind a pixel. */
__device__ int64_t from_pixel(const cuda_components &c, int64_t pixel)
{
    int64_t low = 0, high = c.count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (c.index[middle] < pixel)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The components of a chunk that reach the tile, in their order. */
struct near_list {
    int x[THREADS], y[THREADS];
    double flux[THREADS];
    int in_warp[THREADS / LANES];
};

/* Every thread looks at one component. Returns how many are near. */
__device__ int collect(const cuda_components &c, int64_t half, int64_t k, int64_t end,
                       int64_t nx, int64_t x0, near_list *list)
{
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    const int64_t x = k < end ? c.index[k] % nx : 0;
    const bool is_near = k < end && x + half >= x0 && x - half < x0 + TILE_X;
    const unsigned votes = __ballot_sync(~0u, is_near);
    int at = __popc(votes & ((1u << lane) - 1)), all = 0;
    if (lane == 0) list->in_warp[warp] = __popc(votes);
    __syncthreads();
    for (int w = 0; w < THREADS / LANES; ++w) {
        at += w < warp ? list->in_warp[w] : 0;
        all += list->in_warp[w];
    }
    if (is_near) {
        list->x[at] = (int)x;
        list->y[at] = (int)(c.index[k] / nx);
        list->flux[at] = c.flux[k];
    }
    __syncthreads();
    return all;
}

/* A block adds all components that reach its tile, a thread to EACH of its pixels. A
 * pixel's components are added in the order of pixels, as on a processor. */
__global__ void add_kernel(int64_t nx, int64_t row_first, int64_t num_rows,
                           cuda_components c, cuda_table table, double *model)
{
    __shared__ near_list list;
    const int64_t tiles = (nx + TILE_X - 1) / TILE_X, half = table.half;
    const int64_t x0 = blockIdx.x % tiles * TILE_X, first = blockIdx.x / tiles * TILE_Y;
    const int64_t x = x0 + threadIdx.x % TILE_X, y0 = row_first + first;
    const int64_t width = 2 * half + 1;
    const int64_t begin = from_pixel(c, (y0 - half) * nx);
    const int64_t end = from_pixel(c, (y0 + TILE_Y + half) * nx);
    double sum[EACH];
    if (begin >= end) return;
    for (int e = 0; e < EACH; ++e) {
        const int64_t row = first + threadIdx.x / TILE_X + e * (THREADS / TILE_X);
        sum[e] = x < nx && row < num_rows ? model[row * nx + x] : 0;
    }
    for (int64_t k = begin; k < end; k += THREADS) {
        const int count = collect(c, half, k + threadIdx.x, end, nx, x0, &list);
        for (int n = 0; n < count; ++n) {
            const int64_t dx = x - list.x[n] + half;
            for (int e = 0; e < EACH; ++e) {
                const int64_t y = y0 + threadIdx.x / TILE_X + e * (THREADS / TILE_X);
                const int64_t dy = y - list.y[n] + half;
                if (dx >= 0 && dx < width && dy >= 0 && dy < width)
                    sum[e] = __dadd_rn(
                        sum[e],
                        __dmul_rn(list.flux[n], __ldg(&table.value[dy * width + dx])));
            }
        }
        __syncthreads();
    }
    for (int e = 0; e < EACH; ++e) {
        const int64_t row = first + threadIdx.x / TILE_X + e * (THREADS / TILE_X);
        if (x < nx && row < num_rows) model[row * nx + x] = sum[e];
    }
}

} // namespace

tess_status cuda_fill_table(bool gaussian, double scale_px, const cuda_table *table)
{
    tess_status status = TESS_OK;
    const int64_t width = 2 * table->half + 1;
    double sum = 1;
    TESS_TRY(cuda_each_cell(width, width,
                            table_value{gaussian, scale_px,
                                        (double)(2 * table->half + 1) + 1, table->half,
                                        table->value}));
    TESS_TRY(sum_of(table, &sum));
    TESS_TRY(cuda_each(width * width, divide_value{sum, table->value}));
cleanup:
    return status;
}

tess_status cuda_pad_table(const cuda_shape *shape, const cuda_table *table,
                           void *plane)
{
    return CUDA_EACH_CELL(shape->ly, shape->lx, pad_table,
                          {shape->nx, shape->ny, shape->lx, shape->ly, table->half,
                           table->value, cuda_of(plane)});
}

tess_status cuda_add_components(int64_t nx, int64_t row_first, int64_t num_rows,
                                const cuda_components *merged, const cuda_table *table,
                                double *model)
{
    tess_status status = TESS_OK;
    const int64_t blocks =
        (nx + TILE_X - 1) / TILE_X * ((num_rows + TILE_Y - 1) / TILE_Y);
    if (merged->count == 0 || blocks == 0) return TESS_OK;
    tess_launch(add_kernel, blocks, THREADS, 0, nx, row_first, num_rows, *merged,
                *table, model);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}
