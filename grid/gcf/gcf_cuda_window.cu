/* window: Romein 2012 (doi:10.1145/2304576.2304620). The cells that are a multiple of
 * the largest support apart, along each axis, belong to one thread: exactly one of them
 * lies in any footprint, so that its sum stays in a register while footprints move
 * little, and is added to the grid when they have moved past it. A block works on a
 * piece of a baseline's track. Points that come so, baseline after baseline, each in
 * order of time, are taken as they come; others are sorted by small tiles instead,
 * which keeps footprints about as close. */
#include "gcf_cuda.cuh"

namespace
{

enum {
    TILE = 16,
    THREADS = 256,
    BATCH = 128,
    TOGETHER = 4 /* taps in flight */
};

/* Points in tracks: all but the first of each. */
const double TRACKS_SHARE = 0.97;

/* A block a piece of the points, which lie in shared memory; a thread takes every
 * THREADS-th position of the window. A window of few positions has several groups of
 * threads, which share the points. Taps of several points are asked for before any is
 * waited for; outside of a footprint it is the zero behind the table. Expected limit:
 * L2, for taps, and atomics where footprints jump. */
template <typename R, int POLS, int HOW>
__global__ void __launch_bounds__(THREADS)
    window_kernel(gcf_cuda_job job, int window, int points)
{
    typedef typename cuda_complex<R>::type C;
    __shared__ gcf_stamp<R, POLS> batch[BATCH];
    __shared__ int remainder[BATCH][2]; /* of u and v */
    const int64_t begin = (int64_t)blockIdx.x * points;
    const int count = (int)min(job.count - begin, (int64_t)points);
    const int mine = (int)threadIdx.x;
    if (mine < count) {
        gcf_stamp_of<R, POLS>(job, gcf_place_of(job, begin + mine), &batch[mine]);
        remainder[mine][0] = batch[mine].u % window;
        remainder[mine][1] = batch[mine].v % window;
    }
    __syncthreads();
    const int positions = window * window, groups = max(THREADS / positions, 1);
    const int group = (int)threadIdx.x / positions % groups;
    const int first = count * group / groups, end = count * (group + 1) / groups;
    const int last = groups > 1 ? groups * positions : positions;
    for (int at = (int)threadIdx.x; at < last; at += THREADS) {
        const int a = at % positions / window, b = at % window;
        int64_t current = -1;
        C sum[POLS];
        for (int p = 0; p < POLS; ++p)
            sum[p].x = sum[p].y = 0;
        for (int n = first; n < end; n += TOGETHER) {
            C tap[TOGETHER];
            int64_t cell[TOGETHER]; /* −1: not in the footprint */
#pragma unroll
            for (int k = 0; k < TOGETHER; ++k) {
                const int number = min(n + k, end - 1);
                const gcf_stamp<R, POLS> &s = batch[number];
                int i = a - remainder[number][0], j = b - remainder[number][1];
                if (i < 0) i += window;
                if (j < 0) j += window;
                const bool inside = n + k < end && i < s.support && j < s.support;
                const C *from = inside ? s.taps + i * s.step_u + j * s.step_v
                                       : (const C *)job.taps + job.zero_tap;
                tap[k] = __ldg(from);
                cell[k] = inside ? (int64_t)(s.u + i) * job.nv + s.v + j : -1;
            }
#pragma unroll
            for (int k = 0; k < TOGETHER; ++k) {
                if (cell[k] < 0) continue;
                if (cell[k] != current) {
                    for (int p = 0; p < POLS; ++p) {
                        if (current >= 0)
                            gcf_add_cell<HOW>(
                                (C *)job.cells + p * job.pol_stride + current, sum[p]);
                        sum[p].x = sum[p].y = 0;
                    }
                    current = cell[k];
                }
                for (int p = 0; p < POLS; ++p)
                    gcf_add_tap<R>(sum[p], tap[k], batch[n + k].vis[p]);
            }
        }
        for (int p = 0; p < POLS && current >= 0; ++p)
            gcf_add_cell<HOW>((C *)job.cells + p * job.pol_stride + current, sum[p]);
    }
}

template <typename R, int POLS, int HOW> tess_status launch(const gcf_cuda_job &job)
{
    tess_status status = TESS_OK;
    const int asked = job.probes->points;
    const int points = asked > 0 && asked < BATCH ? asked : (int)BATCH;
    gcf_launch(window_kernel<R, POLS, HOW>, (job.count + points - 1) / points, THREADS,
               0, job, max(job.max_support, job.probes->bin), points);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

template <typename R, int POLS> tess_status run(const gcf_cuda_job &job)
{
    return GCF_BY_ATOMICS(job, R, POLS, launch, job);
}

} // namespace

gcf_cuda_order gcf_cuda_grid_window_order(const gcf_cuda_job &job)
{
    const bool follow =
        job.probes->sort == TESS_GCF_SORT_CHOSEN && job.near_share >= TRACKS_SHARE;
    const int tile = follow ? 0 : TILE;
    return {tile, tile, false, false};
}

tess_status gcf_cuda_grid_window(const gcf_cuda_job &job)
{
    return GCF_BY_TYPE(job, run, job);
}
