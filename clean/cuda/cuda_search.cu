/* Finds peaks and candidates, a block for each row, and counts values. Memory bandwidth
 * limits all of these. */
#include "cuda_each.cuh"
#include "cuda_metric.cuh"

namespace
{

enum { THREADS = CUDA_ROW_THREADS, LANES = 32, WARPS = THREADS / LANES };

/* ---- means ---- */

template <typename R> struct value_at {
    void *const *image;
    int64_t k;
    __device__ double operator()(int i) const
    {
        return (double)((const R *)image[i])[k];
    }
};

template <typename R> struct mean_pixel {
    cuda_join join;
    void *const *image;
    const R *factor;
    R *mean;
    __device__ void operator()(int64_t k) const
    {
        double value = cuda_metric(join, value_at<R>{image, k});
        if (factor) value *= (double)factor[k];
        mean[k] = (R)value;
    }
};

/* ---- rows ---- */

/* The size of a pixel, by which it is chosen; −1: it may have no component. */
template <typename R>
__device__ double size_at(const cuda_search &search, int64_t nx, int64_t y, int64_t x)
{
    const int64_t k = y * nx + x;
    if (!search.allowed[k]) return -1;
    if (search.found && !(search.found[k] & search.bit)) return -1;
    const double value = (double)((const R *)search.mean)[k];
    return search.positive ? value : fabs(value);
}

template <typename R>
__global__ void peak_kernel(int64_t nx, cuda_search search, cuda_row_peak *row)
{
    __shared__ double size[THREADS];
    __shared__ int64_t place[THREADS];
    const int64_t y = search.y_range[0] + blockIdx.x;
    double best = 0;
    int64_t at = -1;
    for (int64_t x = search.x_range[0] + threadIdx.x; x < search.x_range[1];
         x += THREADS) {
        const double own = size_at<R>(search, nx, y, x);
        if (own > best) best = own, at = x;
    }
    size[threadIdx.x] = best;
    place[threadIdx.x] = at;
    __syncthreads();
    for (int step = THREADS / 2; step > 0; step /= 2) {
        if ((int)threadIdx.x < step) {
            const int other = threadIdx.x + step, own = threadIdx.x;
            const bool better =
                place[other] >= 0 &&
                (place[own] < 0 || size[other] > size[own] ||
                 (size[other] == size[own] && place[other] < place[own]));
            if (better) size[own] = size[other], place[own] = place[other];
        }
        __syncthreads();
    }
    if (threadIdx.x > 0) return;
    row[y].x = place[0];
    row[y].value =
        place[0] < 0 ? 0 : (double)((const R *)search.mean)[y * nx + place[0]];
}

template <typename R>
__device__ bool is_candidate(const cuda_search &search, int64_t nx, int64_t y,
                             int64_t x, double from)
{
    const double size = size_at<R>(search, nx, y, x);
    return size > 0 && size >= from;
}

/* A block walks along a row, and visits its candidates in order: visit(x, place). */
template <typename R, typename V>
__device__ int64_t walk_row(int64_t nx, const cuda_search &search, int64_t y,
                            double from, const V &visit)
{
    __shared__ int in_warp[WARPS];
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    int64_t place = 0;
    for (int64_t first = search.x_range[0]; first < search.x_range[1];
         first += THREADS) {
        const int64_t x = first + threadIdx.x;
        const bool is =
            x < search.x_range[1] && is_candidate<R>(search, nx, y, x, from);
        const unsigned votes = __ballot_sync(~0u, is);
        int before = __popc(votes & ((1u << lane) - 1)), all = 0;
        if (lane == 0) in_warp[warp] = __popc(votes);
        __syncthreads();
        for (int w = 0; w < WARPS; ++w) {
            before += w < warp ? in_warp[w] : 0;
            all += in_warp[w];
        }
        if (is) visit(x, place + before);
        place += all;
        __syncthreads();
    }
    return place;
}

struct visit_nothing {
    __device__ void operator()(int64_t, int64_t) const
    {
    }
};

template <typename R>
__global__ void count_kernel(int64_t nx, cuda_search search, double from,
                             int64_t *count)
{
    const int64_t y = search.y_range[0] + blockIdx.x;
    const int64_t own = walk_row<R>(nx, search, y, from, visit_nothing{});
    if (threadIdx.x == 0) count[y] = own;
}

template <typename R> struct note_candidate {
    int64_t nx, y, first;
    void *const *image;
    const R *factor;
    cuda_list list;
    __device__ void operator()(int64_t x, int64_t place) const
    {
        const int64_t at = first + place, k = y * nx + x;
        list.x[at] = (int32_t)x;
        list.y[at] = (int32_t)y;
        for (int i = 0; i < list.num_layers; ++i)
            list.value[i * list.count + at] = (double)((const R *)image[i])[k];
        if (list.factor) list.factor[at] = (double)factor[k];
    }
};

template <typename R>
__global__ void list_kernel(int64_t nx, cuda_search search, double from,
                            const int64_t *first, void *const *image, const R *factor,
                            cuda_list list)
{
    const int64_t y = search.y_range[0] + blockIdx.x;
    const int64_t end = y + 1 < search.y_range[1] ? first[y + 1] : list.count;
    if (end == first[y]) return;
    walk_row<R>(nx, search, y, from,
                note_candidate<R>{nx, y, first[y], image, factor, list});
}

/* ---- values by their order ---- */

__device__ uint64_t key_of(float value)
{
    const uint32_t bits = __float_as_uint(value);
    return bits >> 31 ? (uint32_t)~bits : bits | 1u << 31;
}

__device__ uint64_t key_of(double value)
{
    const uint64_t bits = (uint64_t)__double_as_longlong(value);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

/* A block counts a share of the values in shared memory. */
template <typename R>
__global__ void bin_kernel(int64_t pixels, cuda_order order, uint64_t prefix, int shift,
                           unsigned long long *bins)
{
    __shared__ unsigned own[CUDA_BINS];
    const int64_t step = (int64_t)gridDim.x * THREADS;
    for (int b = threadIdx.x; b < CUDA_BINS; b += THREADS)
        own[b] = 0;
    __syncthreads();
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < pixels;
         k += step) {
        if (order.is_nan[k]) continue;
        R value = ((const R *)order.image)[k];
        if (order.distances) value = (R)fabs((double)value - order.centre);
        const uint64_t high = key_of(value) >> shift;
        if (high >> CUDA_BIN_BITS == prefix)
            atomicAdd(&own[high & (CUDA_BINS - 1)], 1u);
    }
    __syncthreads();
    for (int b = threadIdx.x; b < CUDA_BINS; b += THREADS)
        if (own[b] > 0) atomicAdd(&bins[b], (unsigned long long)own[b]);
}

/* A block adds up a row, in the same order every time. */
__global__ void sum_kernel(int64_t nx, cuda_pixels image, const uint8_t *is_nan,
                           cuda_row_sum *row)
{
    __shared__ double squares[THREADS], least[THREADS];
    __shared__ int count[THREADS];
    const int own = threadIdx.x;
    squares[own] = 0;
    least[own] = INFINITY;
    count[own] = 0;
    for (int64_t x = own; x < nx; x += THREADS) {
        const int64_t k = (int64_t)blockIdx.x * nx + x;
        const double value = is_nan[k] ? 0 : cuda_pixel(image, k);
        if (is_nan[k]) continue;
        squares[own] += value * value;
        least[own] = value < least[own] ? value : least[own];
        ++count[own];
    }
    __syncthreads();
    for (int step = THREADS / 2; step > 0; step /= 2) {
        if (own < step) {
            squares[own] += squares[own + step];
            least[own] =
                least[own + step] < least[own] ? least[own + step] : least[own];
            count[own] += count[own + step];
        }
        __syncthreads();
    }
    if (own == 0) row[blockIdx.x] = {squares[0], least[0], count[0]};
}

/* As spread_of() of cpu_noise.c. */
template <typename R> struct take_spread {
    int channels;
    void *const *image;
    const double *weight;
    const uint8_t *is_nan;
    int64_t step;
    double *sample;
    __device__ void operator()(int64_t s) const
    {
        const value_at<R> value{image, s * step};
        double sum = 0, weights = 0, squares = 0;
        for (int c = 0; c < channels; ++c) {
            if (!(weight[c] > 0)) continue;
            sum += weight[c] * value(c);
            weights += weight[c];
        }
        for (int c = 0; c < channels; ++c) {
            if (!(weight[c] > 0)) continue;
            const double off = value(c) - sum / weights;
            squares += weight[c] * off * off;
        }
        sample[s] = is_nan[s * step] ? -1 : squares;
    }
};

int64_t rows_of(const cuda_search *search)
{
    const int64_t rows = search->y_range[1] - search->y_range[0];
    return search->x_range[1] > search->x_range[0] && rows > 0 ? rows : 0;
}

} // namespace

tess_status cuda_mean(const cuda_shape *shape, const cuda_join *join,
                      void *const *image, const void *factor, void *mean)
{
    return CUDA_EACH(shape->nx * shape->ny, mean_pixel,
                     {*join, image, cuda_of(factor), cuda_of(mean)});
}

tess_status cuda_row_peaks(const cuda_shape *shape, const cuda_search *search,
                           cuda_row_peak *row)
{
    tess_status status = TESS_OK;
    /* −1 in all rows, also in those where no component may be */
    TESS_TRY(cuda_each(shape->ny * (int64_t)sizeof *row / 8,
                       cuda_fill_words{(uint64_t *)row, ~(uint64_t)0}));
    if (rows_of(search) == 0) return TESS_OK;
    tess_launch(shape->is_double ? peak_kernel<double> : peak_kernel<float>,
                rows_of(search), THREADS, 0, shape->nx, *search, row);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

tess_status cuda_row_counts(const cuda_shape *shape, const cuda_search *search,
                            double from, int64_t *count)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_device_zero(count, shape->ny * (int64_t)sizeof *count));
    if (rows_of(search) == 0) return TESS_OK;
    tess_launch(shape->is_double ? count_kernel<double> : count_kernel<float>,
                rows_of(search), THREADS, 0, shape->nx, *search, from, count);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

tess_status cuda_fill_list(const cuda_shape *shape, const cuda_search *search,
                           double from, const int64_t *first, void *const *image,
                           const void *factor, const cuda_list *list)
{
    tess_status status = TESS_OK;
    if (rows_of(search) == 0 || list->count == 0) return TESS_OK;
    if (shape->is_double)
        tess_launch(list_kernel<double>, rows_of(search), THREADS, 0, shape->nx,
                    *search, from, first, image, (const double *)factor, *list);
    else
        tess_launch(list_kernel<float>, rows_of(search), THREADS, 0, shape->nx, *search,
                    from, first, image, (const float *)factor, *list);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

tess_status cuda_count_bins(const cuda_shape *shape, const cuda_order *order,
                            uint64_t prefix, int shift, unsigned long long *bins)
{
    tess_status status = TESS_OK;
    const int64_t pixels = shape->nx * shape->ny;
    const int64_t most = (int64_t)tess_most_together() * CUDA_EACH_BLOCKS;
    const int64_t blocks = (pixels + THREADS - 1) / THREADS;
    tess_launch(shape->is_double ? bin_kernel<double> : bin_kernel<float>,
                blocks < most ? blocks : most, THREADS, 0, pixels, *order, prefix,
                shift, bins);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

tess_status cuda_row_sums(const cuda_shape *shape, const cuda_pixels *image,
                          const uint8_t *is_nan, cuda_row_sum *row)
{
    tess_status status = TESS_OK;
    tess_launch(sum_kernel, shape->ny, THREADS, 0, shape->nx, *image, is_nan, row);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

tess_status cuda_take_spreads(const cuda_shape *shape, int channels, void *const *image,
                              const double *weight, const uint8_t *is_nan, int64_t step,
                              int64_t count, double *sample)
{
    return CUDA_EACH(count, take_spread,
                     {channels, image, weight, is_nan, step, sample});
}
