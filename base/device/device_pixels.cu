/* device_pixels.h on CUDA. */
#include "tess_cuda.h" /* first */

#include "device_pixels.h"

#include "tess_device.h"
#include "tess_mem.h"

enum { THREADS = 256, MOST_ROWS = 65535, SUM_BLOCKS = 528 };

/* A thread a pixel of some rows. Bound by memory. */
template <typename From, typename To>
__global__ void mix_kernel(const tess_mixture how, const tess_pixels from,
                           const tess_pixels to)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= to.num_cols) return;
    for (int64_t j = blockIdx.y; j < to.num_rows; j += gridDim.y) {
        To *pixel = (To *)to.value + j * to.stride + i;
        double value = how.constant;
        if (how.own != 0) value += how.own * (double)*pixel;
        if (how.weight != 0)
            value +=
                how.weight * (double)((const From *)from.value)[j * from.stride + i];
        *pixel = (To)(how.is_finite && !isfinite(value) ? 0.0 : value);
    }
}

/* A block some rows, a thread some columns of these; shared memory for the sums of
 * threads. The order of sums does not depend on when blocks run. Bound by memory. */
template <typename From>
__global__ void sum_kernel(const tess_pixels of, tess_pixel_sums *sums)
{
    __shared__ tess_pixel_sums own[THREADS];
    double sum = 0, largest = 0;
    for (int64_t j = blockIdx.x; j < of.num_rows; j += gridDim.x)
        for (int64_t i = threadIdx.x; i < of.num_cols; i += THREADS) {
            const double value = (double)((const From *)of.value)[j * of.stride + i];
            sum += value;
            if (isfinite(value)) largest = fmax(largest, fabs(value));
        }
    own[threadIdx.x] = {sum, largest};
    for (int step = THREADS / 2; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x >= step) continue;
        own[threadIdx.x].sum += own[threadIdx.x + step].sum;
        own[threadIdx.x].largest =
            fmax(own[threadIdx.x].largest, own[threadIdx.x + step].largest);
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = own[0];
}

__device__ inline tess_row_measure no_pixels(void)
{
    return {0, 0, 0, 0, 0, -1, -1};
}

/* Takes another part of a row into one. Of equal extremes the first column counts. */
__device__ inline void join(tess_row_measure *to, const tess_row_measure &from)
{
    if (from.count == 0) return;
    if (to->count == 0 || from.most > to->most ||
        (from.most == to->most && from.most_at < to->most_at)) {
        to->most = from.most;
        to->most_at = from.most_at;
    }
    if (to->count == 0 || from.least < to->least ||
        (from.least == to->least && from.least_at < to->least_at)) {
        to->least = from.least;
        to->least_at = from.least_at;
    }
    to->sum += from.sum;
    to->squares += from.squares;
    to->count += from.count;
}

/* A block a row, a thread some columns of it; shared memory for what threads found.
 * Bound by memory. */
template <typename From>
__global__ void measure_kernel(const tess_pixels of, tess_row_measure *row)
{
    __shared__ tess_row_measure own[THREADS];
    for (int64_t j = blockIdx.x; j < of.num_rows; j += gridDim.x) {
        tess_row_measure found = no_pixels();
        for (int64_t i = threadIdx.x; i < of.num_cols; i += THREADS) {
            const double value = (double)((const From *)of.value)[j * of.stride + i];
            if (isfinite(value))
                join(&found, {value, value * value, value, value, 1, i, i});
        }
        own[threadIdx.x] = found;
        for (int step = THREADS / 2; step > 0; step /= 2) {
            __syncthreads();
            if (threadIdx.x < step) join(&own[threadIdx.x], own[threadIdx.x + step]);
        }
        if (threadIdx.x == 0) row[j] = own[0];
        __syncthreads();
    }
}

__device__ inline unsigned long long key_of(double value)
{
    const unsigned long long bits = (unsigned long long)__double_as_longlong(value);
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}

__device__ inline unsigned long long key_of(float value)
{
    const unsigned bits = __float_as_uint(value);
    return bits >> 31 ? ~bits : bits | 1u << 31;
}

/* A block some rows; counters of its bins in shared memory, to which threads add.
 * Bound by memory, or by many equal values. */
template <typename From>
__global__ void count_kernel(const tess_pixels of, const tess_pixel_order order,
                             unsigned long long *bins)
{
    __shared__ unsigned own[TESS_PIXEL_BINS];
    for (int k = threadIdx.x; k < TESS_PIXEL_BINS; k += THREADS)
        own[k] = 0;
    __syncthreads();
    for (int64_t j = blockIdx.x; j < of.num_rows; j += gridDim.x)
        for (int64_t i = threadIdx.x; i < of.num_cols; i += THREADS) {
            const From value = ((const From *)of.value)[j * of.stride + i];
            if (!isfinite(value)) continue;
            const unsigned long long key =
                key_of(order.distances ? (From)fabs((double)value - order.centre)
                                       : value) >>
                order.shift;
            if (key >> TESS_PIXEL_BITS == order.prefix)
                atomicAdd(&own[key & (TESS_PIXEL_BINS - 1)], 1u);
        }
    __syncthreads();
    for (int k = threadIdx.x; k < TESS_PIXEL_BINS; k += THREADS)
        if (own[k] > 0) atomicAdd(&bins[k], (unsigned long long)own[k]);
}

template <typename From, typename To>
static void launch_mix(const tess_mixture *how, const tess_pixels *from,
                       const tess_pixels *to)
{
    const int64_t rows = to->num_rows < MOST_ROWS ? to->num_rows : MOST_ROWS;
    const dim3 blocks((unsigned)((to->num_cols + THREADS - 1) / THREADS),
                      (unsigned)rows);
    mix_kernel<From, To>
        <<<blocks, THREADS, 0, tess_device_stream()>>>(*how, *from, *to);
}

template <typename From>
static void mix_from(const tess_mixture *how, const tess_pixels *from,
                     const tess_pixels *to)
{
    switch (to->type) {
    case TESS_PIXEL_DOUBLE:
        return launch_mix<From, double>(how, from, to);
    case TESS_PIXEL_MASK:
        return launch_mix<From, uint8_t>(how, from, to);
    default:
        return launch_mix<From, float>(how, from, to);
    }
}

tess_status device_pixels_mix(const tess_mixture *how, const tess_pixels *from,
                              const tess_pixels *to)
{
    tess_status status = TESS_OK;
    const tess_pixels none = {};
    const tess_pixels *other = from ? from : &none;
    if (to->num_rows == 0 || to->num_cols == 0) return TESS_OK;
    if (other->type == TESS_PIXEL_DOUBLE)
        mix_from<double>(how, other, to);
    else if (other->type == TESS_PIXEL_MASK)
        mix_from<uint8_t>(how, other, to);
    else
        mix_from<float>(how, other, to);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

tess_status device_pixels_sum(const tess_pixels *of, tess_pixel_sums *sums)
{
    tess_status status = TESS_OK;
    const int64_t bytes = SUM_BLOCKS * (int64_t)sizeof(tess_pixel_sums);
    tess_pixel_sums part[SUM_BLOCKS];
    void *made = NULL;
    *sums = {};
    TESS_TRY(tess_device_alloc(bytes, "sums", &made));
    if (of->type == TESS_PIXEL_DOUBLE)
        sum_kernel<double><<<SUM_BLOCKS, THREADS, 0, tess_device_stream()>>>(
            *of, (tess_pixel_sums *)made);
    else if (of->type == TESS_PIXEL_MASK)
        sum_kernel<uint8_t><<<SUM_BLOCKS, THREADS, 0, tess_device_stream()>>>(
            *of, (tess_pixel_sums *)made);
    else
        sum_kernel<float><<<SUM_BLOCKS, THREADS, 0, tess_device_stream()>>>(
            *of, (tess_pixel_sums *)made);
    TESS_CUDA_LAUNCHED();
    TESS_TRY(tess_device_download(part, made, bytes));
    for (int k = 0; k < SUM_BLOCKS; ++k) {
        sums->sum += part[k].sum;
        sums->largest =
            part[k].largest > sums->largest ? part[k].largest : sums->largest;
    }
cleanup:
    tess_device_free(made);
    return status;
}

tess_status device_pixels_measure(const tess_pixels *of, tess_row_measure *row)
{
    tess_status status = TESS_OK;
    const int64_t bytes = of->num_rows * (int64_t)sizeof *row;
    const int blocks = (int)(of->num_rows < SUM_BLOCKS ? of->num_rows : SUM_BLOCKS);
    void *made = NULL;
    if (of->num_rows == 0) return TESS_OK;
    TESS_TRY(tess_device_alloc(bytes, "rows of an image", &made));
    if (of->type == TESS_PIXEL_DOUBLE)
        measure_kernel<double><<<blocks, THREADS, 0, tess_device_stream()>>>(
            *of, (tess_row_measure *)made);
    else
        measure_kernel<float><<<blocks, THREADS, 0, tess_device_stream()>>>(
            *of, (tess_row_measure *)made);
    TESS_CUDA_LAUNCHED();
    TESS_TRY(tess_device_download(row, made, bytes));
cleanup:
    tess_device_free(made);
    return status;
}

tess_status device_pixels_count(const tess_pixels *of, const tess_pixel_order *order,
                                int64_t bins[TESS_PIXEL_BINS])
{
    tess_status status = TESS_OK;
    const int64_t bytes = TESS_PIXEL_BINS * (int64_t)sizeof *bins;
    void *made = NULL;
    TESS_TRY(tess_device_alloc(bytes, "order of pixels", &made));
    TESS_TRY(tess_device_zero(made, bytes));
    if (of->type == TESS_PIXEL_DOUBLE)
        count_kernel<double><<<SUM_BLOCKS, THREADS, 0, tess_device_stream()>>>(
            *of, *order, (unsigned long long *)made);
    else
        count_kernel<float><<<SUM_BLOCKS, THREADS, 0, tess_device_stream()>>>(
            *of, *order, (unsigned long long *)made);
    TESS_CUDA_LAUNCHED();
    TESS_TRY(tess_device_download(bins, made, bytes));
cleanup:
    tess_device_free(made);
    return status;
}
