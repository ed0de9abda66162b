/* Pixels of the caller to images of the device, images to padded planes, and back. */
#include "cuda_each.cuh"

#include <math.h>

namespace
{

template <typename R> struct take_pixel {
    cuda_pixels from;
    double weight;
    R *image;
    uint8_t *is_nan;
    __device__ void operator()(int64_t k) const
    {
        const double value = cuda_pixel(from, k);
        if (isfinite(value))
            image[k] = (R)((double)image[k] + weight * value);
        else
            is_nan[k] = 1;
    }
};

struct allow_pixel {
    cuda_pixels mask;
    const uint8_t *is_nan;
    uint8_t *allowed;
    __device__ void operator()(int64_t k) const
    {
        allowed[k] = !is_nan[k] && (!mask.value || cuda_pixel(mask, k) != 0);
    }
};

template <typename R> struct put_pixel {
    const R *image;
    const uint8_t *is_nan;
    cuda_pixels to;
    __device__ void operator()(int64_t k) const
    {
        if (is_nan[k] && !isfinite(cuda_pixel(to, k))) return;
        cuda_set_pixel(to, k, (double)image[k]);
    }
};

template <typename R> struct put_less {
    int64_t nx, lx;
    const R *plane;
    cuda_pixels to;
    __device__ void operator()(int64_t y, int64_t x) const
    {
        const int64_t k = y * nx + x;
        const double value = cuda_pixel(to, k);
        if (isfinite(value)) cuda_set_pixel(to, k, value - (double)plane[y * lx + x]);
    }
};

struct add_pixel {
    cuda_pixels from;
    double share, *mean;
    __device__ void operator()(int64_t k) const
    {
        mean[k] += share * cuda_pixel(from, k);
    }
};

template <typename R> struct take_sample {
    int64_t pixels, step;
    int num_images;
    void *const *image;
    const uint8_t *is_nan;
    double *to;
    __device__ void operator()(int64_t k) const
    {
        const int64_t at = k / num_images * step;
        const bool is_there = at < pixels && !is_nan[at];
        to[k] = is_there ? (double)((const R *)image[k % num_images])[at] : NAN;
    }
};

template <typename R> struct pad_cell {
    int64_t nx, ny, lx;
    const R *image;
    bool squares;
    R *plane;
    __device__ void operator()(int64_t y, int64_t x) const
    {
        const double value = y < ny && x < nx ? (double)image[y * nx + x] : 0.0;
        plane[y * lx + x] = (R)(squares ? value * value : value);
    }
};

template <typename R> struct pad_centred {
    int64_t nx, ny, lx, ly;
    cuda_pixels from;
    R *plane;
    __device__ void operator()(int64_t row, int64_t column) const
    {
        const int64_t y = ny / 2 + cuda_distance(row, ly, ny / 2);
        const int64_t x = nx / 2 + cuda_distance(column, lx, nx / 2);
        const double value = y < ny && x < nx ? cuda_pixel(from, y * nx + x) : 0;
        plane[row * lx + column] = (R)(isfinite(value) ? value : 0);
    }
};

template <typename R> struct crop_pixel {
    int64_t nx, lx;
    const R *plane, *factor;
    R *image;
    __device__ void operator()(int64_t y, int64_t x) const
    {
        const int64_t k = y * nx + x;
        const R value = plane[y * lx + x];
        image[k] = factor ? (R)((double)value * (double)factor[k]) : value;
    }
};

template <typename R> struct crop_less {
    int64_t nx, lx;
    const R *plane;
    R *image;
    __device__ void operator()(int64_t y, int64_t x) const
    {
        image[y * nx + x] -= plane[y * lx + x];
    }
};

template <typename R> struct crop_window {
    int64_t lx, ly;
    int side;
    const R *plane;
    cuda_window window;
    __device__ void operator()(int64_t row, int64_t column) const
    {
        const int64_t y = cuda_around(row - window.half_y, ly);
        const int64_t x = cuda_around(column - window.half_x, lx);
        ((R *)window.value)[(row * window.stride + column) * window.width + side] =
            plane[y * lx + x];
    }
};

template <typename R> struct scatter_value {
    int64_t nx, lx;
    const int64_t *index;
    const double *value;
    R *plane;
    __device__ void operator()(int64_t k) const
    {
        plane[index[k] / nx * lx + index[k] % nx] = (R)value[k];
    }
};

int64_t pixels_of(const cuda_shape *shape)
{
    return shape->nx * shape->ny;
}

int64_t cells_of(const cuda_shape *shape)
{
    return shape->lx * shape->ly;
}

} // namespace

tess_status cuda_take(const cuda_shape *shape, const cuda_pixels *from, double weight,
                      void *image, uint8_t *is_nan)
{
    return CUDA_EACH(pixels_of(shape), take_pixel,
                     {*from, weight, cuda_of(image), is_nan});
}

tess_status cuda_allow(const cuda_shape *shape, const cuda_pixels *mask,
                       const uint8_t *is_nan, uint8_t *allowed)
{
    return cuda_each(pixels_of(shape), allow_pixel{*mask, is_nan, allowed});
}

tess_status cuda_put(const cuda_shape *shape, const void *image, const uint8_t *is_nan,
                     const cuda_pixels *to)
{
    return CUDA_EACH(pixels_of(shape), put_pixel, {cuda_of(image), is_nan, *to});
}

tess_status cuda_put_less(const cuda_shape *shape, const void *plane,
                          const cuda_pixels *to)
{
    return CUDA_EACH_CELL(shape->ny, shape->nx, put_less,
                          {shape->nx, shape->lx, cuda_of(plane), *to});
}

tess_status cuda_add_pixels(const cuda_shape *shape, const cuda_pixels *from,
                            double share, double *mean)
{
    return cuda_each(pixels_of(shape), add_pixel{*from, share, mean});
}

tess_status cuda_take_samples(const cuda_shape *shape, int64_t count, int64_t step,
                              int num_images, void *const *image, const uint8_t *is_nan,
                              double *to)
{
    return CUDA_EACH(count * num_images, take_sample,
                     {pixels_of(shape), step, num_images, image, is_nan, to});
}

tess_status cuda_pad(const cuda_shape *shape, const void *image, bool squares,
                     void *plane)
{
    return CUDA_EACH_CELL(
        shape->ly, shape->lx, pad_cell,
        {shape->nx, shape->ny, shape->lx, cuda_of(image), squares, cuda_of(plane)});
}

tess_status cuda_pad_centred(const cuda_shape *shape, const cuda_pixels *from,
                             void *plane)
{
    return CUDA_EACH_CELL(
        shape->ly, shape->lx, pad_centred,
        {shape->nx, shape->ny, shape->lx, shape->ly, *from, cuda_of(plane)});
}

tess_status cuda_crop(const cuda_shape *shape, const void *plane, const void *factor,
                      void *image)
{
    return CUDA_EACH_CELL(
        shape->ny, shape->nx, crop_pixel,
        {shape->nx, shape->lx, cuda_of(plane), cuda_of(factor), cuda_of(image)});
}

tess_status cuda_crop_less(const cuda_shape *shape, const void *plane, void *image)
{
    return CUDA_EACH_CELL(shape->ny, shape->nx, crop_less,
                          {shape->nx, shape->lx, cuda_of(plane), cuda_of(image)});
}

tess_status cuda_crop_window(const cuda_shape *shape, const void *plane, int side,
                             const cuda_window *window)
{
    const int64_t columns = 2 * window->half_x + 1;
    return CUDA_EACH_CELL(2 * window->half_y + 1, columns, crop_window,
                          {shape->lx, shape->ly, side, cuda_of(plane), *window});
}

tess_status cuda_scatter(const cuda_shape *shape, int64_t count, const int64_t *index,
                         const double *value, void *plane)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_device_zero(plane, cells_of(shape) * (shape->is_double ? 8 : 4)));
    TESS_TRY(CUDA_EACH(count, scatter_value,
                       {shape->nx, shape->lx, index, value, cuda_of(plane)}));
cleanup:
    return status;
}
