/** @file gcf_cuda_degrid.cuh  (private to grid/gcf/)
 *  Sums over the lanes of a warp, as degridding ends with.
 */
#ifndef TESS_GCF_CUDA_DEGRID_CUH
#define TESS_GCF_CUDA_DEGRID_CUH

#include "gcf_cuda.cuh"

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
template <typename R>
__device__ inline R *gcf_vis_part(const gcf_cuda_job &job, uint32_t point, int part)
{
    return (R *)job.vis + 2 * (int64_t)point * job.num_pol + part;
}

#endif
