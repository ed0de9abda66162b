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
