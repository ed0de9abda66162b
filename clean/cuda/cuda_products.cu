/* Products and sums of spectra. */
#include "cuda_each.cuh"

namespace
{

template <typename R> struct real_part {
    typedef typename cuda_complex<R>::type complex;
    const complex *spectrum;
    R *kernel;
    __device__ void operator()(int64_t k) const
    {
        kernel[k] = spectrum[k].x;
    }
};

/* A value times what it is multiplied by. */
template <typename R> struct product {
    typedef typename cuda_complex<R>::type complex;
    const complex *from, *psf;
    const R *kernel;
    int power;
    R scale;
    __device__ complex at(int64_t k) const
    {
        complex value = from[k];
        R by = scale;
        if (kernel) by *= power == 2 ? kernel[k] * kernel[k] : kernel[k];
        value.x *= by;
        value.y *= by;
        if (psf) {
            const complex a = value, b = psf[k];
            value.x = a.x * b.x - a.y * b.y;
            value.y = a.x * b.y + a.y * b.x;
        }
        return value;
    }
};

template <typename R> struct set_product {
    product<R> of;
    typename cuda_complex<R>::type *to;
    __device__ void operator()(int64_t k) const
    {
        to[k] = of.at(k);
    }
};

template <typename R> struct add_product {
    product<R> of;
    typename cuda_complex<R>::type *sum;
    __device__ void operator()(int64_t k) const
    {
        const typename cuda_complex<R>::type value = of.at(k);
        sum[k].x += value.x;
        sum[k].y += value.y;
    }
};

int64_t values_of(const cuda_shape *shape)
{
    return shape->half * shape->ly;
}

template <typename R> product<R> product_of(const void *from, const cuda_factors *by)
{
    return product<R>{cuda_of(from), cuda_of(by->psf), cuda_of(by->kernel), by->power,
                      (R)by->scale};
}

} // namespace

tess_status cuda_real_parts(const cuda_shape *shape, const void *spectrum, void *kernel)
{
    return CUDA_EACH(values_of(shape), real_part, {cuda_of(spectrum), cuda_of(kernel)});
}

tess_status cuda_multiply(const cuda_shape *shape, const void *from,
                          const cuda_factors *by, void *to)
{
    const int64_t count = values_of(shape);
    if (shape->is_double)
        return cuda_each(
            count, set_product<double>{product_of<double>(from, by), cuda_of(to)});
    return cuda_each(count,
                     set_product<float>{product_of<float>(from, by), cuda_of(to)});
}

tess_status cuda_add_product(const cuda_shape *shape, const void *from,
                             const cuda_factors *by, void *sum)
{
    const int64_t count = values_of(shape);
    if (shape->is_double)
        return cuda_each(
            count, add_product<double>{product_of<double>(from, by), cuda_of(sum)});
    return cuda_each(count,
                     add_product<float>{product_of<float>(from, by), cuda_of(sum)});
}
