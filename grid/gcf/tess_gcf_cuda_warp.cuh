/** @file tess_gcf_cuda_warp.cuh
 *  Gridding by a warp for each visibility, as they come, every product added to the
 * grid atomically, as NAG's study of tiles for OSKAR
 * (github.com/OxfordSKA/GPU-gridding) does what lies outside of its tiles. A warp needs
 * no barrier, and a small footprint leaves none of a block's threads idle. Neighbouring
 * cells of single precision are added together, 16 bytes an atomic, where the grid's
 * lines are aligned to that (compute capability 9.0). `tiled` grids kernels so that are
 * too narrow for tiles.
 */
#ifndef TESS_GCF_CUDA_WARP_CUH
#define TESS_GCF_CUDA_WARP_CUH

#include "tess_gcf_cuda.cuh"
#include "tess_log.h"

enum { GCF_WARP_LANES = 32, GCF_WARP_THREADS = 256, GCF_WARP_MOST_THREADS = 512 };

/** Adds by the device's own atomic instructions. */
struct gcf_add_native {
    static constexpr bool pairs = true; /**< two cells may be added together */
    template <typename C> __device__ static inline void add(C *to, C value)
    {
        add_complex(to, value);
    }
};

template <typename C> __device__ inline void gcf_add_pair(C *to, C left, C right)
{
    add_complex(to, left);
    add_complex(to + 1, right);
}

template <> __device__ inline void gcf_add_pair(float2 *to, float2 left, float2 right)
{
    add_complex2(to, make_float4(left.x, left.y, right.x, right.y));
}

/** Lanes lie along a line, or along several where it is short. With PAIR, two cells a
 * lane, the first one of even number: one beyond either end of a line may get zeros.
 * With job.order.narrow, points of wider kernels, and those outside, are passed by.
 * Expected limit: atomics in L2. */
template <typename R, int POLS, bool PAIR, typename ADD>
__global__ void __launch_bounds__(GCF_WARP_MOST_THREADS)
    gcf_warp_kernel(gcf_cuda_job job)
{
    typedef typename cuda_complex<R>::type C;
    const int64_t k = (int64_t)blockIdx.x * (blockDim.x / GCF_WARP_LANES) +
                      (int)threadIdx.x / GCF_WARP_LANES;
    if (k >= job.count) return;
    const gcf_cuda_place at = gcf_place_of(job, k);
    if (job.order.narrow > 0 &&
        (at.kernel == GCF_OUTSIDE ||
         job.table.plane[gcf_plane_of(at.kernel)].support > job.order.narrow))
        return;
    const int lane = (int)threadIdx.x % GCF_WARP_LANES, odd = PAIR ? at.v & 1 : 0;
    gcf_stamp<R, POLS> stamp;
    gcf_stamp_of<R, POLS>(job, at, &stamp);
    const int wide = (stamp.support + 2 * odd) / (PAIR ? 2 : 1); /* lanes' worth */
    const int across = wide > 16 ? 32 : wide > 8 ? 16 : wide > 4 ? 8 : 4;
    for (int i = lane / across; i < stamp.support; i += GCF_WARP_LANES / across) {
        const int64_t line = i * stamp.step_u;
        C *cell = (C *)job.cells + (int64_t)(at.u + i) * job.nv + at.v;
        for (int n = lane % across; n < wide; n += across) {
            const int j = PAIR ? 2 * n - odd : n;
            const C none = {0, 0};
            const C tap = !PAIR || j >= 0
                              ? gcf_tap_of<R>(stamp.taps, stamp.is_single,
                                              line + (int64_t)j * stamp.step_v)
                              : none;
            const C next = PAIR && j + 1 < stamp.support
                               ? gcf_tap_of<R>(stamp.taps, stamp.is_single,
                                               line + (int64_t)(j + 1) * stamp.step_v)
                               : none;
            for (int p = 0; p < POLS; ++p) {
                C sum = {0, 0}, other = {0, 0};
                gcf_add_tap<R>(sum, tap, stamp.vis[p]);
                gcf_add_tap<R>(other, next, stamp.vis[p]);
                if (PAIR)
                    gcf_add_pair(cell + p * job.pol_stride + j, sum, other);
                else
                    ADD::add(cell + p * job.pol_stride + j, sum);
            }
        }
    }
}

/** Launch blocks of so many threads. ADD tells how a cell is added to. */
template <typename R, int POLS, typename ADD>
static tess_status gcf_launch_by_warp(const gcf_cuda_job &job, int threads)
{
    tess_status status = TESS_OK;
    const int warps = threads / GCF_WARP_LANES;
    const int64_t blocks = (job.count + warps - 1) / warps;
    const bool aligned = job.nv % 2 == 0;
    if (sizeof(R) == sizeof(float) && aligned && ADD::pairs)
        tess_launch(gcf_warp_kernel<R, POLS, true, ADD>, blocks, threads, 0, job);
    else
        tess_launch(gcf_warp_kernel<R, POLS, false, ADD>, blocks, threads, 0, job);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}
#endif
