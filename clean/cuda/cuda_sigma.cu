/* The local noise, and the factor by which the search divides it out. */
#include "cuda_each.cuh"

namespace
{

template <typename R> struct pad_valid {
    int64_t nx, ny, lx;
    const uint8_t *is_nan;
    R *plane;
    __device__ void operator()(int64_t y, int64_t x) const
    {
        plane[y * lx + x] = y < ny && x < nx && !is_nan[y * nx + x] ? 1 : 0;
    }
};

template <typename R> struct pad_gaussian {
    int64_t nx, ny, lx, ly;
    double height, steepness;
    R *plane;
    __device__ void operator()(int64_t row, int64_t column) const
    {
        const int64_t dy = cuda_distance(row, ly, ny / 2);
        const int64_t dx = cuda_distance(column, lx, nx / 2);
        const bool inside = ny / 2 + dy < ny && nx / 2 + dx < nx;
        const double r2 = (double)(dx * dx + dy * dy);
        plane[row * lx + column] = (R)(inside ? height * exp(-steepness * r2) : 0.0);
    }
};

template <typename R> struct take_root {
    int64_t nx, lx;
    const R *plane;
    bool divides;
    R *sigma;
    __device__ void operator()(int64_t y, int64_t x) const
    {
        R *to = sigma + y * nx + x;
        const double value = (double)plane[y * lx + x];
        const double root = value > 0 ? sqrt(value) : 0.0;
        if (!divides)
            *to = (R)root;
        else
            *to = root > 0 ? (R)((double)*to / root) : (R)0;
    }
};

/* The least value along x, and then along y. */
template <typename R> struct least_of_row {
    int64_t nx, reach;
    const R *image;
    R *least;
    __device__ void operator()(int64_t y, int64_t x) const
    {
        const int64_t end = x + reach < nx ? x + reach : nx - 1;
        R value = image[y * nx + x];
        for (int64_t k = x < reach ? 0 : x - reach; k <= end; ++k)
            value = image[y * nx + k] < value ? image[y * nx + k] : value;
        least[y * nx + x] = value;
    }
};

template <typename R> struct raise_to_least {
    int64_t nx, ny, reach;
    double share;
    const R *least;
    R *sigma;
    __device__ void operator()(int64_t y, int64_t x) const
    {
        const int64_t end = y + reach < ny ? y + reach : ny - 1;
        R value = least[y * nx + x];
        for (int64_t k = y < reach ? 0 : y - reach; k <= end; ++k)
            value = least[k * nx + x] < value ? least[k * nx + x] : value;
        const double floor = share * fabs((double)value);
        if ((double)sigma[y * nx + x] < floor) sigma[y * nx + x] = (R)floor;
    }
};

template <typename R> struct to_factor {
    double lowest, strength;
    R *sigma;
    __device__ void operator()(int64_t k) const
    {
        const double share = sigma[k] > 0 ? lowest / (double)sigma[k] : 1.0;
        sigma[k] = (R)(strength == 1 ? share : pow(share, strength));
    }
};

} // namespace

tess_status cuda_pad_valid(const cuda_shape *shape, const uint8_t *is_nan, void *plane)
{
    return CUDA_EACH_CELL(shape->ly, shape->lx, pad_valid,
                          {shape->nx, shape->ny, shape->lx, is_nan, cuda_of(plane)});
}

tess_status cuda_pad_gaussian(const cuda_shape *shape, double height, double steepness,
                              void *plane)
{
    return CUDA_EACH_CELL(shape->ly, shape->lx, pad_gaussian,
                          {shape->nx, shape->ny, shape->lx, shape->ly, height,
                           steepness, cuda_of(plane)});
}

tess_status cuda_take_root(const cuda_shape *shape, const void *plane, bool divides,
                           void *sigma)
{
    return CUDA_EACH_CELL(
        shape->ny, shape->nx, take_root,
        {shape->nx, shape->lx, cuda_of(plane), divides, cuda_of(sigma)});
}

tess_status cuda_raise_to_minima(const cuda_shape *shape, const void *image,
                                 int64_t reach, double share, void *room, void *sigma)
{
    tess_status status = TESS_OK;
    TESS_TRY(CUDA_EACH_CELL(shape->ny, shape->nx, least_of_row,
                            {shape->nx, reach, cuda_of(image), cuda_of(room)}));
    TESS_TRY(CUDA_EACH_CELL(
        shape->ny, shape->nx, raise_to_least,
        {shape->nx, shape->ny, reach, share, cuda_of(room), cuda_of(sigma)}));
cleanup:
    return status;
}

tess_status cuda_to_factor(const cuda_shape *shape, double lowest, double strength,
                           void *sigma)
{
    return CUDA_EACH(shape->nx * shape->ny, to_factor,
                     {lowest, strength, cuda_of(sigma)});
}
