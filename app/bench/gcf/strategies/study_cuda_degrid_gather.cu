/* gather, degridding: a warp for each visibility, on its own, as they come; its lanes
 * take the cells of a line, two lines at a time, through the read-only cache. So the
 * degridders of the SKA gridding studies on GPUs, which follow Romein 2012
 * (doi:10.1145/2304576.2304620) and Humphreys & Cornwell 2011 (SKA memo 132). */
#include "study_cuda.cuh"
#include "tess_gcf_cuda_degrid.cuh"

namespace
{

enum {
    THREADS = 256,
    MOST_THREADS = 512,
    LINES = 2 /* at a time */
};

/* A point a warp. Narrow kernels have several lines in a warp: lanes are dealt out over
 * the cells of TURNS lines in order. Nothing is atomic. Expected limit: 16 bytes a cell
 * from L1 and L2, taps and (each pol's) cells. */
template <typename R, int POLS, typename T, int TURNS>
__global__ void __launch_bounds__(MOST_THREADS) gather_kernel(gcf_cuda_job job)
{
    typedef typename cuda_complex<R>::type C;
    const int lane = (int)threadIdx.x % GCF_WARP;
    const int64_t k = gcf_point_of_warp(job);
    if (k < 0) return;
    const gcf_cuda_place at = gcf_place_of(job, k);
    const gcf_taps_view<R, T> taps = gcf_view<R, T>(job, at.kernel);
    const C *cells = (const C *)job.cells + (int64_t)at.u * job.nv + at.v;
    /* lanes across a line of 8 or 16 cells do two or four of them */
    const int across = taps.support < GCF_WARP ? (taps.support == 8    ? 8
                                                  : taps.support == 16 ? 16
                                                                       : GCF_WARP)
                                               : GCF_WARP;
    const int lines = GCF_WARP / across, first = lane / across, column = lane % across;
    C sum[POLS] = {};
    for (int j = column; j < taps.support; j += across)
        for (int i = first; i < taps.support; i += TURNS * lines)
#pragma unroll
            for (int t = 0; t < TURNS; ++t) {
                const int line = i + t * lines;
                if (line >= taps.support) break;
                const typename cuda_complex<T>::type read =
                    __ldg(taps.first + line * taps.step_u + j * taps.step_v);
                const C tap = {R(read.x), R(read.y) * taps.sign};
#pragma unroll
                for (int p = 0; p < POLS; ++p)
                    gcf_add_conjugate_product(
                        sum[p], tap,
                        __ldg(cells + p * job.pol_stride + (int64_t)line * job.nv + j));
            }
    gcf_store_point<POLS>(job, at.point, sum);
}

template <typename R, int POLS, typename T> tess_status launch(const gcf_cuda_job &job)
{
    const int cells =
        study_probes_of(job)->cells > 0 ? study_probes_of(job)->cells : (int)LINES;
    return study_launch_warps(job,
                              cells == 1   ? gather_kernel<R, POLS, T, 1>
                              : cells == 2 ? gather_kernel<R, POLS, T, 2>
                                           : gather_kernel<R, POLS, T, 4>,
                              THREADS);
}

template <typename R, int POLS> tess_status run(const gcf_cuda_job &job)
{
    return job.table.single_taps ? launch<R, POLS, float>(job)
                                 : launch<R, POLS, R>(job);
}

} // namespace

tess_status study_degrid_gather(const gcf_cuda_job &job)
{
    return GCF_BY_TYPE(job, run, job);
}
