/* scatter, degridding: a thread for each cell of the grid, which it keeps; points are
 * sorted by tile, and bookmarks tell which of them a block's cells may meet. All
 * threads of a block go through these points, every one multiplies its cells by the
 * taps that fall on them, and a point's shares are added up over the warps and then
 * over the block: the mirror image of gridding by cells, of the SKA gridding studies on
 * GPUs (as gather of Romein 2012, doi:10.1145/2304576.2304620, section 3). */
#include "study_cuda.cuh"
#include "tess_gcf_cuda_degrid.cuh"

namespace
{

enum {
    THREADS = 256,
    WARPS = THREADS / GCF_WARP,
    CELLS = 4,              /* of a thread, along u */
    HEIGHT = WARPS * CELLS, /* of a block: 32 × 32 cells */
    BATCH = 16              /* points between two barriers */
};

/* A block owns 32 × 32 cells, a warp 4 lines of them. Shares of 16 points at a time in
 * shared memory. Atomic: a block's share in a point. Expected limit: instructions; half
 * of the products are with zeros at the edges of footprints. */
template <typename R, int POLS>
__global__ void __launch_bounds__(THREADS)
    scatter_kernel(gcf_cuda_job job, int blocks_v)
{
    typedef typename cuda_complex<R>::type C;
    __shared__ R share[BATCH][WARPS][2 * POLS];
    const int lane = (int)threadIdx.x % GCF_WARP, warp = (int)threadIdx.x / GCF_WARP;
    const int u = (int)(blockIdx.x / (unsigned)blocks_v) * HEIGHT;
    const int v = (int)(blockIdx.x % (unsigned)blocks_v) * GCF_WARP;
    const int x = u + warp * CELLS, y = v + lane;
    C cell[CELLS][POLS] = {};
    for (int c = 0; c < CELLS; ++c)
        for (int p = 0; p < POLS; ++p)
            if (x + c < job.nu && y < job.nv)
                cell[c][p] =
                    ((const C *)
                         job.cells)[p * job.pol_stride + (int64_t)(x + c) * job.nv + y];
    const int tile = job.order.tile_u, reach = job.table.max_support - 1;
    const int first_u = (u > reach ? u - reach : 0) / tile;
    const int first_v = (v > reach ? v - reach : 0) / tile;
    const int end_u = min(job.tiles_u, (u + HEIGHT - 1) / tile + 1);
    const int end_v = min(job.tiles_v, (v + GCF_WARP - 1) / tile + 1);
    for (int t = first_u; t < end_u; ++t) {
        const uint32_t first = job.first[(int64_t)t * job.tiles_v + first_v];
        const uint32_t end = job.first[(int64_t)t * job.tiles_v + end_v];
        for (uint32_t from = first; from < end; from += BATCH) {
            const int count = (int)min((uint32_t)BATCH, end - from);
            for (int k = 0; k < count; ++k) {
                const gcf_cuda_place at = gcf_place_of(job, from + (uint32_t)k);
                const gcf_either_view<R> taps = gcf_view_either<R>(job, at.kernel);
                C sum[POLS] = {};
#pragma unroll
                for (int c = 0; c < CELLS; ++c) {
                    const int i = x + c - at.u, j = y - at.v;
                    if (i < 0 || j < 0 || i >= taps.support || j >= taps.support)
                        continue;
                    C tap = gcf_tap_of<R>(taps.first, taps.is_single,
                                          i * taps.step_u + j * taps.step_v);
                    tap.y *= taps.sign;
#pragma unroll
                    for (int p = 0; p < POLS; ++p)
                        gcf_add_conjugate_product(sum[p], tap, cell[c][p]);
                }
                const R total = gcf_sum_parts<POLS>((R *)sum, lane);
                if (gcf_stores<POLS>(lane))
                    share[k][warp][gcf_part_of<POLS>(lane)] = total;
            }
            __syncthreads();
            for (int k = (int)threadIdx.x; k < count * 2 * POLS; k += THREADS) {
                R total = 0;
                for (int w = 0; w < WARPS; ++w)
                    total += share[k / (2 * POLS)][w][k % (2 * POLS)];
                const uint32_t point =
                    gcf_place_of(job, from + (uint32_t)(k / (2 * POLS))).point;
                if (total != 0)
                    atomicAdd(gcf_vis_part<R, POLS>(job, point, k % (2 * POLS)), total);
            }
            __syncthreads();
        }
    }
}

template <typename R, int POLS> tess_status run(const gcf_cuda_job &job)
{
    tess_status status = TESS_OK;
    const int blocks_u = (job.nu + HEIGHT - 1) / HEIGHT;
    const int blocks_v = (job.nv + GCF_WARP - 1) / GCF_WARP;
    TESS_TRY(tess_device_zero(job.vis, job.num_vis * 2 * POLS * (int64_t)sizeof(R)));
    tess_launch(scatter_kernel<R, POLS>, (int64_t)blocks_u * blocks_v, THREADS, 0, job,
               blocks_v);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

} // namespace

gcf_cuda_order study_degrid_scatter_order(const gcf_cuda_job &job)
{
    (void)job;
    return {16, 16, false, false, false, 0};
}

tess_status study_degrid_scatter(const gcf_cuda_job &job)
{
    return GCF_BY_TYPE(job, run, job);
}
