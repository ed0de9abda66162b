/** @file tess_gcf_cuda_degrid.cuh
 *  Sums over the lanes of a warp, as degridding ends with.
 */
#ifndef TESS_GCF_CUDA_DEGRID_CUH
#define TESS_GCF_CUDA_DEGRID_CUH

#include "tess_gcf_cuda.cuh"

enum { GCF_WARP = 32 };
static const unsigned GCF_ALL_LANES = 0xffffffffu;

/** One step of gcf_sum_parts: lanes whose `bit` is set keep the second half of the
 *  values, and take what the others have of it. */
template <int N, typename R>
__device__ inline void gcf_halve(R *part, int lane, int bit)
{
    const bool upper = (lane & bit) != 0;
#pragma unroll
    for (int k = 0; k < N / 2; ++k) {
        const R give = upper ? part[k] : part[k + N / 2];
        const R keep = upper ? part[k + N / 2] : part[k];
        part[k] = keep + __shfl_xor_sync(GCF_ALL_LANES, give, bit);
    }
}

/** Sums over a warp of the parts of `POLS` complex values, of which each lane has a
 *  share in part[2 · POLS]: the values are dealt out while they are added, so that 5 to
 *  9 exchanges do what 10 to 40 would. Returns the sum number gcf_part_of(lane). */
template <int POLS, typename R> __device__ inline R gcf_sum_parts(R *part, int lane)
{
    int bit = GCF_WARP / 2;
    if (POLS == 4) {
        gcf_halve<8>(part, lane, bit);
        bit /= 2;
    }
    if (POLS >= 2) {
        gcf_halve<4>(part, lane, bit);
        bit /= 2;
    }
    gcf_halve<2>(part, lane, bit);
    for (bit /= 2; bit > 0; bit /= 2)
        part[0] += __shfl_xor_sync(GCF_ALL_LANES, part[0], bit);
    return part[0];
}

/** Which of the 2 · POLS sums a lane ends up with, and whether it is the one to store
 *  it. */
template <int POLS> __device__ inline int gcf_part_of(int lane)
{
    return lane / (GCF_WARP / (2 * POLS));
}

template <int POLS> __device__ inline bool gcf_stores(int lane)
{
    return lane % (GCF_WARP / (2 * POLS)) == 0;
}

/** A visibility's part of number gcf_part_of(): real and imaginary parts alternate. */
template <typename R, int POLS>
__device__ inline R *gcf_vis_part(const gcf_cuda_job &job, uint32_t point, int part)
{
    return (R *)job.vis + 2 * gcf_vis_index<POLS>(job, point, part / 2) + part % 2;
}

/** The point that a warp of a block works on, where each has one: its number, in order,
 *  or -1 beyond the last. */
__device__ inline int64_t gcf_point_of_warp(const gcf_cuda_job &job)
{
    const int64_t k =
        (int64_t)blockIdx.x * (blockDim.x / GCF_WARP) + threadIdx.x / GCF_WARP;
    return k < job.count ? k : -1;
}

/** Store what the lanes of a warp have summed up of a point, or ADD it to what others
 *  have of it. */
template <int POLS, bool ADD = false, typename C>
__device__ inline void gcf_store_point(const gcf_cuda_job &job, uint32_t point, C *sum)
{
    typedef decltype(sum->x) R;
    const int lane = (int)threadIdx.x % GCF_WARP;
    const R total = gcf_sum_parts<POLS>((R *)sum, lane);
    if (!gcf_stores<POLS>(lane)) return;
    R *to = gcf_vis_part<R, POLS>(job, point, gcf_part_of<POLS>(lane));
    if (ADD)
        atomicAdd(to, total);
    else
        *to = total;
}

#endif
