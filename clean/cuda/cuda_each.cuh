/** @file cuda_each.cuh  (private to clean/)
 *  Passes of the cuda backend in which each value is worked on by itself.
 */
#ifndef TESS_CLEAN_CUDA_EACH_CUH
#define TESS_CLEAN_CUDA_EACH_CUH

#include "tess_cuda_complex.cuh"
#include "tess_cuda_launch.cuh"

#include "cuda_kernels.h"

/** Threads of a block and blocks of a multiprocessor, and threads of a block that works
 *  on a row. There are few where threads are emulated: it takes time to start one, and
 *  to switch to another. */
#ifdef SIMT_EMULATED
enum { CUDA_EACH_THREADS = 64, CUDA_EACH_BLOCKS = 2, CUDA_ROW_THREADS = 64 };
#else
enum { CUDA_EACH_THREADS = 256, CUDA_EACH_BLOCKS = 16, CUDA_ROW_THREADS = 128 };
#endif

/** body(k) for all k < count. Threads take values that lie side by side, and then those
 *  a grid further. */
template <typename F> __global__ void cuda_each_kernel(int64_t count, F body)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < count;
         k += step)
        body(k);
}

/** Enqueue that. Memory bandwidth limits it. */
template <typename F> static tess_status cuda_each(int64_t count, F body)
{
    tess_status status = TESS_OK;
    const int64_t most = (int64_t)tess_most_together() * CUDA_EACH_BLOCKS;
    const int64_t blocks = (count + CUDA_EACH_THREADS - 1) / CUDA_EACH_THREADS;
    if (count <= 0) return TESS_OK;
    tess_launch(cuda_each_kernel<F>, blocks < most ? blocks : most, CUDA_EACH_THREADS,
                0, count, body);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

struct cuda_fill_words {
    uint64_t *word, value;
    __device__ void operator()(int64_t k) const
    {
        word[k] = value;
    }
};

/** body(y, x) for all cells of `rows` rows. A block takes CUDA_EACH_CELLS cells for
 * each thread of a row at a time, so that rows and columns cost no division for each
 * cell. */
enum { CUDA_EACH_CELLS = 4 };

template <typename F>
__global__ void cuda_each_cell_kernel(int64_t rows, int64_t columns, F body)
{
    const int64_t wide = (int64_t)blockDim.x * CUDA_EACH_CELLS;
    const int64_t parts = (columns + wide - 1) / wide;
    for (int64_t part = blockIdx.x; part < rows * parts; part += gridDim.x) {
        const int64_t y = part / parts, first = part % parts * wide;
        for (int c = 0; c < CUDA_EACH_CELLS; ++c) {
            const int64_t x = first + c * (int64_t)blockDim.x + threadIdx.x;
            if (x < columns) body(y, x);
        }
    }
}

template <typename F>
static tess_status cuda_each_cell(int64_t rows, int64_t columns, F body)
{
    tess_status status = TESS_OK;
    const int64_t most = (int64_t)tess_most_together() * CUDA_EACH_BLOCKS;
    const int64_t wide = CUDA_EACH_THREADS * CUDA_EACH_CELLS;
    const int64_t blocks = rows * ((columns + wide - 1) / wide);
    if (rows <= 0 || columns <= 0) return TESS_OK;
    tess_launch(cuda_each_cell_kernel<F>, blocks < most ? blocks : most,
                CUDA_EACH_THREADS, 0, rows, columns, body);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

/** An array of a shape's precision, to be a pointer to it. */
struct cuda_array {
    void *value;
    template <typename R> operator R *() const
    {
        return (R *)value;
    }
};

static inline cuda_array cuda_of(const void *array)
{
    return cuda_array{const_cast<void *>(array)};
}

/** The pass of the shape's precision with these members, over values or cells. */
#define CUDA_EACH(count, pass, ...)                                                    \
    (shape->is_double ? cuda_each(count, pass<double> __VA_ARGS__)                     \
                      : cuda_each(count, pass<float> __VA_ARGS__))
#define CUDA_EACH_CELL(rows, columns, pass, ...)                                       \
    (shape->is_double ? cuda_each_cell(rows, columns, pass<double> __VA_ARGS__)        \
                      : cuda_each_cell(rows, columns, pass<float> __VA_ARGS__))

/** A pixel of the caller's rows. */
__device__ inline double cuda_pixel(const cuda_pixels &rows, int64_t k)
{
    if (rows.bytes == 8) return ((const double *)rows.value)[k];
    if (rows.bytes == 4) return (double)((const float *)rows.value)[k];
    return (double)((const uint8_t *)rows.value)[k];
}

__device__ inline void cuda_set_pixel(const cuda_pixels &rows, int64_t k, double value)
{
    if (rows.bytes == 8)
        ((double *)rows.value)[k] = value;
    else
        ((float *)rows.value)[k] = (float)value;
}

/** The cell of a plane at this distance from its origin. */
__device__ inline int64_t cuda_around(int64_t distance, int64_t length)
{
    return distance < 0 ? distance + length : distance;
}

/** The distance of a cell from the origin, where at most `most` cells lie behind the
 *  origin. */
__device__ inline int64_t cuda_distance(int64_t cell, int64_t length, int64_t most)
{
    return cell >= length - most ? cell - length : cell;
}

#endif
