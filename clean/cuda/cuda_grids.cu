/* Interpolation between the cells of coarser grids, along one axis after the other: see
 * clean_grids.h. Memory bandwidth limits both passes. */
#include "cuda_each.cuh"

#include "clean_grids.h"

namespace
{

/* to := the low frequencies of from · kernel, normalised. The highest ones that the
 * grid has are 0, because their sign is not known there. */
template <typename R> struct low_product {
    typedef typename cuda_complex<R>::type complex;
    int64_t half, ly, low_half, low_ly; /* of the spectrum, and of what is made */
    const complex *from;
    const R *kernel;
    R scale;
    complex *to;
    __device__ void operator()(int64_t row, int64_t column) const
    {
        const int64_t there = row < low_ly / 2 ? row : ly - low_ly + row;
        complex value = from[there * half + column];
        R by = scale * kernel[there * half + column];
        if (row == low_ly / 2 || column == low_half - 1) by = 0;
        value.x *= by;
        value.y *= by;
        to[row * low_half + column] = value;
    }
};

/* Rows of pixels, still in columns of cells: from CLEAN_GRID_BEFORE cells before the
 * first one. */
template <typename R> struct refine_rows {
    int shift;
    int64_t lx, ly, columns; /* lengths of the plane; columns of a row */
    const R *plane;
    const R *weight;
    R *to;
    __device__ void operator()(int64_t y, int64_t column) const
    {
        const int64_t pixel = y & ((1 << shift) - 1), cell = y >> shift;
        const int64_t x = cuda_around(column - CLEAN_GRID_BEFORE, lx);
        const R *by = weight + pixel * CLEAN_GRID_CELLS;
        R sum = plane[cell * lx + x];
        if (pixel != 0) sum = 0;
        for (int c = 0; pixel != 0 && c < CLEAN_GRID_CELLS; ++c)
            sum +=
                by[c] * plane[cuda_around(cell + c - CLEAN_GRID_BEFORE, ly) * lx + x];
        to[y * columns + column] = sum;
    }
};

template <typename R> struct refine_pixel {
    int shift;
    int64_t nx, columns;
    const R *rows;
    const R *weight;
    const R *factor;
    R *image;
    __device__ void operator()(int64_t y, int64_t x) const
    {
        const int64_t pixel = x & ((1 << shift) - 1), k = y * nx + x;
        const R *from = rows + y * columns + (x >> shift);
        const R *by = weight + pixel * CLEAN_GRID_CELLS;
        R sum = from[CLEAN_GRID_BEFORE];
        if (pixel != 0) sum = 0;
        for (int c = 0; pixel != 0 && c < CLEAN_GRID_CELLS; ++c)
            sum += by[c] * from[c];
        image[k] = factor ? (R)((double)sum * (double)factor[k]) : sum;
    }
};

/* Columns of cells that a row of pixels is made of. */
int64_t columns_of(const cuda_shape *shape, int shift)
{
    return ((shape->nx - 1) >> shift) + CLEAN_GRID_CELLS;
}

} // namespace

tess_status cuda_multiply_low(const cuda_shape *shape, int shift, const void *from,
                              const void *kernel, void *to)
{
    const int64_t low_ly = shape->ly >> shift, low_half = (shape->lx >> shift) / 2 + 1;
    const double scale = 1.0 / ((double)shape->lx * (double)shape->ly);
    if (shape->is_double)
        return cuda_each_cell(low_ly, low_half,
                              low_product<double>{shape->half, shape->ly, low_half,
                                                  low_ly, cuda_of(from),
                                                  cuda_of(kernel), scale, cuda_of(to)});
    return cuda_each_cell(low_ly, low_half,
                          low_product<float>{shape->half, shape->ly, low_half, low_ly,
                                             cuda_of(from), cuda_of(kernel),
                                             (float)scale, cuda_of(to)});
}

tess_status cuda_refine_rows(const cuda_shape *shape, int shift, const void *plane,
                             const void *weight, void *rows)
{
    const int64_t columns = columns_of(shape, shift);
    return CUDA_EACH_CELL(shape->ny, columns, refine_rows,
                          {shift, shape->lx >> shift, shape->ly >> shift, columns,
                           cuda_of(plane), cuda_of(weight), cuda_of(rows)});
}

tess_status cuda_refine(const cuda_shape *shape, int shift, const void *rows,
                        const void *weight, const void *factor, void *image)
{
    return CUDA_EACH_CELL(shape->ny, shape->nx, refine_pixel,
                          {shift, shape->nx, columns_of(shape, shift), cuda_of(rows),
                           cuda_of(weight), cuda_of(factor), cuda_of(image)});
}
