/* Implements weight_device.h on CUDA. It is compiled without fused multiply-adds, so
 * that every sample falls into the cell that the processor finds for it. */
#include "tess_cuda.h"
#include "tess_device.h"
#include "weight_device.h"

enum { THREADS = 256, BLOCKS = 132 * 8, WARP = 32, MOST_WEIGHTS = 16 };

__device__ inline unsigned long long bits_of(double value)
{
    return (unsigned long long)__double_as_longlong(value);
}

/* A warp works on a row, and its lanes on neighbouring channels. The function f makes
 * other weights of theirs. */
template <typename real, typename function>
__device__ inline void for_each_weight(const tess_device_samples &samples, function f)
{
    const int lane = threadIdx.x % WARP;
    const int64_t warps = (int64_t)gridDim.x * THREADS / WARP;
    for (int64_t row = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / WARP;
         row < samples.num_rows; row += warps) {
        const double u = samples.uvw_m[3 * row], v = samples.uvw_m[3 * row + 1];
        const double *inv_lambda = samples.inv_lambda + samples.chan_base[row];
        const int64_t first = samples.vis_first[row] * samples.num_weight;
        for (int k = lane; k < samples.num_chan[row] * samples.num_weight; k += WARP) {
            const int c = k / samples.num_weight;
            real *weight = (real *)samples.weight + first + k;
            if (*weight != 0)
                f(k % samples.num_weight, u * inv_lambda[c], v * inv_lambda[c], weight);
        }
    }
}

/* The limit are the atomics of cells that many samples share, as neighbouring channels
 * of short baselines do. */
template <typename real>
__global__ void add_kernel(const density_layout layout, const tess_device_samples samples,
                           double *cells, unsigned char *touched)
{
    for_each_weight<real>(samples, [&](int which, double u, double v, real *weight) {
        int64_t page;
        int cell;
        if (!density_cell_of(&layout, which, u, v, &page, &cell)) return;
        touched[page] = 1;
        if (which < layout.num_grids)
            atomicAdd(&cells[page * DENSITY_PAGE_CELLS + cell], (double)*weight);
    });
}

template <typename real>
__global__ void apply_kernel(const density_layout layout, const double *cells,
                             const tess_device_samples samples, double *sum)
{
    __shared__ double own[MOST_WEIGHTS];
    __shared__ unsigned long long own_most[MOST_WEIGHTS]; /* bits rise with numbers */
    if (threadIdx.x < MOST_WEIGHTS) {
        own[threadIdx.x] = 0;
        own_most[threadIdx.x] = 0;
    }
    __syncthreads();
    double here = 0, most = 0;
    int whose = 0; /* the lanes of a warp mostly stay with one weight */
    for_each_weight<real>(samples, [&](int which, double u, double v, real *weight) {
        int64_t page;
        int cell;
        double factor = 0;
        if (density_cell_of(&layout, which, u, v, &page, &cell))
            factor = density_factor(&layout, cells[page * DENSITY_PAGE_CELLS + cell]) *
                     density_gaussian(&layout.gauss, u, v);
        *weight = (real)((double)*weight * factor);
        if (which != whose) {
            atomicAdd(&own[whose], here);
            atomicMax(&own_most[whose], bits_of(most));
            here = most = 0;
            whose = which;
        }
        here += (double)*weight;
        most = fmax(most, (double)*weight);
    });
    atomicAdd(&own[whose], here);
    atomicMax(&own_most[whose], bits_of(most));
    __syncthreads();
    if (threadIdx.x < samples.num_weight) {
        atomicAdd(&sum[threadIdx.x], own[threadIdx.x]);
        atomicMax((unsigned long long *)sum + samples.num_weight + threadIdx.x,
                  own_most[threadIdx.x]);
    }
}

tess_status weight_device_add(const density_layout *layout,
                            const tess_device_samples *samples, double *cell,
                            unsigned char *touched)
{
    tess_status status = TESS_OK;
    if (samples->is_double)
        add_kernel<double><<<BLOCKS, THREADS, 0, tess_device_stream()>>>(
            *layout, *samples, cell, touched);
    else
        add_kernel<float><<<BLOCKS, THREADS, 0, tess_device_stream()>>>(
            *layout, *samples, cell, touched);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

tess_status weight_device_apply(const density_layout *layout, const double *cell,
                              const tess_device_samples *samples, double *sum)
{
    tess_status status = TESS_OK;
    if (samples->is_double)
        apply_kernel<double><<<BLOCKS, THREADS, 0, tess_device_stream()>>>(
            *layout, cell, *samples, sum);
    else
        apply_kernel<float><<<BLOCKS, THREADS, 0, tess_device_stream()>>>(
            *layout, cell, *samples, sum);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}
