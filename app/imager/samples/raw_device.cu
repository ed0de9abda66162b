/* raw_device.h on CUDA. */
#include "tess_cuda.h" /* first */

#include "raw_device.h"

#include "raw_sample.h"
#include "tess_device.h"

enum { THREADS = 256, BLOCKS = 132 * 8, MOST_CHANNELS = 2048 };

/* Where a block's threads add up what they have found. */
struct block_sums {
    unsigned ignored[TESS_NUM_IGNORED];
    unsigned good, unlike;
    unsigned long long w_min_bits, w_max_bits, uvw2_max_bits, bad_row;
    unsigned long long beyond_bits;
    unsigned long long weight_max_bits, vis_max_bits;
    double weight[RAW_MAX_POL];
};

__device__ inline unsigned long long bits_of(double value)
{
    return (unsigned long long)__double_as_longlong(value);
}

/* A sample's weights and the largest part of its visibilities, as they are stored, and
 * why it is ignored: the reason of the first polarisation that is; −1: one of them
 * counts or, if they share a weight, all of them do. */
struct stored_sample {
    double weight[RAW_MAX_POL], largest_vis;
    int reason;
};

/* Write sample `at`, of channel `chan` of a row. */
template <typename real>
__device__ inline stored_sample store(const raw_recipe &recipe, const raw_row &row,
                                      const unsigned char *bytes, int64_t chan,
                                      const tess_device_samples &to, int64_t at)
{
    stored_sample out = {};
    bool any = false;
    double smallest = INFINITY;
    const raw_place place = raw_place_of(&recipe, &row, chan);
    out.reason = -1;
#pragma unroll
    for (int p = 0; p < RAW_MAX_POL; ++p) {
        if (p >= recipe.num_pol) break;
        const raw_sample value = raw_sample_of(&recipe, &place, bytes, chan, p);
        const int64_t k = at * recipe.num_pol + p;
        ((real *)to.vis)[2 * k] = (real)value.re;
        ((real *)to.vis)[2 * k + 1] = (real)value.im;
        if (to.num_weight > 1) ((real *)to.weight)[k] = (real)value.weight;
        out.weight[p] = (double)(real)value.weight;
        smallest = fmin(smallest, out.weight[p]);
        out.largest_vis = fmax(out.largest_vis, fmax(fabs((double)(real)value.re),
                                                     fabs((double)(real)value.im)));
        if (out.reason < 0) out.reason = value.reason;
        any = any || value.reason < 0;
    }
    if (any && to.num_weight > 1) out.reason = -1;
    if (to.num_weight > 1) return out;
    ((real *)to.weight)[at] = (real)smallest;
    out.weight[0] = smallest;
    return out;
}

__device__ inline void store_row(const raw_recipe &recipe,
                                 const tess_device_samples &to, int64_t row,
                                 int64_t first, const raw_row &at,
                                 const unsigned char *bytes)
{
    for (int k = 0; k < 3; ++k)
        ((double *)to.uvw_m)[3 * row + k] = at.uvw_m[k];
    ((int32_t *)to.chan_base)[row] = recipe.chan_base;
    ((int32_t *)to.num_chan)[row] = (int32_t)recipe.num_chan;
    ((int64_t *)to.vis_first)[row] = first;
    if (to.origin) ((int32_t *)to.origin)[row] = raw_origin_of(&recipe, &at, bytes);
}

__device__ inline unsigned char *bytes_of(const raw_recipe &recipe,
                                          const raw_rows &rows, int64_t row)
{
    return (unsigned char *)rows.bytes + row * recipe.row_bytes;
}

/* A thread a sample, neighbouring ones neighbouring channels: every byte of a row is
 * read by one warp or two, from L1 after the first. Sums are formed in shared memory
 * first: the few global ones would serialise. Bound by reading rows and writing
 * samples. */
template <typename real>
__global__ void decode_kernel(const raw_recipe recipe, const raw_rows rows,
                              const tess_device_samples to, raw_sums *sums,
                              unsigned long long *good_of_chan)
{
    __shared__ block_sums own;
    __shared__ unsigned good_here[MOST_CHANNELS];
    const bool few = recipe.num_chan <= MOST_CHANNELS;
    if (threadIdx.x == 0) {
        own = block_sums();
        own.w_min_bits = own.bad_row = ~0ull;
    }
    for (int c = threadIdx.x; few && c < recipe.num_chan; c += THREADS)
        good_here[c] = 0;
    __syncthreads();
    double weight[RAW_MAX_POL] = {}, largest_weight = 0, largest_vis = 0;
    const int64_t count = rows.num_rows * recipe.num_chan;
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < count;
         k += (int64_t)gridDim.x * THREADS) {
        const int64_t row = k / recipe.num_chan, chan = k % recipe.num_chan;
        const unsigned char *bytes = bytes_of(recipe, rows, row);
        const raw_row at = raw_row_of(&recipe, bytes);
        const stored_sample value =
            store<real>(recipe, at, bytes, chan, to, rows.vis_at + k);
        if (chan == 0)
            store_row(recipe, to, rows.row_at + row, rows.vis_at + k, at, bytes);
        if (!at.known) atomicMin(&own.bad_row, (unsigned long long)(rows.row_at + row));
        if (value.reason >= 0) {
            atomicAdd(&own.ignored[value.reason], 1u);
            if (value.reason == TESS_IGNORED_BEYOND_UV)
                atomicMax(&own.beyond_bits,
                          bits_of(uv_range_reach(at.uvw_m, recipe.inv_lambda[chan])));
            continue;
        }
        const double inv = recipe.inv_lambda[chan], w = fabs(at.uvw_m[2]) * inv;
        const double length2 = at.uvw_m[0] * at.uvw_m[0] + at.uvw_m[1] * at.uvw_m[1] +
                               at.uvw_m[2] * at.uvw_m[2];
        atomicAdd(&own.good, 1u);
        bool unlike = false;
#pragma unroll
        for (int p = 0; p < RAW_MAX_POL; ++p) {
            if (p >= to.num_weight) break;
            weight[p] += value.weight[p];
            largest_weight = fmax(largest_weight, value.weight[p]);
            unlike = unlike || value.weight[p] != value.weight[0];
        }
        largest_vis = fmax(largest_vis, value.largest_vis);
        if (unlike) atomicAdd(&own.unlike, 1u);
        if (bits_of(w) < own.w_min_bits) atomicMin(&own.w_min_bits, bits_of(w));
        if (bits_of(w) > own.w_max_bits) atomicMax(&own.w_max_bits, bits_of(w));
        if (bits_of(length2 * inv * inv) > own.uvw2_max_bits)
            atomicMax(&own.uvw2_max_bits, bits_of(length2 * inv * inv));
        if (few)
            atomicAdd(&good_here[chan], 1u);
        else
            atomicAdd(&good_of_chan[recipe.chan_base + chan], 1ull);
    }
#pragma unroll
    for (int p = 0; p < RAW_MAX_POL; ++p) {
        if (p >= to.num_weight) break;
        for (int step = 16; step > 0; step /= 2)
            weight[p] += __shfl_down_sync(~0u, weight[p], step);
        if (threadIdx.x % 32 == 0) atomicAdd(&own.weight[p], weight[p]);
    }
    for (int step = 16; step > 0; step /= 2) {
        largest_weight =
            fmax(largest_weight, __shfl_down_sync(~0u, largest_weight, step));
        largest_vis = fmax(largest_vis, __shfl_down_sync(~0u, largest_vis, step));
    }
    if (threadIdx.x % 32 == 0) {
        atomicMax(&own.weight_max_bits, bits_of(largest_weight));
        atomicMax(&own.vis_max_bits, bits_of(largest_vis));
    }
    __syncthreads();
    for (int c = threadIdx.x; few && c < recipe.num_chan; c += THREADS)
        if (good_here[c] > 0)
            atomicAdd(&good_of_chan[recipe.chan_base + c],
                      (unsigned long long)good_here[c]);
    if (threadIdx.x != 0) return;
    for (int k = 0; k < TESS_NUM_IGNORED; ++k)
        if (own.ignored[k] > 0) atomicAdd(&sums->ignored[k], own.ignored[k]);
    atomicAdd(&sums->good, own.good);
    atomicAdd(&sums->unlike, own.unlike);
    atomicMin(&sums->w_min_bits, own.w_min_bits);
    atomicMax(&sums->w_max_bits, own.w_max_bits);
    atomicMax(&sums->uvw2_max_bits, own.uvw2_max_bits);
    atomicMax(&sums->beyond_bits, own.beyond_bits);
    atomicMin(&sums->bad_row, own.bad_row);
    atomicMax(&sums->weight_max_bits, own.weight_max_bits);
    atomicMax(&sums->vis_max_bits, own.vis_max_bits);
    for (int p = 0; p < to.num_weight; ++p)
        atomicAdd(&sums->weight[p], own.weight[p]);
}

template <typename real>
__global__ void first_weights_kernel(const tess_device_samples samples, real *first)
{
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < samples.num_vis;
         k += (int64_t)gridDim.x * THREADS)
        first[k] = ((const real *)samples.weight)[k * samples.num_weight];
}

/* A thread a number. Bound by memory. */
template <typename real>
__global__ void scale_kernel(real *array, int64_t count, double factor)
{
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < count;
         k += (int64_t)gridDim.x * THREADS)
        array[k] = (real)((double)array[k] * factor);
}

/* A warp a row, a lane a weight. Bound by reading weights. */
template <typename real>
__global__ void frequencies_kernel(const tess_device_samples samples, double *sum)
{
    const int n = samples.num_weight, warps = THREADS / 32;
    double own = 0;
    for (int64_t row = (int64_t)blockIdx.x * warps + threadIdx.x / 32;
         row < samples.num_rows; row += (int64_t)gridDim.x * warps) {
        const real *weight = (const real *)samples.weight + samples.vis_first[row] * n;
        const double *inv_lambda = samples.inv_lambda + samples.chan_base[row];
        for (int k = threadIdx.x % 32; k < samples.num_chan[row] * n; k += 32)
            own += (double)weight[k] * inv_lambda[k / n];
    }
    for (int step = 16; step > 0; step /= 2)
        own += __shfl_down_sync(~0u, own, step);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, own);
}

/* A thread a row; what a warp has found is added at once. Bound by latency: a row is
 * some 30 bytes of its record. */
__global__ void positions_kernel(const raw_recipe recipe, const raw_rows rows,
                                 double inv_min, double inv_max,
                                 const tess_device_samples to, raw_sums *sums)
{
    unsigned long long low = ~0ull, high = 0, bad = ~0ull, good = 0;
    for (int64_t row = (int64_t)blockIdx.x * THREADS + threadIdx.x; row < rows.num_rows;
         row += (int64_t)gridDim.x * THREADS) {
        const unsigned char *bytes = bytes_of(recipe, rows, row);
        const raw_row at = raw_row_of(&recipe, bytes);
        const double w_m = fabs(at.uvw_m[2]);
        store_row(recipe, to, rows.row_at + row, rows.vis_at + row * recipe.num_chan,
                  at, bytes);
        if (!at.known) bad = min(bad, (unsigned long long)(rows.row_at + row));
        low = min(low, bits_of(w_m * inv_min));
        high = max(high, bits_of(w_m * inv_max));
        if (at.reason != RAW_NO_POSITION) good += recipe.num_chan;
    }
    for (int step = 16; step > 0; step /= 2) {
        low = min(low, __shfl_down_sync(~0u, low, step));
        high = max(high, __shfl_down_sync(~0u, high, step));
        bad = min(bad, __shfl_down_sync(~0u, bad, step));
        good += __shfl_down_sync(~0u, good, step);
    }
    if (threadIdx.x % 32 != 0) return;
    atomicMin(&sums->w_min_bits, low);
    atomicMax(&sums->w_max_bits, high);
    if (bad != ~0ull) atomicMin(&sums->bad_row, bad);
    atomicAdd(&sums->good, good);
}

/* A thread a sample. Bound by writing rows, whose words are three apart. */
template <typename real>
__global__ void encode_kernel(const raw_recipe recipe, const raw_mixing mixing,
                              const raw_rows rows, const tess_device_samples from)
{
    const real *vis = (const real *)from.vis + 2 * rows.vis_at * mixing.num_stokes;
    const int64_t count = rows.num_rows * recipe.num_chan;
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < count;
         k += (int64_t)gridDim.x * THREADS) {
        unsigned char *bytes = bytes_of(recipe, rows, k / recipe.num_chan);
        raw_row at;
        double stokes[4][2];
        const bool somewhere = raw_position_of(&recipe, bytes, &at);
        for (int s = 0; s < mixing.num_stokes; ++s)
            for (int part = 0; part < 2; ++part)
                stokes[s][part] = (double)vis[2 * (k * mixing.num_stokes + s) + part];
        raw_replace(&recipe, &mixing, somewhere ? &at : NULL, stokes,
                    k % recipe.num_chan, bytes);
    }
}

tess_status raw_decode(const raw_recipe *recipe, const raw_rows *rows,
                       const tess_device_samples *to, raw_sums *sums,
                       unsigned long long *good_of_chan)
{
    tess_status status = TESS_OK;
    if (rows->num_rows == 0) return TESS_OK;
    if (to->is_double)
        decode_kernel<double><<<BLOCKS, THREADS, 0, tess_device_stream()>>>(
            *recipe, *rows, *to, sums, good_of_chan);
    else
        decode_kernel<float><<<BLOCKS, THREADS, 0, tess_device_stream()>>>(
            *recipe, *rows, *to, sums, good_of_chan);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

tess_status raw_first_weights(const tess_device_samples *samples, void *first)
{
    tess_status status = TESS_OK;
    if (samples->num_vis == 0) return TESS_OK;
    if (samples->is_double)
        first_weights_kernel<double>
            <<<BLOCKS, THREADS, 0, tess_device_stream()>>>(*samples, (double *)first);
    else
        first_weights_kernel<float>
            <<<BLOCKS, THREADS, 0, tess_device_stream()>>>(*samples, (float *)first);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

template <typename real>
static tess_status scale_arrays(const tess_device_samples *samples, double vis_factor,
                                double weight_factor)
{
    tess_status status = TESS_OK;
    const int64_t num = samples->num_vis;
    scale_kernel<<<BLOCKS, THREADS, 0, tess_device_stream()>>>(
        (real *)samples->vis, 2 * num * samples->num_pol, vis_factor);
    TESS_CUDA_LAUNCHED();
    scale_kernel<<<BLOCKS, THREADS, 0, tess_device_stream()>>>(
        (real *)samples->weight, num * samples->num_weight, weight_factor);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

tess_status raw_scale(const tess_device_samples *samples, double vis_factor,
                      double weight_factor)
{
    if (samples->num_vis == 0) return TESS_OK;
    return samples->is_double ? scale_arrays<double>(samples, vis_factor, weight_factor)
                              : scale_arrays<float>(samples, vis_factor, weight_factor);
}

tess_status raw_add_frequencies(const tess_device_samples *samples, double *sum)
{
    tess_status status = TESS_OK;
    if (samples->num_vis == 0) return TESS_OK;
    if (samples->is_double)
        frequencies_kernel<double>
            <<<BLOCKS, THREADS, 0, tess_device_stream()>>>(*samples, sum);
    else
        frequencies_kernel<float>
            <<<BLOCKS, THREADS, 0, tess_device_stream()>>>(*samples, sum);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

tess_status raw_positions(const raw_recipe *recipe, const raw_rows *rows,
                          double inv_min, double inv_max, const tess_device_samples *to,
                          raw_sums *sums)
{
    tess_status status = TESS_OK;
    if (rows->num_rows == 0) return TESS_OK;
    positions_kernel<<<BLOCKS, THREADS, 0, tess_device_stream()>>>(
        *recipe, *rows, inv_min, inv_max, *to, sums);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

tess_status raw_encode(const raw_recipe *recipe, const raw_mixing *mixing,
                       const raw_rows *rows, const tess_device_samples *from)
{
    tess_status status = TESS_OK;
    if (rows->num_rows == 0) return TESS_OK;
    if (from->is_double)
        encode_kernel<double><<<BLOCKS, THREADS, 0, tess_device_stream()>>>(
            *recipe, *mixing, *rows, *from);
    else
        encode_kernel<float><<<BLOCKS, THREADS, 0, tess_device_stream()>>>(
            *recipe, *mixing, *rows, *from);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}
