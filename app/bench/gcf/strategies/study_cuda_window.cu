/* window: Romein 2012 (doi:10.1145/2304576.2304620). The cells that are a multiple of
 * the largest support apart, along each axis, belong to one thread: exactly one of them
 * lies in any footprint, so that its sum stays in a register while footprints move
 * little, and is added to the grid when they have moved past it. A block works on a
 * piece of a baseline's track. Points that come so, baseline after baseline, each in
 * order of time, are taken as they come; others are sorted by small tiles instead,
 * which keeps footprints about as close. */
#include "study_cuda.cuh"

namespace
{

enum { TILE = 16, THREADS = 256, BATCH = 128 };

/* Points in tracks: all but the first of each. */
const double TRACKS_SHARE = 0.97;

/* A block a piece of the points, which lie in shared memory; a thread takes positions
 * of the window that are a block's threads apart. A window of few positions has several
 * groups of threads, which share the points. Expected limit: L2, for taps, and atomics
 * where footprints jump. */
template <typename R, int POLS, int HOW, typename B>
__global__ void __launch_bounds__(B::most, B::blocks)
    window_kernel(gcf_cuda_job job, int window, int points)
{
    typedef typename cuda_complex<R>::type C;
    __shared__ gcf_stamp<R, POLS> batch[BATCH];
    __shared__ int remainder[BATCH][2]; /* of u and v */
    const int64_t from = (int64_t)blockIdx.x * points;
    const int count = (int)min(job.count - from, (int64_t)points);
    const int threads = B::threads();
    for (int k = (int)threadIdx.x; k < count; k += threads) {
        gcf_stamp_of<R, POLS>(job, gcf_place_of(job, from + k), &batch[k]);
        remainder[k][0] = batch[k].u % window;
        remainder[k][1] = batch[k].v % window;
        if (!B::any) break; /* there are as many threads */
    }
    __syncthreads();
    const int positions = window * window, groups = max(threads / positions, 1);
    const int group = (int)threadIdx.x / positions % groups;
    const int first = count * group / groups, end = count * (group + 1) / groups;
    const int last = groups > 1 ? groups * positions : positions;
    for (int at = (int)threadIdx.x; at < last; at += threads) {
        const int a = at % positions / window, b = at % window;
        int64_t current = -1;
        C sum[POLS];
        for (int p = 0; p < POLS; ++p)
            sum[p].x = sum[p].y = 0;
        for (int n = first; n < end; ++n) {
            const gcf_stamp<R, POLS> &s = batch[n];
            int i = a - remainder[n][0], j = b - remainder[n][1];
            if (i < 0) i += window;
            if (j < 0) j += window;
            if (i >= s.support || j >= s.support) continue;
            const C tap =
                gcf_tap_of<R>(s.taps, s.is_single, i * s.step_u + j * s.step_v);
            const int64_t cell = (int64_t)(s.u + i) * job.nv + s.v + j;
            if (cell != current) {
                for (int p = 0; p < POLS; ++p) {
                    if (current >= 0)
                        study_add_cell<HOW>(
                            (C *)job.cells + p * job.pol_stride + current, sum[p]);
                    sum[p].x = sum[p].y = 0;
                }
                current = cell;
            }
            for (int p = 0; p < POLS; ++p)
                gcf_add_tap<R>(sum[p], tap, s.vis[p]);
        }
        for (int p = 0; p < POLS && current >= 0; ++p)
            study_add_cell<HOW>((C *)job.cells + p * job.pol_stride + current, sum[p]);
    }
}

template <typename R, int POLS, int HOW, typename B>
tess_status launch_bounded(const gcf_cuda_job &job)
{
    tess_status status = TESS_OK;
    const tess_study_probes *probes = study_probes_of(job);
    const int points =
        probes->points > 0 && probes->points < BATCH ? probes->points : (int)BATCH;
    tess_launch(window_kernel<R, POLS, HOW, B>, (job.count + points - 1) / points,
               probes->block > 0 ? probes->block : (int)THREADS, 0, job,
               max(job.table.max_support, probes->bin), points);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

template <typename R, int POLS, int HOW> tess_status launch(const gcf_cuda_job &job)
{
    return launch_bounded<R, POLS, HOW, study_bounds<THREADS>>(job);
}

template <typename R, int POLS> tess_status run(const gcf_cuda_job &job)
{
    const tess_study_probes *probes = study_probes_of(job);
    const tess_study_atomics HOW = TESS_STUDY_NATIVE;
    if (probes->block > 0)
        return launch_bounded<R, POLS, HOW, study_bounds<STUDY_MOST_THREADS, 0, true>>(
            job);
    if (probes->bounds == STUDY_FEW_BLOCKS)
        return launch_bounded<R, POLS, HOW, study_bounds<THREADS, STUDY_FEW_BLOCKS>>(
            job);
    if (probes->bounds == STUDY_MANY_BLOCKS)
        return launch_bounded<R, POLS, HOW, study_bounds<THREADS, STUDY_MANY_BLOCKS>>(
            job);
    return STUDY_BY_ATOMICS(job, R, POLS, launch, job);
}

} // namespace

gcf_cuda_order study_grid_window_order(const gcf_cuda_job &job)
{
    const bool follow = study_probes_of(job)->sort == TESS_GCF_SORT_CHOSEN &&
                        job.near_share >= TRACKS_SHARE;
    const int tile = follow ? 0 : TILE;
    return {tile, tile, false, false, false, 0};
}

tess_status study_grid_window(const gcf_cuda_job &job)
{
    return GCF_BY_TYPE(job, run, job);
}
