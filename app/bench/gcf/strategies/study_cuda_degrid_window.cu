/* window, degridding: the moving window of Romein 2012 (doi:10.1145/2304576.2304620),
 * the other way round. The plane is tiled by copies of a window as wide as the widest
 * kernel; a thread owns a place in it, that is, all cells of the grid that lie there
 * modulo the window, of which a footprint meets one. Visibilities are taken in order,
 * which is that of time along a baseline's track: the cell of the next footprint is
 * mostly the same, and is read from the grid only when it is not. Where Romein's
 * gridder adds to memory then, nothing is written here but the visibilities. */
#include "study_cuda.cuh"
#include "tess_gcf_cuda_degrid.cuh"

namespace
{

enum {
    THREADS = 128,
    WARPS = THREADS / GCF_WARP,
    POINTS = 128 /* in a row, of a track */
};

/* Cells that a lane owns: as many as registers hold. */
template <typename R, int POLS> struct shape {
    static constexpr int CELLS = POLS * (int)sizeof(R) > 8 ? 4 : 8;
};

/* A warp takes POINTS visibilities in a row, and 32 × CELLS places of the window, which
 * are numbered line by line. Atomic: its share in a visibility. Expected limit: taps
 * from L2, and the atomics. */
template <typename R, int POLS>
__global__ void __launch_bounds__(THREADS)
    window_kernel(gcf_cuda_job job, int width, int parts, int points)
{
    typedef typename cuda_complex<R>::type C;
    enum { CELLS = shape<R, POLS>::CELLS };
    const int lane = (int)threadIdx.x % GCF_WARP;
    const int64_t work = (int64_t)blockIdx.x * WARPS + threadIdx.x / GCF_WARP;
    const int64_t from = work / parts * points;
    const int part = (int)(work % parts);
    if (from >= job.count) return;
    int place_u[CELLS], place_v[CELLS], held_u[CELLS], held_v[CELLS];
    C cell[CELLS][POLS];
#pragma unroll
    for (int c = 0; c < CELLS; ++c) {
        const int n = (part * CELLS + c) * GCF_WARP + lane;
        place_u[c] = n / width; /* beyond the window: never met */
        place_v[c] = n % width;
        held_u[c] = held_v[c] = -1;
    }
    for (int64_t k = from; k < from + points && k < job.count; ++k) {
        const gcf_cuda_place at = gcf_place_of(job, k);
        const gcf_either_view<R> taps = gcf_view_either<R>(job, at.kernel);
        const int turn_u = at.u % width, turn_v = at.v % width;
        C sum[POLS] = {};
#pragma unroll
        for (int c = 0; c < CELLS; ++c) {
            int i = place_u[c] - turn_u, j = place_v[c] - turn_v;
            i += i < 0 ? width : 0;
            j += j < 0 ? width : 0;
            if (place_u[c] >= width || i >= taps.support || j >= taps.support) continue;
            if (held_u[c] != at.u + i || held_v[c] != at.v + j) {
                held_u[c] = at.u + i;
                held_v[c] = at.v + j;
#pragma unroll
                for (int p = 0; p < POLS; ++p)
                    cell[c][p] = __ldg((const C *)job.cells + p * job.pol_stride +
                                       (int64_t)held_u[c] * job.nv + held_v[c]);
            }
            C tap = gcf_tap_of<R>(taps.first, taps.is_single,
                                  i * taps.step_u + j * taps.step_v);
            tap.y *= taps.sign;
#pragma unroll
            for (int p = 0; p < POLS; ++p)
                gcf_add_conjugate_product(sum[p], tap, cell[c][p]);
        }
        gcf_store_point<POLS, true>(job, at.point, sum);
    }
}

template <typename R, int POLS> tess_status run(const gcf_cuda_job &job)
{
    tess_status status = TESS_OK;
    const int places = GCF_WARP * shape<R, POLS>::CELLS;
    const int width = max(job.table.max_support, study_probes_of(job)->bin);
    const int parts = (width * width + places - 1) / places;
    const int points =
        study_probes_of(job)->points > 0 ? study_probes_of(job)->points : (int)POINTS;
    const int64_t work = (job.count + points - 1) / points * parts;
    TESS_TRY(tess_device_zero(job.vis, job.num_vis * 2 * POLS * (int64_t)sizeof(R)));
    tess_launch(window_kernel<R, POLS>, (work + WARPS - 1) / WARPS, THREADS, 0, job,
               width, parts, points);
    TESS_CUDA_LAUNCHED();
cleanup:
    return status;
}

} // namespace

tess_status study_degrid_window(const gcf_cuda_job &job)
{
    return GCF_BY_TYPE(job, run, job);
}
