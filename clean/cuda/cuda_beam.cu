/* Restored images: a beam, a model and their convolution. */
#include "cuda_each.cuh"

namespace
{

template <typename R> struct pad_beam {
    int64_t nx, ny, lx, ly;
    double along_x, along_y, across;
    R *plane;
    __device__ void operator()(int64_t row, int64_t column) const
    {
        const int64_t dy = cuda_distance(row, ly, ny / 2);
        const int64_t dx = cuda_distance(column, lx, nx / 2);
        const bool inside = ny / 2 + dy < ny && nx / 2 + dx < nx;
        const double y = (double)dy, x = (double)dx;
        const double power = along_x * x * x + along_y * y * y + across * x * y;
        plane[row * lx + column] = (R)(inside ? exp(-power) : 0.0);
    }
};

template <typename R> struct pad_pixels {
    int64_t nx, ny, lx;
    cuda_pixels from;
    R *plane;
    __device__ void operator()(int64_t y, int64_t x) const
    {
        const double value = y < ny && x < nx ? cuda_pixel(from, y * nx + x) : 0;
        plane[y * lx + x] = (R)(isfinite(value) ? value : 0);
    }
};

template <typename R> struct add_plane {
    int64_t nx, lx;
    const R *plane;
    cuda_pixels from, to;
    __device__ void operator()(int64_t y, int64_t x) const
    {
        const int64_t k = y * nx + x;
        cuda_set_pixel(to, k, (double)plane[y * lx + x] + cuda_pixel(from, k));
    }
};

} // namespace

tess_status cuda_pad_beam(const cuda_shape *shape, double along_x, double along_y,
                          double across, void *plane)
{
    return CUDA_EACH_CELL(shape->ly, shape->lx, pad_beam,
                          {shape->nx, shape->ny, shape->lx, shape->ly, along_x, along_y,
                           across, cuda_of(plane)});
}

tess_status cuda_pad_pixels(const cuda_shape *shape, const cuda_pixels *from,
                            void *plane)
{
    return CUDA_EACH_CELL(shape->ly, shape->lx, pad_pixels,
                          {shape->nx, shape->ny, shape->lx, *from, cuda_of(plane)});
}

tess_status cuda_add_plane(const cuda_shape *shape, const void *plane,
                           const cuda_pixels *from, const cuda_pixels *to)
{
    return CUDA_EACH_CELL(shape->ny, shape->nx, add_plane,
                          {shape->nx, shape->lx, cuda_of(plane), *from, *to});
}
