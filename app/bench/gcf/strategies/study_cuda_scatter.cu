/* scatter: a block for each visibility, as they come, its threads along the lines of
 * the footprint, every product added to the grid atomically. The straightforward way,
 * as van Amesfoort et al. 2009 (doi:10.1145/1531743.1531777) and Humphreys & Cornwell
 * 2011 (SKA memo 132) had it on the first GPUs. */
#include "study_cuda.cuh"

namespace
{

enum { THREADS = 128, MOST_THREADS = 512, LANES = 32 };

/* A warp takes a line at a time: taps and cells are read, and added to, in whole
 * sectors. No shared memory. Expected limit: atomics in L2, one per cell and pol. */
template <typename R, int POLS, int HOW>
__global__ void __launch_bounds__(MOST_THREADS) scatter_kernel(gcf_cuda_job job)
{
    typedef typename cuda_complex<R>::type C;
    const gcf_cuda_place at = gcf_place_of(job, blockIdx.x);
    const gcf_either_view<R> taps = gcf_view_either<R>(job, at.kernel);
    C vis[POLS];
    for (int p = 0; p < POLS; ++p)
        vis[p] = gcf_vis_of<R, POLS>(job, at.point, p);
    const int warps = (int)blockDim.x / LANES;
    for (int i = (int)threadIdx.x / LANES; i < taps.support; i += warps) {
        C *cell = (C *)job.cells + (int64_t)(at.u + i) * job.nv + at.v;
        for (int j = (int)threadIdx.x % LANES; j < taps.support; j += LANES) {
            C tap = gcf_tap_of<R>(taps.first, taps.is_single,
                                  i * taps.step_u + j * taps.step_v);
            tap.y *= taps.sign;
            for (int p = 0; p < POLS; ++p) {
                C sum = {0, 0};
                gcf_add_product(sum, tap, vis[p]);
                study_add_cell<HOW>(cell + p * job.pol_stride + j, sum);
            }
        }
    }
}

template <typename R, int POLS, int HOW> tess_status launch(const gcf_cuda_job &job)
{
    tess_status status = TESS_OK;
    const int block =
        study_probes_of(job)->block > 0 ? study_probes_of(job)->block : THREADS;
    tess_launch(scatter_kernel<R, POLS, HOW>, job.count, block, 0, job);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

template <typename R, int POLS> tess_status run(const gcf_cuda_job &job)
{
    return STUDY_BY_ATOMICS(job, R, POLS, launch, job);
}

} // namespace

tess_status study_grid_scatter(const gcf_cuda_job &job)
{
    return GCF_BY_TYPE(job, run, job);
}
