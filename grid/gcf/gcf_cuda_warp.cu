/* warp: a warp for each visibility, as they come, every product added to the grid
 * atomically, as NAG's study of tiles for OSKAR (github.com/OxfordSKA/GPU-gridding)
 * does what lies outside of its tiles: `scatter` with less to share out, since a warp
 * needs no barrier and small footprints leave a block idle. Neighbouring cells of
 * single precision are added together, 16 bytes an atomic, where the grid's lines are
 * aligned to that (compute capability 9.0). `tiled` hands kernels over to it that are
 * too narrow for tiles. */
#include "gcf_cuda.cuh"

namespace
{

enum { LANES = 32, THREADS = 256, MOST_THREADS = 512 };

template <typename C> __device__ inline void add_pair(C *to, C left, C right)
{
    add_complex(to, left);
    add_complex(to + 1, right);
}

template <> __device__ inline void add_pair(float2 *to, float2 left, float2 right)
{
    add_complex2(to, make_float4(left.x, left.y, right.x, right.y));
}

/* Lanes lie along a line, or along several where it is short. With PAIR, two cells a
 * lane, the first one of even number: one beyond either end of a line may get zeros.
 * With job.order.narrow, points of wider kernels, and those outside, are passed by.
 * Expected limit: atomics in L2. */
template <typename R, int POLS, bool PAIR, int HOW>
__global__ void __launch_bounds__(MOST_THREADS) warp_kernel(gcf_cuda_job job)
{
    typedef typename cuda_complex<R>::type C;
    const int64_t k =
        (int64_t)blockIdx.x * (blockDim.x / LANES) + (int)threadIdx.x / LANES;
    if (k >= job.count) return;
    const gcf_cuda_place at = gcf_place_of(job, k);
    if (job.order.narrow > 0 &&
        (at.kernel == GCF_OUTSIDE ||
         job.table.plane[gcf_plane_of(at.kernel)].support > job.order.narrow))
        return;
    const int lane = (int)threadIdx.x % LANES, odd = PAIR ? at.v & 1 : 0;
    gcf_stamp<R, POLS> stamp;
    gcf_stamp_of<R, POLS>(job, at, &stamp);
    const int wide = (stamp.support + 2 * odd) / (PAIR ? 2 : 1); /* lanes' worth */
    const int across = wide > 16 ? 32 : wide > 8 ? 16 : wide > 4 ? 8 : 4;
    for (int i = lane / across; i < stamp.support; i += LANES / across) {
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
                    add_pair(cell + p * job.pol_stride + j, sum, other);
                else
                    gcf_add_cell<HOW>(cell + p * job.pol_stride + j, sum);
            }
        }
    }
}

template <typename R, int POLS, int HOW> tess_status launch(const gcf_cuda_job &job)
{
    tess_status status = TESS_OK;
    const int block = job.host.probes->block > 0 ? job.host.probes->block : THREADS;
    const int warps = block / LANES;
    const int64_t blocks = (job.count + warps - 1) / warps;
    const bool aligned = job.nv % 2 == 0;
    if (sizeof(R) == sizeof(float) && aligned && HOW == TESS_GCF_NATIVE)
        gcf_launch(warp_kernel<R, POLS, true, TESS_GCF_NATIVE>, blocks, block, 0, job);
    else
        gcf_launch(warp_kernel<R, POLS, false, HOW>, blocks, block, 0, job);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

template <typename R, int POLS> tess_status run(const gcf_cuda_job &job)
{
    return GCF_BY_ATOMICS(job, R, POLS, launch, job);
}

} // namespace

tess_status gcf_cuda_grid_warp(const gcf_cuda_job &job)
{
    return GCF_BY_TYPE(job, run, job);
}

tess_status gcf_cuda_grid_narrow(const gcf_cuda_job &job)
{
    gcf_cuda_job narrow = job;
    narrow.place = job.placed;
    narrow.array = gcf_cuda_arrays();
    narrow.count = job.num_placed;
    return gcf_cuda_grid_warp(narrow);
}
